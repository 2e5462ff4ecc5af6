import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { EndReasonOf, OverStatus } from '@ringwire/protocol/end-reasons'
import type { CallAck } from '@ringwire/protocol/events/call'
import { afterAccept, afterConfirm, afterRefusal } from './call-replies.ts'
import { type CallInput, isUnanswered, nextCallState } from './call-state.ts'
import { listensTo, RingwireError } from './error.ts'
import { createListeners } from './listeners.ts'
import { createOwnMedia, type OwnMedia } from './own-media.ts'
import type { Reply, Request } from './requests.ts'
import { createSignals } from './signals.ts'
import type { Call, CallClient, CallEvents, Participant, Peer, PeerState } from './types.ts'

/** The first known facts of a call. */
export type CallSeed = Pick<
  Call,
  | 'callUuid'
  | 'direction'
  | 'peer'
  | 'group'
  | 'peerState'
  | 'callType'
  | 'contextType'
  | 'contextId'
  | 'metadata'
  | 'state'
>

/** Only the client changes what applications may only read. */
type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

export interface CallPort {
  ask(request: Request): Promise<unknown>
  /** Takes back its invite or its accept; whether that had no effect for sure. */
  withdraw(callUuid: string, event?: 'call.invite' | 'call.accept'): boolean
  /** The live call with this uuid. If a group rings at its member again, that is another object [GROUP1]. */
  live(callUuid: string): LiveCall | undefined
  self(): Participant | null
  client(): CallClient
  /** An error rejected the promise of a listener. */
  rejected(cause: unknown): boolean
  /** Its uuid changed, or it is over. */
  changed(call: LiveCall, uuidBefore: string): void
}

/** A call with what only the client may do to it. */
export interface LiveCall {
  readonly call: Call
  apply(input: CallInput | undefined): void
  emit<E extends keyof CallEvents>(event: E, payload: CallEvents[E]): void
  receive: ReturnType<typeof createSignals>['receive']
  /** It is another call than the one that the application wanted. */
  become(seed: Partial<Omit<CallSeed, 'state' | 'peer'>>): void
  /** News of the other side. */
  learn(change: Partial<PeerState>, peer?: Partial<Peer>): void
  /** The signals so far belong to a negotiation that is gone. */
  resync(restored: boolean): void
  /** Asks whether the call goes on, and here. */
  confirm(): void
  /** Settles `invited`. */
  invited(error?: RingwireError): void
  accept(): Promise<void>
}

/** A call as the functions of this file know it. */
interface OwnCall extends LiveCall {
  readonly port: CallPort
  /** The service is being asked to accept it. */
  accepting?: Promise<void> | undefined
}

export function createCall(seed: CallSeed, port: CallPort): LiveCall {
  const listeners = createListeners<CallEvents>({
    admit: listensTo(
      'state',
      'offer',
      'answer',
      'candidate',
      'peer',
      'alerting',
      'status',
      'resynced',
      'glare',
      'held',
    ),
    rejected: port.rejected,
  })
  const { on, claim, drop, receive } = createSignals(listeners)
  let settle: LiveCall['invited'] = () => {}
  const invited = new Promise<void>((resolve, reject) => {
    settle = (error) => (error ? reject(error) : resolve())
  })
  const own = createOwnMedia({
    send: (data) => ask(live, 'call.media', {}, { data, insistent: true }),
    callUuid: () => call.callUuid,
    changed(held) {
      call.held = held
      listeners.emit('held', held)
    },
  })

  const call = { ...seed, invited: quiet(invited), held: false, on, claimSignals: claim } as Mutable<
    Omit<Call, 'client'>
  >
  const live: OwnCall = {
    // Not enumerable: a client holds its calls, and a circle cannot be printed.
    call: Object.defineProperty(call, 'client', { get: port.client }) as Call,
    port,
    apply(input) {
      const { state } = call
      const next = input ? nextCallState(state, input) : state
      if (next === state) return
      call.state = next
      if (next.name === 'over') {
        drop()
        settle((next.error as RingwireError | undefined) ?? overError(call))
        port.changed(live, call.callUuid)
      }
      listeners.emit('state', next)
    },
    accept: () => accept(live),
    confirm: () => confirm(live),
    emit: listeners.emit,
    receive,
    invited: settle,
    become(next) {
      const before = call.callUuid
      Object.assign(call, next)
      if (call.callUuid !== before) port.changed(live, before)
    },
    learn(change, peer) {
      if (peer) call.peer = { ...call.peer, ...peer }
      call.peerState = { ...call.peerState, ...change }
      listeners.emit('peer', call.peerState)
    },
    resync(restored) {
      drop()
      listeners.emit('resynced', { restored })
      own.repeat()
    },
  }
  Object.assign(call, verbsOf(live, own))
  if (!isUnanswered(live.call)) settle()
  return live
}

