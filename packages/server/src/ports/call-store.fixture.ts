import type { AnsweredCall, Call, LiveCall, OverCall, Participant, Party, Place, RingingCall } from '../call/call.ts'
import type { CallEvent, Step } from '../call/effects.ts'
import type { CallSteps, CallStore, Ended, LiveCallReads } from './call-store.ts'

/** What a suite needs of an adapter besides its port. */
export interface CallStoreHarness<Store extends CallSteps & LiveCallReads = CallStore> {
  /** The store that is open now. */
  store(): Store
  /** Commits made by the store so far. */
  commits(): number
  /** Writes a step as another process would, unknown to the store. */
  forge(step: Step): Promise<void>
  /** Versions of a call in its events, in order. */
  versions(callUuid: string): Promise<number[]>
  /** Closes the store and opens it again on the same data; what is done in between has it for itself. */
  reopen(between?: () => Promise<void>): Promise<void>
  /** Closes the store and removes its data. */
  close(): Promise<void>
}

/** Calls and steps as the contract suites need them: right in shape, with no more meaning than that. */

export const product = 'clinic'

export function participant(userId: string, role = 'patient'): Participant {
  return { product, role, userId }
}

export function held(sessionId = 'session-1'): Place {
  return { state: 'held', sessionId, deviceId: null, node: 'node-1', settled: true }
}

export function event(type: CallEvent['type'], at = 0): CallEvent {
  return { type, at, by: null, notices: [] }
}

function party({ userId, role }: Participant, displayName: string | null): Party {
  return { userId, role, displayName }
}

/** Version 1 of a call that rings. */
export function ringing(
  caller = participant(crypto.randomUUID()),
  callee = participant(crypto.randomUUID(), 'doctor'),
  fields: Partial<RingingCall> = {},
): RingingCall {
  return {
    product: caller.product,
    callUuid: crypto.randomUUID(),
    version: 1,
    status: 'ringing',
    caller: party(caller, 'The caller'),
    callee: party(callee, null),
    contextType: 'appointment',
    contextId: '4711',
    callType: 'audio',
    metadata: null,
    startedAt: 1_000_000,
    ringTimeoutMs: 45_000,
    ringExpiresAt: 1_045_000,
    callerPlace: held(),
    silenced: [],
    ...fields,
  }
}

export function created(call: Call): Step {
  return { call, event: event('invited', call.startedAt) }
}

/** The next version, with one thing changed that every live call has. */
export function touched(call: Call, note: string): Step {
  return {
    call: { ...call, version: call.version + 1, callerPlace: held(note) },
    event: event('place_taken', call.startedAt),
  }
}

export function accepted(call: RingingCall, at = call.startedAt + 1000): Step {
  const { silenced: _, ...rest } = call
  const next: AnsweredCall = {
    ...rest,
    version: call.version + 1,
    status: 'accepted',
    callee: { ...call.callee, displayName: 'The callee' },
    calleePlace: held('session-2'),
    acceptedAt: at,
    connectedAt: null,
  }
  return { call: next, event: event('accepted', at) }
}

/** The two calls of a transfer [XFER1]: the one that goes on, and the one that rings at the target. */
export function transferring(): readonly [first: AnsweredCall, next: RingingCall] {
  const rings = ringing()
  const first = accepted(rings).call as AnsweredCall
  const next = ringing(participant(rings.caller.userId), undefined, {
    transferred: { from: first.callUuid, by: first.callee, firstStartedAt: first.startedAt },
  })
  return [{ ...first, version: 1, transferring: { to: next.callUuid, by: 'callee' } }, next]
}

export function ended(call: LiveCall, at = call.startedAt + 5000): Step {
  const { silenced: _, ...rest } = { silenced: [], ...call }
  const answered = call.status === 'ringing' ? undefined : call
  const next: OverCall = {
    ...rest,
    version: call.version + 1,
    status: 'ended',
    calleePlace: answered?.calleePlace ?? null,
    acceptedAt: answered?.acceptedAt ?? null,
    connectedAt: answered?.connectedAt ?? null,
    endedAt: at,
    endReason: 'hangup',
  }
  return { call: next, event: event('ended', at) }
}

/** For a decision in a test that must find a call. */
export function there<C>(call: C | undefined): C {
  if (call === undefined) throw new Error('There is no such call.')
  return call
}

/** Every call that ended at or after an instant, whatever page it is on. */
export async function overSince(store: Pick<LiveCallReads, 'overPages'>, since: number): Promise<Ended[]> {
  const pages: (readonly Ended[])[] = []
  for await (const page of store.overPages(since)) pages.push(page)
  return pages.flat()
}

/** Every live call, whatever page it is on. */
export async function liveIn(store: Pick<LiveCallReads, 'livePages'>): Promise<LiveCall[]> {
  const pages: (readonly LiveCall[])[] = []
  for await (const page of store.livePages()) pages.push(page)
  return pages.flat()
}
