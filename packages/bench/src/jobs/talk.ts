// Calls in which people trickle candidates at a steady pace: how long each takes while something else goes on.
import { SIDES, type Side } from '../candidate.ts'
import { other, type Pair } from '../dialects/dialect.ts'
import { ringwire } from '../dialects/ringwire.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { clientsOf, closeClients, openPairs, within } from './clients.ts'
import { type Prepared, plainResult, type TalkJob } from './job.ts'
import { whileItFalls } from './patience.ts'

const SETUP_MS = 30_000
/** A flood may hold up a message for this time. */
const PATIENCE_MS = 20_000
/** Each call has a message in every period, from its two sides in turn. */
const PERIOD_MS = 50

interface Talk {
  pair: Pair
  frames: Record<Side, Uint8Array>
  next: Side
  dueAt: number
  /** When the messages were sent that each side has not received yet. */
  underWay: Record<Side, number[]>
}

export async function prepareTalk(job: TalkJob): Promise<Prepared> {
  const opening = openPairs(ringwire, job.target, 0, job.pairs)
  const pairs = await within(SETUP_MS, 'Connecting', opening)
  await within(SETUP_MS, 'Joining', Promise.all(pairs.map((pair) => ringwire.join(pair))))
  const talks = pairs.map(newTalk)
  const course = { failure: undefined as Error | undefined, samples: [] as number[] }
  for (const talk of talks) for (const side of SIDES) listen(talk, side, course)
  return {
    async run({ warmupMs, measureMs }) {
      await talkFor(warmupMs, talks)
      course.samples = []
      const before = readLoad(job.target.pid, job.target.core)
      await talkFor(measureMs, talks)
      const load = loadBetween(before, readLoad(job.target.pid, job.target.core))
      await drain(talks)
      if (course.failure !== undefined) throw course.failure
      return { ...plainResult(course.samples.length, load), samples: course.samples }
    },
    release: () => closeClients(clientsOf(pairs)),
  }
}

function newTalk(pair: Pair, i: number): Talk {
  const frame = (side: Side) => pair[side].socket.frame(ringwire.candidateMessage(pair, side))
  return {
    pair,
    frames: { caller: frame('caller'), callee: frame('callee') },
    next: 'caller',
    dueAt: performance.now() + (i % PERIOD_MS),
    underWay: { caller: [], callee: [] },
  }
}

function listen(talk: Talk, side: Side, course: { failure: Error | undefined; samples: number[] }): void {
  const { socket, id } = talk.pair[side]
  socket.onFailure = (error) => {
    course.failure ??= new Error(`${id}: ${error.message}`)
  }
  socket.onText = (text) => {
    if (!text.includes('webrtc.ice_candidate')) return
    const sentAt = talk.underWay[side].shift()
    if (sentAt === undefined) course.failure ??= new Error(`${id} received more than it was sent`)
    else course.samples.push(Math.round((performance.now() - sentAt) * 1000))
  }
}

async function talkFor(ms: number, talks: readonly Talk[]): Promise<void> {
  const until = performance.now() + ms
  for (const talk of talks) talk.dueAt = Math.max(talk.dueAt, performance.now())
  while (performance.now() < until) {
    for (const talk of talks) if (talk.dueAt <= performance.now()) say(talk)
    await Bun.sleep(1)
  }
}

function say(talk: Talk): void {
  const from = talk.next
  talk.next = other(from)
  // A generator that was late does not catch up: the pace is what people have.
  talk.dueAt = Math.max(talk.dueAt + PERIOD_MS, performance.now())
  talk.underWay[other(from)].push(performance.now())
  talk.pair[from].socket.write(talk.frames[from])
}

async function drain(talks: readonly Talk[]): Promise<void> {
  const missing = () => talks.reduce((sum, { underWay }) => sum + underWay.caller.length + underWay.callee.length, 0)
  const left = await whileItFalls(missing, PATIENCE_MS)
  if (left > 0) throw new Error(`${left} messages of the calls were lost`)
}
