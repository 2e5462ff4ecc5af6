import fc from 'fast-check'
import { somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { connectClient, cut, proveRead, read, resume, type WalkingClient } from './session-client.ts'
import { pushes, type SessionsHarness } from './session-parts.ts'

/** A walk of one place of a call through the sessions of its participant, base and extended. */

export type PlaceMove =
  | { readonly what: 'relay' | 'state' | 'prove' | 'settle' }
  | { readonly what: 'cut'; readonly unread: number }
  | { readonly what: 'take'; readonly extended: boolean; readonly settled: boolean }
  | { readonly what: 'resume'; readonly which: number }

const plain = (what: 'relay' | 'state' | 'prove' | 'settle', weight: number) => ({
  weight,
  arbitrary: fc.record({ what: fc.constant(what) }),
})

export const placeMoves: fc.Arbitrary<PlaceMove> = fc.oneof(
  plain('relay', 8),
  plain('state', 3),
  plain('prove', 3),
  plain('settle', 1),
  { weight: 4, arbitrary: fc.record({ what: fc.constant('cut' as const), unread: fc.nat({ max: 4 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant('take' as const), extended: fc.boolean(), settled: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('resume' as const), which: fc.nat({ max: 3 }) }) },
)

interface Walk {
  readonly harness: SessionsHarness
  /** The newest last; the last one that took the place has it. */
  readonly clients: WalkingClient[]
  holder: WalkingClient
  /** Pushes given to the place so far: 0, 1, 2 … */
  pushed: number
  /** One of them was a state. */
  hasState: boolean
  version: number
  readonly done: { taken: number; resumed: number; refused: number; pushed: number }
}

export async function walkPlace(harness: SessionsHarness, moves: readonly PlaceMove[]) {
  const participant = somebody()
  const holder = await connectClient(harness.sessions, { participant })
  await stepsOf(harness.sessions).hold(holder.identity.sessionId, 'c', true)
  const done = { taken: 0, resumed: 0, refused: 0, pushed: 0 }
  const walk: Walk = { harness, clients: [holder], holder, pushed: 0, hasState: false, version: 1, done }
  for (const move of moves) {
    await step(walk, move)
    await harness.settled()
    if (move.what !== 'cut') for (const client of walk.clients) read(client)
    for (const client of walk.clients) checkOrder(client)
  }
  // The last one finds what nobody has.
  if (walk.holder.line === undefined) await take(walk, true, true)
  await harness.settled()
  read(walk.holder)
  const heard = new Set(walk.clients.flatMap(({ seen }) => seen))
  for (let n = 0; n < walk.pushed; n++) if (!heard.has(n)) throw new Error(`nobody heard ${n} of ${walk.pushed}`)
  return done
}

function checkOrder({ seen }: WalkingClient) {
  const at = seen.findIndex((n, index) => index > 0 && n <= seen[index - 1]!)
  if (at !== -1) throw new Error(`${seen[at]} after ${seen[at - 1]}`)
}

async function step(walk: Walk, move: PlaceMove): Promise<void> {
  const { harness, holder } = walk
  const { sessions } = harness
  switch (move.what) {
    case 'relay':
    case 'state': {
      if (move.what === 'state') walk.version++
      const n = walk.pushed
      const push = move.what === 'state' ? pushes.state('c', walk.version, n) : pushes.relay('c', n)
      const result = await sessions.append(holder.identity.sessionId, push)
      // Not sent twice: the previous one waits for the next holder.
      if (push.kind === 'state' && result === 'dropped' && walk.hasState && holder.line === undefined) return
      walk.hasState ||= push.kind === 'state'
      const expected = holder.line === undefined ? 'kept' : 'sent'
      if (result !== expected) throw new Error(`a ${push.kind} for the holder is ${result}, not ${expected}`)
      walk.pushed++
      walk.done.pushed++
      return
    }
    case 'prove':
      return proveRead(sessions, holder)
    case 'settle':
      await stepsOf(sessions).hold(holder.identity.sessionId, 'c', true)
      return
    case 'cut':
      return cut(harness, holder, move.unread, 0)
    case 'take':
      return holder.line === undefined ? take(walk, move.extended, move.settled) : undefined
    case 'resume': {
      const client = walk.clients.at(-1 - (move.which % walk.clients.length))
      return client === undefined ? undefined : comeBack(walk, client)
    }
  }
}

/** Another session of the participant takes the vacant place, with what waits there [PLACE2]. */
async function take(walk: Walk, extended: boolean, settled: boolean): Promise<void> {
  const { harness, clients, holder, done } = walk
  const { sessions } = harness
  const taker = await connectClient(sessions, { participant: holder.identity.participant, extended })
  const { sessionId } = taker.identity
  await stepsOf(sessions).hold(sessionId, 'c', settled)
  await sessions.move('c', holder.identity.sessionId, sessionId, settled)
  clients.push(taker)
  walk.holder = taker
  done.taken++
}

/** A lost session comes back: the holder to its place, a former one to what it had. */
async function comeBack(walk: Walk, client: WalkingClient): Promise<void> {
  const { harness, holder, done } = walk
  if (client.line !== undefined || !client.identity.extended) return
  if (await resume(harness, client, 0)) done.resumed++
  else if (client === holder) throw new Error('the holder of the place is refused, and nobody took anything from it')
  else done.refused++
}
