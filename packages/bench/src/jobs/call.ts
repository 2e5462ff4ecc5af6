// Whole calls between pairs, one after another on each: Ringwire stores every one of them; the bare relay carries
// seventeen messages of the same sizes in the same order.
import type { Side } from '../candidate.ts'
import { type Client, members, other, type Pair } from '../dialects/dialect.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { dialectOf } from '../systems.ts'
import { mintTokens } from '../tokens.ts'
import {
  accept,
  answerAndCandidates,
  CANDIDATES_EACH_WAY,
  connected,
  end,
  invite,
  MESSAGES_PER_CALL,
  offerAndCandidates,
  type Speaker,
  type Turn,
  toBareRelay,
  toRingwire,
} from './call-script.ts'
import { clientsOf, closeClients, openPairs, within } from './clients.ts'
import { type CallJob, type Prepared, plainResult } from './job.ts'
import { paceOf } from './pace.ts'

const WITHIN_MS = 60_000
/** What a server does after its last answer belongs to the calls too: commits, checkpoints, collected garbage. */
export const AFTERMATH_MS = 300
const HISTORY_PAGE = 100

/** One call in progress: what each side has sent and received. */
interface Course {
  pair: Pair
  speak: Speaker
  received: Record<Side, Map<string, number>>
  sent: number
  done: (error?: Error) => void
}

export async function prepareCall(job: CallJob): Promise<Prepared> {
  const dialect = dialectOf(job.target.system)
  const isService = job.target.system === 'ringwire'
  const pairs = await within(
    WITHIN_MS,
    'Connecting',
    openPairs(dialect, job.target, job.firstPair ?? 0, job.pairs, job.spread),
  )
  let calls = 0
  return {
    async run() {
      let messages = 0
      const before = readLoad(job.target.pid, job.target.core)
      const perPair = Math.ceil(job.calls / pairs.length)
      const pace = paceOf(job.perSecond)
      const lanes = pairs.map(async (pair, lane) => {
        for (let i = 0; i < perPair; i++) {
          await pace(lane + i * pairs.length)
          messages += await call(pair, isService)
        }
      })
      const begin = performance.now()
      await within(WITHIN_MS, 'The calls', Promise.all(lanes))
      const callSeconds = (performance.now() - begin) / 1000
      await Bun.sleep(job.aftermathMs ?? AFTERMATH_MS)
      const load = loadBetween(before, readLoad(job.target.pid, job.target.core))
      calls += perPair
      return { ...plainResult(perPair * pairs.length, load), sent: messages, received: messages, callSeconds }
    },
    async release() {
      if (isService) await within(WITHIN_MS, 'The history', checkHistory(job.target.port, pairs, calls))
      await closeClients(clientsOf(pairs))
    },
  }
}

/** One call from invite to end; resolves with the number of messages that the clients sent. */
async function call(pair: Pair, isService: boolean): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const course: Course = {
    pair,
    speak: isService ? toRingwire : toBareRelay,
    received: { caller: new Map(), callee: new Map() },
    sent: 0,
    done: (error) => (error === undefined ? resolve() : reject(error)),
  }
  if (!isService) pair.callUuid = crypto.randomUUID()
  for (const side of ['caller', 'callee'] as const) {
    const { socket } = pair[side]
    socket.onFailure = course.done
    socket.onText = (text) => received(course, side, text)
  }
  say(course, 'caller', invite)
  await promise
  if (course.sent !== MESSAGES_PER_CALL) throw new Error(`A call of ${course.sent} messages`)
  return course.sent
}

function say(course: Course, from: Side, ...turns: Turn[]): void {
  for (const turn of turns) {
    course.pair[from].socket.send(course.speak(course.pair, from, turn.event, turn.data(course.pair)))
    course.sent++
  }
}

function received(course: Course, side: Side, text: string): void {
  const message = members(JSON.parse(text))
  const event = String(message.event)
  const counts = course.received[side]
  counts.set(event, (counts.get(event) ?? 0) + 1)
  switch (event) {
    case 'call.ringing':
      course.pair.callUuid = String(members(message.data).call_uuid)
      say(course, side, accept)
      break
    case 'call.invite':
      say(course, side, accept)
      break
    case 'call.accepted':
    case 'call.accept':
      say(course, side, ...offerAndCandidates)
      break
    case 'webrtc.offer':
      say(course, side, ...answerAndCandidates)
      break
    case 'webrtc.answer':
    case 'webrtc.ice_candidate':
      mediaConnected(course, side)
      break
    case 'call.ended':
      finish(course)
      break
    case 'call.end':
    case 'call.connected':
      finishRelayed(course)
      break
    case 'call.invited':
      break
    default:
      course.done(new Error(`In a call: ${text.slice(0, 300)}`))
  }
}

/** With the peer's description and all its candidates a side has media; when both have, the caller hangs up. */
function mediaConnected(course: Course, side: Side): void {
  const counts = course.received[side]
  if (counts.get('webrtc.ice_candidate') !== CANDIDATES_EACH_WAY) return
  if (!counts.has('webrtc.offer') && !counts.has('webrtc.answer')) return
  say(course, side, connected)
  if (course.received[other(side)].get('webrtc.ice_candidate') === CANDIDATES_EACH_WAY) say(course, 'caller', end)
}

function finish(course: Course): void {
  const { caller, callee } = course.received
  const whole =
    caller.get('call.accepted') === 1 &&
    caller.get('webrtc.answer') === 1 &&
    callee.get('webrtc.offer') === 1 &&
    [caller, callee].every((counts) => counts.get('webrtc.ice_candidate') === CANDIDATES_EACH_WAY)
  course.done(whole ? undefined : new Error('A call ended before everything was delivered'))
}

/** The bare relay carries `call.connected` too, and has no order between the two directions. */
function finishRelayed(course: Course): void {
  const { caller, callee } = course.received
  const connections = (caller.get('call.connected') ?? 0) + (callee.get('call.connected') ?? 0)
  if (callee.get('call.end') === 1 && connections === 2) course.done()
}

/** Every call must be in the history of its caller, connected and ended. */
async function checkHistory(port: number, pairs: readonly Pair[], calls: number): Promise<void> {
  const callers: Client[] = pairs.map((pair) => pair.caller)
  const tokens = await mintTokens(
    port,
    callers.map((caller) => caller.id),
  )
  for (const [i, token] of tokens.entries()) {
    const headers = { Authorization: `Bearer ${token}` }
    // A large page comes in pieces, without a Content-Length.
    const answer = await fetch(`http://127.0.0.1:${port}/v1/calls/history?limit=${HISTORY_PAGE}`, { headers })
    const records = ((await answer.json()) as { data?: Record<string, unknown>[] }).data ?? []
    const whole = records.filter((record) => record.status === 'ended' && typeof record.connected_at === 'string')
    const expected = Math.min(calls, HISTORY_PAGE)
    if (whole.length !== expected) {
      throw new Error(
        `${callers[i]?.id} made ${calls} calls, the history shows ${whole.length} of ${expected} as ended`,
      )
    }
  }
}
