import type { AnsweredCall, Call, CallDurations, OverCall, Participant, Place, RingingCall } from './call.ts'
import type { Actor } from './command.ts'

/** Freezes a value and all it holds. A value that is frozen already was frozen here, so shared parts cost nothing again. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const part of Object.values(value)) deepFreeze(part)
  return value
}

/** The people, devices and calls that the tests of the call rules speak of. Everything is frozen. */
export const alice: Participant = deepFreeze({ product: 'shop', role: 'customer', userId: 'alice' })
export const bob: Participant = deepFreeze({ product: 'shop', role: 'agent', userId: 'bob' })
export const carol: Participant = deepFreeze({ product: 'shop', role: 'agent', userId: 'carol' })
export const dave: Participant = deepFreeze({ product: 'shop', role: 'customer', userId: 'dave' })

export const start = Date.UTC(2026, 0, 1, 12)
export const ringMs = 45_000
export const durations: CallDurations = deepFreeze({
  callerLostMs: 20_000,
  peerLostMs: 120_000,
  maxDurationMs: 12 * 3_600_000,
})

export function uuidOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
}

export function actorOf(participant: Participant, sessionId: string, deviceId: string | null = null): Actor {
  const displayName = participant.userId.toUpperCase()
  return deepFreeze({ participant, sessionId, deviceId, node: `node-of-${sessionId}`, displayName })
}

/** The same session, connected to another node. */
export function onNode(actor: Actor, node: string): Actor {
  return deepFreeze({ ...actor, node })
}

export function heldBy(actor: Actor, settled = true): Place {
  const { sessionId, deviceId, node, can } = actor
  return deepFreeze({ state: 'held', sessionId, deviceId, node, settled, ...(can && { can }) })
}

/** `closed`: its client closed the socket; `awaitedMs`: the service did, and told it to come back. */
export function leftBy(actor: Actor, since: number, settled = true, closed = false, awaitedMs?: number): Place {
  const { sessionId, deviceId, node, can } = actor
  const how = { ...(can && { can }), ...(closed && { closed }), ...(awaitedMs !== undefined && { awaitedMs }) }
  return deepFreeze({ state: 'vacant', sessionId, deviceId, node, settled, since, ...how })
}

const heading = {
  product: 'shop',
  callUuid: uuidOf(1),
  version: 7,
  caller: { userId: alice.userId, role: alice.role, displayName: 'ALICE' },
  callee: { userId: bob.userId, role: bob.role, displayName: null },
  contextType: 'order',
  contextId: '42',
  callType: 'video',
  metadata: { subject: 'a question' },
  startedAt: start,
  ringTimeoutMs: ringMs,
  ringExpiresAt: start + ringMs,
}

export const aliceOne = actorOf(alice, 'a-1', 'phone')
export const bobOne = actorOf(bob, 'b-1', 'desk')

export function ringingCall(changes: Partial<RingingCall> = {}): RingingCall {
  return deepFreeze({ ...heading, status: 'ringing', callerPlace: heldBy(aliceOne), silenced: [], ...changes })
}

export function answeredCall(changes: Partial<AnsweredCall> = {}): AnsweredCall {
  const status = changes.status ?? 'accepted'
  return deepFreeze({
    ...heading,
    callee: { ...heading.callee, displayName: 'BOB' },
    status,
    callerPlace: heldBy(aliceOne),
    calleePlace: heldBy(bobOne),
    acceptedAt: start + 5_000,
    connectedAt: status === 'connected' ? start + 6_000 : null,
    ...changes,
  })
}

export function overCall(changes: Partial<OverCall> = {}): OverCall {
  return deepFreeze({
    ...heading,
    status: 'missed',
    callerPlace: heldBy(aliceOne),
    calleePlace: null,
    acceptedAt: null,
    connectedAt: null,
    endedAt: start + ringMs,
    endReason: 'no_answer',
    ...changes,
  })
}

/** The same call from one participant to another. */
export function between<C extends Call>(call: C, caller: Participant, callee: Participant, n: number): C {
  return deepFreeze({
    ...call,
    callUuid: uuidOf(n),
    caller: { ...call.caller, userId: caller.userId, role: caller.role },
    callee: { ...call.callee, userId: callee.userId, role: callee.role },
  })
}
