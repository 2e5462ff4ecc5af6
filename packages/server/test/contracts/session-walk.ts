import fc from 'fast-check'
import type { Push } from '../../src/ports/push.ts'
import { createSocket, identityOf, somebody } from '../../src/ports/sessions.fixture.ts'
import type { SessionIdentity } from '../../src/ports/sessions.ts'
import { connectClient, cut, proveRead, read, resume, type WalkingClient } from './session-client.ts'
import { pushes, resumeWindowMs, type SessionsHarness } from './session-parts.ts'

/** A walk of one extended session, beside a list of everything that it was given. */

export type SessionMove =
  | { readonly what: 'push'; readonly kind: 'relay' | 'big' | 'state' | 'old' | 'final' | 'notice' | 'ringing' }
  | { readonly what: 'flood'; readonly count: number }
  | { readonly what: 'prove' | 'replace' }
  | { readonly what: 'cut'; readonly unread: number }
  | { readonly what: 'resume' | 'wait'; readonly ms: number }
  | { readonly what: 'stranger'; readonly how: number }

const often = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary })
const kinds = ['relay', 'relay', 'big', 'state', 'old', 'final', 'notice', 'ringing'] as const

export const sessionMoves: fc.Arbitrary<SessionMove> = fc.oneof(
  often(12, fc.record({ what: fc.constant('push' as const), kind: fc.constantFrom(...kinds) })),
  often(1, fc.record({ what: fc.constant('flood' as const), count: fc.integer({ min: 1, max: 400 }) })),
  often(3, fc.record({ what: fc.constant('prove' as const) })),
  often(1, fc.record({ what: fc.constant('replace' as const) })),
  often(4, fc.record({ what: fc.constant('cut' as const), unread: fc.nat({ max: 6 }) })),
  often(5, fc.record({ what: fc.constant('resume' as const), ms: fc.nat({ max: 50 }) })),
  often(1, fc.record({ what: fc.constant('wait' as const), ms: fc.nat({ max: resumeWindowMs }) })),
  often(2, fc.record({ what: fc.constant('stranger' as const), how: fc.nat({ max: 4 }) })),
)

/** A log certainly holds this much: bytes are counted in more than one way. */
const surely = { events: 512, bytes: 900_000 } as const

interface Walk {
  readonly harness: SessionsHarness
  client: WalkingClient
  /** Everything that the session was given, in order: the push with seq 1 first. */
  given: { readonly n: number; readonly bytes: number; readonly isState: boolean }[]
  now: number
  next: number
  version: number
  readonly done: { resumed: number; refused: number; pushed: number }
}

export async function walkSession(harness: SessionsHarness, moves: readonly SessionMove[]) {
  const participant = somebody()
  const start = { harness, given: [], now: 1_000_000, next: 0, version: 1 }
  const client = await connectClient(harness.sessions, { participant })
  const walk: Walk = { ...start, client, done: { resumed: 0, refused: 0, pushed: 0 } }
  for (const move of moves) {
    await step(walk, move)
    await harness.settled()
    // A cut may leave some unread; nothing else does.
    if (move.what !== 'cut') read(walk.client, 0)
    check(walk)
  }
  if (walk.client.line === undefined) await comeBack(walk)
  read(walk.client)
  if (walk.client.seen.length !== walk.given.length) throw new Error('in the end something did not arrive')
  check(walk)
  return walk.done
}

/** What the client has seen is the beginning of what was given, in order. */
function check({ client, given }: Walk) {
  if (client.seen.length > given.length) throw new Error('more was told than was given')
  const at = client.seen.findIndex((n, index) => n !== given[index]?.n)
  if (at !== -1) throw new Error(`push ${client.seen[at]} under the number of ${given[at]?.n}`)
}

