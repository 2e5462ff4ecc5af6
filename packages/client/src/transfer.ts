/** One side of a call hands the other one over to somebody else [XFER1]. */
import type { Capability } from '@ringwire/protocol/capabilities'
import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type {
  CallTransferFailed,
  CallTransferring,
  CallTransferStarted,
  TransferOrigin as Origin,
} from '@ringwire/protocol/events/call'
import type { CallStatus } from '@ringwire/protocol/rest'
import type { CallSeed } from './call.ts'
import { hearAway } from './call-news.ts'
import { rings } from './call-state.ts'
import { RingwireError } from './error.ts'
import { createListeners, type Listeners } from './listeners.ts'
import type { CallMedia } from './media/types.ts'
import { type ClientWithParts, parts } from './parts.ts'
import type { Reply } from './requests.ts'
import { peerOf, seedOfActive, unknownState } from './seeds.ts'
import type { Call, CallClient, Callee, CallState, OverReason, Peer, RingwireErrorShape, Unsubscribe } from './types.ts'
import type { Push } from './wire.ts'

/** The target: a person or a group, whose devices ring, or the other side of a second call of this client, where nothing rings. */
export type TransferTarget = (
  | (Callee & {
      /** The value of `to.displayName` for the target until it answers. */
      readonly displayName?: string | undefined
    })
  | { readonly to: Call }
) & {
  /** At most 1 KiB of JSON. Default: that of the first call. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

/** How the transfer of a call stands, the same at the side that transfers and at the one that is transferred. Immutable. */
export interface TransferState {
  /**
   * asked: the service has not replied yet. ringing: it rings at the target, and this call goes on. done: the target is in the
   * new call, and this one ends. failed: this call goes on.
   */
  readonly name: 'asked' | 'ringing' | 'done' | 'failed'
  /** With whom the new call is. Undefined at the side that transfers after a reload, and where its backend does. */
  readonly to: Peer | undefined
  /** Undefined until the service has replied. */
  readonly callUuid: string | undefined
  /** The new call, at a side that is transferred. To cancel it while it rings is to stay in this one. */
  readonly call: Call | undefined
  /** failed: how the new call ended. Undefined where that is not known, and where the service refused the transfer. */
  readonly status: CallStatus | undefined
  readonly reason: OverReason | (string & {}) | undefined
  /** failed: why there was no new call. */
  readonly error: RingwireErrorShape | undefined
}

export interface TransferOrigin {
  /** The uuid of the first call. */
  readonly callUuid: string
  readonly by: Peer
}

export interface TransferEvents {
  /** `of()` of this call gives something else. */
  change: Call
  /** This side goes on with `call` in place of `from`, which ends: make its media in the same turn. */
  moved: { readonly from: Call; readonly call: Call }
}

export interface Transfers {
  /**
   * Hands the other side of an answered call over. Resolved when the service has begun it; `of()` says what becomes of it. You
   * may ignore the promise.
   */
  transfer(call: Call, target: TransferTarget): Promise<void>
  /** How the last transfer of the call stands; undefined where there was none. */
  of(call: Call): TransferState | undefined
  /** The origin of a call that began as a transfer: at the target, and at a side that was transferred. */
  origin(call: Call): TransferOrigin | undefined
  on<E extends keyof TransferEvents>(event: E, listener: (payload: TransferEvents[E]) => void): Unsubscribe
  /** Follows no more. */
  close(): void
}

/** The client has to list this: `createCallClient({ …, can: transferCapabilities })`. */
export const transferCapabilities: readonly Capability[] = ['transfer']

const none = { to: undefined, callUuid: undefined, call: undefined, ...failure({}) }

/** The origins of the last 128 calls are remembered. */
const maxOrigins = 128

/** Of one client, and from before it connects: it has to hear when this side is transferred. */
export function createTransfers(client: CallClient): Transfers {
  const { on } = (client as ClientWithParts)[parts]
  const listeners = createListeners<TransferEvents>()
  const states = createStates(listeners)
  const following = createFollowing(client, states, createLinks(client, states, listeners))
  const ends = [on('push', following.hear), on('active', following.reconcile), client.on('calls', following.settle)]

  return {
    transfer: (call, target) => begin(client, states, call, target),
    of: states.of,
    origin: following.origin,
    on: listeners.on,
    close() {
      for (const end of ends) end()
    },
  }
}

/** What the service says of transfers, also of those that the backend or the other side began. */
function createFollowing(client: CallClient, states: States, link: Links) {
  const { live, isNews, add, localTime } = (client as ClientWithParts)[parts]
  const origins = createOrigins()
  /** The new call of a first one that waits for a gesture, by their uuids. */
  const parked = new Map<string, string>()

  function transferring(data: CallTransferring): void {
    const first = live.get(data.call_uuid)?.call
    if (!first) return
    origins.add(data.new_call_uuid, { callUuid: first.callUuid, by: first.peer })
    // This side may have ended it before the service could tell of it.
    if (isNews(data.new_call_uuid)) hearAway(add(seedOf(data, first)), localTime, data.to.away)
    if (!link(first.callUuid, data.new_call_uuid)) parked.set(first.callUuid, data.new_call_uuid)
  }

  function relink(active: readonly ActiveCall[]): void {
    parked.clear()
    for (const { call_uuid: callUuid, transferred_from: from, transferring_to: to } of active) {
      const first = live.get(callUuid)?.call
      if (from) parked.set(from, callUuid)
      else if (to) parked.set(callUuid, to)
      else if (first && states.of(first)?.name === 'ringing') states.fail(first, failure({}))
    }
    settle()
  }

  function settle(): void {
    for (const [first, next] of [...parked]) if (link(first, next)) parked.delete(first)
  }

  return {
    hear(push: Push): void {
      if (push.event === 'call.ringing') origins.read(push.data)
      // The backend transfers the call for this side.
      else if (push.event === 'call.transfer_started') started(live.get(push.data.call_uuid)?.call, states, push.data)
      else if (push.event === 'call.transferring') transferring(push.data)
      else if (push.event === 'call.transfer_failed') failed(live.get(push.data.call_uuid)?.call, states, push.data)
    },
    /** The state after a gap. A new call that the client does not know would wait for a gesture. */
    reconcile(active: readonly ActiveCall[]): void {
      for (const it of active) {
        origins.read(it)
        const isNew = it.holds_place && isNews(it.call_uuid)
        if (isNew && client.find(it.transferred_from ?? '')) add(seedOfActive(it, localTime(it.expires_at)))
      }
      // When the client has looked at them, too.
      queueMicrotask(() => relink(active))
    },
    settle,
    origin: (call: Call) => origins.of(call.callUuid),
  }
}

function started(first: Call | undefined, { become }: States, { new_call_uuid: callUuid }: CallTransferStarted): void {
  if (first) become(first, 'ringing', { to: undefined, callUuid })
}

function failed(first: Call | undefined, states: States, data: CallTransferFailed): void {
  const { new_call_uuid: callUuid, status, end_reason: reason } = data
  const known = first && states.of(first)
  // One that is known already is the same, with less.
  const isNews = known && (states.isOpen(first) || (known.callUuid === callUuid && !known.status))
  if (isNews) states.become(first, 'failed', { ...known, callUuid, ...failure({ status, reason }) })
}

/** Asks the service for a transfer. */
function begin(
  client: CallClient,
  { of, isOpen, become, fail }: States,
  call: Call,
  target: TransferTarget,
): Promise<void> {
  if (isOpen(call)) return quiet(Promise.reject(refused('The call is being transferred already.')))
  const isConsulted = 'to' in target
  become(call, 'asked', { to: isConsulted ? target.to.peer : targetOf(target) })
  const onReply = (reply: Reply) => {
    const known = of(call)
    // The earlier state says more.
    if (known?.callUuid || known?.name === 'done') return
    if (!reply.ok) fail(call, failure({ error: reply.error }))
    else become(call, isConsulted ? 'done' : 'ringing', { callUuid: newUuidOf(reply) })
  }
  const asked = (client as ClientWithParts)[parts].ask({
    event: 'call.transfer',
    data: requestOf(call, target),
    onReply,
  })
  return quiet(
    asked.then(
      () => {},
      (error: RingwireError) => {
        // Repeated in another session, it meets the transfer that it began itself.
        if (of(call)?.callUuid) return
        fail(call, failure({ error }))
        throw error
      },
    ),
  )
}

/** How the transfer of each first call stands. */
function createStates(listeners: Listeners<TransferEvents>) {
  const states = new WeakMap<Call, TransferState>()
  const watched = new WeakSet<Call>()
  const isOpen = (first: Call) => ['asked', 'ringing'].includes(states.get(first)?.name ?? '')

  function become(first: Call, name: TransferState['name'], change: Partial<TransferState>): void {
    states.set(first, { ...none, to: states.get(first)?.to, ...change, name })
    if (!watched.has(first)) watch(first)
    listeners.emit('change', first)
  }

  function fail(first: Call, how: ReturnType<typeof failure>): void {
    if (isOpen(first)) become(first, 'failed', { ...states.get(first), ...how })
  }

  /** The first call ends: by the transfer, or before it. */
  function watch(first: Call): void {
    watched.add(first)
    first.on('state', (state) => {
      if (state.name !== 'over' || !isOpen(first)) return
      if (state.reason === 'transferred') become(first, 'done', { ...states.get(first) })
      else fail(first, failure({ status: 'cancelled', reason: 'transfer_cancelled' }))
    })
  }

  return { of: (first: Call) => states.get(first), isOpen, become, fail }
}

type States = ReturnType<typeof createStates>

type Links = ReturnType<typeof createLinks>

/** Of two calls of which both uuids are known. Returns false if the application does not see the first one. */
function createLinks(client: CallClient, { of, become, fail }: States, listeners: Listeners<TransferEvents>) {
  const { live } = (client as ClientWithParts)[parts]
  const followed = new WeakSet<Call>()

  /** This side goes on with the new call once that is answered. */
  function follow(first: Call, next: Call): void {
    if (followed.has(next)) return
    followed.add(next)
    become(first, 'ringing', { to: next.peer, callUuid: next.callUuid, call: next })
    const look = () => {
      const { state } = next
      if (state.name === 'ringing') return
      end()
      if (state.name === 'over') return fail(first, failure(state))
      // A user who holds the first call must stay silent in the new one.
      if (first.held) void next.hold()
      become(first, 'done', { ...of(first), to: next.peer })
      listeners.emit('moved', { from: first, call: next })
    }
    const end = next.on('state', look)
    look()
  }

  return (firstUuid: string, nextUuid: string): boolean => {
    const first = client.find(firstUuid)
    if (!first) return false
    // If this page goes on with the first call, it also goes on with the next one.
    client.restorable.find(({ callUuid }) => callUuid === nextUuid)?.resume()
    const next = live.get(nextUuid)?.call
    if (next) follow(first, next)
    else if (of(first)?.callUuid !== nextUuid) become(first, 'ringing', { callUuid: nextUuid })
    return true
  }
}

/** The origins of calls that began as transfers, by their uuids. */
function createOrigins() {
  const origins = new Map<string, TransferOrigin>()

  function add(callUuid: string, origin: TransferOrigin): void {
    origins.set(callUuid, origin)
    if (origins.size > maxOrigins) origins.delete(origins.keys().next().value as string)
  }

  return {
    of: (callUuid: string) => origins.get(callUuid),
    add,
    read({ call_uuid, transferred_from: callUuid, transferred_by: by }: Origin & { call_uuid: string }): void {
      if (callUuid && by) add(call_uuid, { callUuid, by: peerOf(by) })
    },
  }
}

/** Mutes in the new call what was muted in the first one. Call it before `start()` of the new one. */
export function carryMutes(from: Pick<CallMedia, 'state'>, to: Pick<CallMedia, 'setMuted'>): void {
  for (const kind of ['audio', 'video'] as const) if (from.state.muted[kind]) void to.setMuted(kind, true)
}

function failure({ status, reason, error }: Partial<Pick<TransferState, 'status' | 'reason' | 'error'>>) {
  return { status, reason, error }
}

/** Whose new call is outgoing has not made it: it is invited from the beginning. */
function seedOf({ new_call_uuid: callUuid, status, direction, to }: CallTransferring, first: Call): CallSeed {
  const { callType, contextType, contextId } = first
  const state = (status === 'ringing' ? { ...rings(direction), invited: true } : { name: status }) as CallState
  const about = { callType, contextType, contextId, metadata: undefined }
  return { callUuid, direction, peer: peerOf(to), group: to.group, peerState: unknownState, ...about, state }
}

function targetOf({ userId, role, displayName }: Callee & { displayName?: string | undefined }): Peer {
  return { userId: userId ?? null, role, displayName: displayName ?? null }
}

function requestOf({ callUuid: call_uuid }: Call, target: TransferTarget): object {
  const { metadata } = target
  if ('to' in target) return { call_uuid, to_call_uuid: target.to.callUuid, metadata }
  return { call_uuid, to_user_id: target.userId, to_group: target.group, to_role: target.role, metadata }
}

function newUuidOf(reply: Extract<Reply, { ok: true }>): string {
  return (reply.data as { new_call_uuid: string }).new_call_uuid
}

const refused = (message: string) => new RingwireError('CALL_INVALID_STATE', message)

/** Nobody has to look at it. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
