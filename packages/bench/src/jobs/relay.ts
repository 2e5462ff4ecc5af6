// Candidates both ways between pairs. Either a constant number is in flight, and the receiver of one sends the next. Or each
// leaves at its time.
import { SIDES, type Side } from '../candidate.ts'
import { type Client, type Dialect, other, type Pair } from '../dialects/dialect.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { LatencyHistogram } from '../statistics.ts'
import { dialectOf } from '../systems.ts'
import { frameSize } from '../websocket-frames.ts'
import { type Awake, stayAwake } from './awake.ts'
import { clientsOf, closeClients, openPairs, within } from './clients.ts'
import type { Prepared, RelayJob, Result, Shape } from './job.ts'
import { fixedOutlet, numberedOutlet, type Outlet } from './outlet.ts'
import { whileItFalls } from './patience.ts'
import { Schedule } from './schedule.ts'

const SETUP_MS = 20_000
/** A message counts as lost if no other arrived for this time. */
const PATIENCE_MS = 10_000

/** One end of a pair. */
interface End {
  client: Client
  /** Its place among all ends. */
  number: number
  peer: End | null
  outlet: Outlet
  /** What the peer's message looks like when it arrives here. */
  expected: string
  sent: number
  received: number
  /** Replies to what was sent. */
  replies: number
  sentAt: number
}

/** What the handlers of all ends share while the load runs. */
interface Course {
  running: boolean
  failure: Error | null
  latencies: LatencyHistogram | null
  awake: Awake | null
  schedule: Schedule | null
}

export async function prepareRelay(job: RelayJob): Promise<Prepared> {
  const dialect = dialectOf(job.target.system)
  const opening = openPairs(dialect, job.target, job.firstPair, job.pairs, job.spread)
  const pairs = await within(SETUP_MS, 'Connecting', opening)
  await within(SETUP_MS, 'Joining', Promise.all(pairs.map((pair) => dialect.join(pair))))
  const ends = await within(SETUP_MS, 'The first message', Promise.all(pairs.map((pair) => probe(dialect, pair))))
  const course: Course = { running: false, failure: null, latencies: null, awake: null, schedule: null }
  for (const [number, end] of ends.flat().entries()) {
    end.number = number
    listen(end, dialect, course)
  }
  return {
    run: (shape) => run(job, shape, ends, course),
    release: async () => {
      for (const { socket } of clientsOf(pairs)) {
        socket.scanner.expect(null)
        socket.onText = socket.toInbox
      }
      await within(SETUP_MS, 'Leaving', Promise.all(pairs.map((pair) => dialect.leave(pair))))
      await closeClients(clientsOf(pairs))
    },
  }
}

/** One message each way, read as a whole: what follows is counted by its length and compared with these bytes. */
async function probe(dialect: Dialect, pair: Pair): Promise<[End, End]> {
  const ends: End[] = []
  for (const side of SIDES) {
    const from = other(side)
    const refused = refusalOf(pair[from])
    pair[from].socket.send(dialect.candidateMessage(pair, from))
    const text = await Promise.race([nextCandidate(dialect, pair, side), refused])
    pair[from].socket.onText = pair[from].socket.toInbox
    const wrong = dialect.wrongWith(text, pair, from)
    if (wrong !== null) throw new Error(`${pair[side].id} received ${wrong}`)
    ends.push(newEnd(dialect, pair, side, text))
  }
  const [caller, callee] = ends as [End, End]
  caller.peer = callee
  callee.peer = caller
  return [caller, callee]
}

/** Rejects when the service refuses what this client sends: its peer would wait for that in vain. */
function refusalOf({ id, socket }: Client): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  socket.onText = (text) => {
    if (text.includes('"call.error"')) reject(new Error(`${id} was refused: ${text}`))
    else socket.toInbox(text)
  }
  return promise
}

async function nextCandidate(dialect: Dialect, pair: Pair, side: Side): Promise<string> {
  for (;;) {
    const text = await pair[side].socket.next()
    if (text.includes('candidate') && !dialect.harmless(text, pair[side])) return text
  }
}

function newEnd(dialect: Dialect, pair: Pair, side: Side, expected: string): End {
  const text = dialect.candidateMessage(pair, side)
  const frameOf = (it: string) => pair[side].socket.frame(it)
  const { numbered } = dialect
  const outlet = numbered === undefined ? fixedOutlet(frameOf(text)) : numberedOutlet(frameOf, text, numbered)
  return { client: pair[side], number: 0, peer: null, outlet, expected, sent: 0, received: 0, replies: 0, sentAt: 0 }
}

async function run(job: RelayJob, shape: Shape, pairs: [End, End][], course: Course): Promise<Result> {
  const { heartbeat, numbered } = dialectOf(job.target.system)
  const ends = pairs.flat()
  for (const end of ends) {
    end.sent = 0
    end.received = 0
    end.replies = 0
  }
  if (heartbeat !== null) for (const { client } of ends) client.socket.send(heartbeat)
  course.running = true
  course.latencies = shape.window === 1 ? new LatencyHistogram() : null
  const schedule = shape.perSecond === undefined ? null : scheduleOf(ends.length, shape, shape.perSecond)
  course.schedule = schedule
  const awake = stayAwake(() => schedule?.sendDue((sender) => sendOne(ends[sender]!)) ?? false)
  course.awake = awake
  if (schedule === null) for (const pair of pairs) start(pair, shape.window)
  await Bun.sleep(shape.warmupMs)
  course.latencies?.clear()
  awake.idleNs = 0
  const before = readLoad(job.target.pid, job.target.core, job.target.morePids)
  const receivedBefore = sum(ends, 'received')
  await Bun.sleep(shape.measureMs)
  const soFar = () => ({
    count: sum(ends, 'received') - receivedBefore,
    load: loadBetween(before, readLoad(job.target.pid, job.target.core, job.target.morePids)),
  })
  const { count, load } = await somethingOf(soFar)
  const generatorIdle = awake.idleNs / 1e9 / load.seconds
  const latencies = course.latencies?.counts() ?? []
  await schedule?.finished
  course.running = false
  awake.stop()
  await drain(pairs, course, (numbered?.reply ?? null) !== null)
  const result = { count, load, generatorIdle, latencies, ...totals(ends) }
  if (schedule === null) return result
  // What arrived late belongs to it, however late.
  return { ...result, latencies: schedule.latencies.counts(), lateness: schedule.lateness.counts() }
}