async function step(walk: Walk, move: SessionMove): Promise<void> {
  const { harness, client } = walk
  switch (move.what) {
    case 'push':
      return give(walk, pushOf(walk, move.kind), move.kind !== 'old')
    case 'flood':
      for (let i = 0; i < move.count; i++) await give(walk, pushes.relay('c', walk.next), true)
      return
    case 'prove':
      return proveRead(harness.sessions, client)
    case 'cut':
      return cut(harness, client, move.unread, walk.now)
    case 'wait':
      walk.now += move.ms
      return
    case 'replace':
      // A second socket while the first one is still there: the newest wins.
      return client.line === undefined ? undefined : comeBack(walk)
    case 'resume':
      walk.now += move.ms
      return client.line === undefined ? comeBack(walk) : undefined
    case 'stranger':
      return meddle(walk, move.how)
  }
}

function pushOf(walk: Walk, kind: Extract<SessionMove, { what: 'push' }>['kind']): Push {
  const n = walk.next
  switch (kind) {
    case 'relay':
      return pushes.relay('c', n)
    case 'big':
      return pushes.relay('c', n, 50_000)
    case 'old':
      return pushes.state('c', walk.version, n)
    case 'ringing':
      return pushes.ringing(`rings-${n}`, 1, n)
    case 'final':
      return pushes.final(`over-${n}`, 1, n)
    default:
      walk.version++
      return pushes[kind]('c', walk.version, n)
  }
}

/** The first state of version 1 is news, too; after that only a higher one is. */
async function give(walk: Walk, push: Push, isNews: boolean): Promise<void> {
  const { harness, client, given, done } = walk
  const result = await harness.sessions.append(client.identity.sessionId, push)
  const first = push.version === 1 && push.call === 'c' && result !== 'dropped'
  const expected = isNews || first ? (client.line === undefined ? 'kept' : 'sent') : 'dropped'
  // Not sent twice: its client has yet to hear the previous one.
  const waits = given.slice(client.seen.length).some(({ isState }) => isState)
  if (push.kind === 'state' && result === 'dropped' && waits && client.line === undefined) return
  if (result !== expected) throw new Error(`${push.kind} is ${result}, not ${expected}`)
  if (result === 'dropped') return
  given.push({ n: walk.next, bytes: push.text.length, isState: push.kind === 'state' })
  walk.next++
  done.pushed++
}

/** Comes back, or begins anew; a refusal has to have a reason. */
async function comeBack(walk: Walk): Promise<void> {
  const { harness, client, given, now, done } = walk
  const missing = given.slice(client.seen.length)
  const isLate = client.line === undefined && now - client.lostAt > resumeWindowMs
  const holds =
    missing.length <= surely.events && missing.reduce((sum, { bytes }) => sum + bytes, 0) <= surely.bytes && !isLate
  const older = client.line?.socket
  if (await resume(harness, client, now)) {
    if (isLate) throw new Error('a session came back after its window')
    if (older !== undefined && (await harness.sessions.detach(client.identity.sessionId, older, false, now))) {
      throw new Error('the end of the older socket took the newer one')
    }
    read(client)
    if (client.seen.length !== given.length) throw new Error('a resume was answered that is not whole')
    done.resumed++
    return
  }
  if (holds) throw new Error(`a resume is refused, and its log holds all ${missing.length}`)
  done.refused++
  walk.client = await connectClient(harness.sessions, client.identity)
  walk.given = []
  walk.version = 1
}

/** Somebody else, or the same with what is not true, in the name of a session that is not its own. */
async function meddle({ harness, client, now }: Walk, how: number): Promise<void> {
  const { sessionId, participant } = client.identity
  const others: Partial<SessionIdentity>[] = [
    { participant: somebody() },
    { participant: { ...participant, role: 'customer' } },
    { participant: { ...participant, product: 'bank' } },
    { deviceId: 'tablet' },
    { deviceId: null },
  ]
  const stranger = { ...identityOf({ participant }), ...others[how] }
  const socket = createSocket()
  const request = { sessionId, epoch: client.epoch, seq: client.seen.length }
  const open = await harness.sessions.resume(request, stranger, socket, now)
  if (open !== undefined || socket.told.length > 0) throw new Error('a stranger came back')
}