/** What the application may do with a call. */
function verbsOf(it: OwnCall, own: OwnMedia) {
  const end = (reason?: string) => {
    const { state } = it.call
    if (state.name !== 'ringing') return hangUp(it, 'call.end', reason)
    return hangUp(it, state.direction === 'outgoing' ? 'call.cancel' : 'call.reject', reason)
  }
  return {
    accept: it.accept,
    reject: end,
    cancel: (reason) => (it.call.direction === 'outgoing' ? hangUp(it, 'call.cancel', reason) : end(reason)),
    end,
    connected: () => ask(it, 'call.connected', {}, { onReply: (reply) => reply.ok && it.apply({ type: 'connected' }) }),
    alerting: () => ask(it, 'call.alerting'),
    hold: () => setHeld(it, own, true),
    resume: () => setHeld(it, own, false),
    sendMedia: own.tell,
    sendStats: (stats) => ask(it, 'call.stats', { stats }, { insistent: true }),
    sendOffer: (sdp) => ask(it, 'webrtc.offer', { sdp }),
    sendAnswer: (sdp) => ask(it, 'webrtc.answer', { sdp }),
    sendCandidate: (candidate) =>
      candidate === null ? Promise.resolve() : ask(it, 'webrtc.ice_candidate', { candidate }),
  } satisfies Partial<Call>
}

function overError({ state }: Pick<Call, 'state'>): RingwireError {
  const { error: cause } = state as { readonly error?: unknown }
  return new RingwireError('CALL_OVER', 'The call is over.', { cause })
}

function ask(
  { call, port, apply }: OwnCall,
  event: ClientEventName,
  data = {},
  more: Partial<Request> = {},
): Promise<void> {
  if (call.state.name === 'over' && !more.insistent) return refused(overError(call))
  const onReply = (reply: Reply) => {
    more.onReply?.(reply)
    if (!reply.ok) apply(afterRefusal(event, reply.error, call.state))
  }
  const asked = port.ask({ event, data: { call_uuid: call.callUuid, ...data }, ...more, onReply })
  return quiet(
    asked.then((reply) => {
      if (event.startsWith('webrtc.') && isOver(reply as CallAck)) throw overError(call)
    }),
  )
}

/** The service acknowledges what comes after the end of the call, and drops it [END1]. */
function isOver({ status }: CallAck): boolean {
  // Whether it is over here as well says nothing about this relay.
  return nextCallState({ name: 'connected' }, { type: 'stands', status }).name === 'over'
}

/** Sends an empty candidate: the service checks whose place it is, and the peer hears nothing [ENV3, PLACE4]. */
function confirm(it: OwnCall): void {
  const onReply = (reply: Reply) => it.apply(afterConfirm(reply))
  void ask(it, 'webrtc.ice_candidate', { candidate: null }, { insistent: true, onReply })
}

function accept(it: OwnCall): Promise<void> {
  const { name } = it.call.state
  if (name === 'accepted' || name === 'connected') return Promise.resolve()
  if (name === 'over') return refused(overError(it.call))
  if (it.accepting) return it.accepting
  it.apply({ type: 'answering', on: true })
  const onReply = (reply: Reply) => {
    // A group may ring here again before the reply comes. The accept then answered the new ring [GROUP1].
    const answered = (reply.ok && it.port.live(it.call.callUuid)) || it
    answered.apply(afterAccept(reply))
    if (reply.ok) answered.invited()
  }
  // Insistent: who pressed Accept has answered, however long the network takes. The service refuses it once the ring is over.
  const asked = ask(it, 'call.accept', {}, { insistent: true, onReply })
  it.accepting = quiet(
    asked.finally(() => {
      it.accepting = undefined
    }),
  )
  return it.accepting
}

/** Hanging up never fails [END1], so here the call is over at once. */
function hangUp(it: OwnCall, event: 'call.cancel' | 'call.reject' | 'call.end', given: unknown): Promise<void> {
  const { call, port } = it
  if (call.state.name === 'over') return Promise.resolve()
  const [status, usual] = ends[event]
  // A click handler is called with its event, which is no reason and may have no JSON.
  const reason = typeof given === 'string' ? given : undefined
  // An accept that waits for the network would answer the call for a moment.
  port.withdraw(call.callUuid, 'call.accept')
  // One that was never sent has nothing to end.
  const asked = port.withdraw(call.callUuid) ? Promise.resolve() : ask(it, event, { reason }, { insistent: true })
  it.apply({ type: 'over', status, reason: reason ?? usual, by: port.self() })
  return quiet(
    asked.catch((error: RingwireError) => {
      if (error.code !== 'CALL_NOT_FOUND') throw error
    }),
  )
}

function setHeld({ call }: OwnCall, own: OwnMedia, held: boolean): Promise<void> {
  const { name } = call.state
  if (name === 'over') return refused(overError(call))
  if (name !== 'ringing' || !held) return own.setHeld(held)
  return refused(new RingwireError('CALL_INVALID_STATE', 'A call that rings cannot be put on hold.'))
}

type Ending = { [S in OverStatus]: readonly [S, EndReasonOf<S>] }[OverStatus]

/** The result of each way of hanging up: the status of the call, and the reason if none is given. */
const ends = {
  'call.cancel': ['cancelled', 'caller_cancelled'],
  'call.reject': ['rejected', 'declined'],
  'call.end': ['ended', 'hangup'],
} as const satisfies Record<string, Ending>

/** Nobody has to look at it. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

function refused(error: RingwireError): Promise<never> {
  return quiet(Promise.reject(error))
}