/** A slow server on a busy core may do nothing within a short slice, and nothing has no rate: such a slice lasts longer. */
async function somethingOf(soFar: () => Pick<Result, 'count' | 'load'>): Promise<Pick<Result, 'count' | 'load'>> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const measured = soFar()
    if ((measured.count > 0 && measured.load.serverCpuSeconds > 0) || performance.now() >= deadline) return measured
    await Bun.sleep(10)
  }
}

function scheduleOf(senders: number, { warmupMs, measureMs }: Shape, perSecond: number): Schedule {
  const start = Bun.nanoseconds()
  const from = start + warmupMs * 1e6
  return new Schedule(senders, perSecond, { start, from, until: from + measureMs * 1e6 })
}

function sendOne(end: End): void {
  end.sent++
  end.client.socket.write(end.outlet.burst(1))
}

function listen(end: End, dialect: Dialect, course: Course): void {
  const { socket } = end.client
  expectFrames(end, dialect)
  const reply = dialect.numbered?.reply ?? null
  socket.onFailure = (error) => {
    course.failure ??= error
  }
  socket.onText = (text) => {
    if (reply !== null && text.startsWith(reply)) end.replies++
    else if (!dialect.harmless(text, end.client)) course.failure ??= new Error(`Not asked for: ${text.slice(0, 300)}`)
  }
  socket.onFrames = (count) => {
    end.received += count
    if (course.awake !== null) course.awake.worked = true
    if (course.schedule !== null) {
      course.schedule.arrived(end.peer!.number, count)
      return
    }
    if (course.latencies !== null) {
      const now = Bun.nanoseconds()
      course.latencies.record(now - end.peer!.sentAt)
      end.sentAt = now
    }
    if (!course.running) return
    // Never more than the window: an end only passes on what it was given.
    end.sent += count
    socket.write(end.outlet.burst(count))
  }
}

/** The first message was read as a whole: what follows must be the same bytes, or the same but for its number. */
function expectFrames({ client, expected }: End, { numbered }: Dialect): void {
  const { socket } = client
  const { scanner } = socket
  if (numbered === undefined) {
    scanner.expect(socket.encode(expected))
    return
  }
  const at = expected.lastIndexOf(numbered.receivedAfter) + numbered.receivedAfter.length
  scanner.expectNumbered(socket.encode(expected.slice(0, at)), Number.parseInt(expected.slice(at), 10))
}

function start([caller, callee]: [End, End], window: number): void {
  const byCallee = window >> 1
  for (const [end, count] of [
    [caller, window - byCallee],
    [callee, byCallee],
  ] as const) {
    if (count === 0) continue
    end.sent += count
    end.sentAt = Bun.nanoseconds()
    end.client.socket.write(end.outlet.burst(count))
  }
}

/** Waits for what is still in flight, and says what never came. */
async function drain(pairs: readonly [End, End][], course: Course, isAnswered: boolean): Promise<void> {
  const missing = () => pairs.reduce((total, pair) => total + undelivered(pair, isAnswered), 0)
  const left = await whileItFalls(missing, PATIENCE_MS, () => course.failure !== null)
  if (course.failure !== null) throw course.failure
  if (left > 0) throw new Error(`${left} messages were lost`)
  // A message that comes twice comes at once.
  await Bun.sleep(10)
  for (const end of pairs.flat()) {
    if (end.received > end.peer!.sent) throw new Error(`${end.client.id} received a message twice`)
    const { different, outOfOrder } = end.client.socket.scanner
    if (different > 0) throw new Error(`${end.client.id} received other bytes than were sent`)
    if (outOfOrder > 0) throw new Error(`${end.client.id} received ${outOfOrder} messages out of order`)
  }
}

/** Messages and replies that are still to come. */
function undelivered([caller, callee]: [End, End], isAnswered: boolean): number {
  const messages = Math.max(0, caller.sent - callee.received) + Math.max(0, callee.sent - caller.received)
  return isAnswered ? messages + caller.sent - caller.replies + callee.sent - callee.replies : messages
}

function totals(ends: End[]): Pick<Result, 'sent' | 'received' | 'clientFrameBytes' | 'serverFrameBytes'> {
  const { client, outlet, expected } = ends[0]!
  return {
    sent: sum(ends, 'sent'),
    received: sum(ends, 'received'),
    clientFrameBytes: outlet.frameBytes,
    serverFrameBytes: frameSize(client.socket.encode(expected).length, false),
  }
}

function sum(ends: readonly End[], field: 'sent' | 'received'): number {
  return ends.reduce((total, end) => total + end[field], 0)
}
