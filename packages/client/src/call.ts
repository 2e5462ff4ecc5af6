import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { EndReasonOf, OverStatus } from '@ringwire/protocol/end-reasons'
import type { CallAck } from '@ringwire/protocol/events/call'
import { afterAccept, afterConfirm, afterRefusal } from './call-replies.ts'
import { type CallInput, isUnanswered, nextCallState } from './call-state.ts'
import { listensTo, RingwireError } from './error.ts'
import { createListeners } from './listeners.ts'
import { createOwnMedia } from './own-media.ts'
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
  apply(input: CallInput): void
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
  const signals = createSignals(listeners)
  let accepting: Promise<void> | undefined
  let settleInvited: (error?: RingwireError) => void = () => {}
  const invited = new Promise<void>((resolve, reject) => {
    settleInvited = (error) => (error ? reject(error) : resolve())
  })
  invited.catch(() => {})

  function apply(input: CallInput | undefined): void {
    const next = input ? nextCallState(call.state, input) : call.state
    if (next === call.state) return
    call.state = next
    if (next.name === 'over') {
      signals.drop()
      settleInvited((next.error as RingwireError | undefined) ?? overError())
      port.changed(live, call.callUuid)
    }
    listeners.emit('state', next)
  }

  function overError(): RingwireError {
    const { error: cause } = call.state as { readonly error?: unknown }
    return new RingwireError('CALL_OVER', 'The call is over.', { cause })
  }

  function ask(event: ClientEventName, data: object = {}, more: Partial<Request> = {}): Promise<void> {
    if (call.state.name === 'over' && !more.insistent) return quiet(Promise.reject(overError()))
    const onReply = (reply: Reply) => {
      more.onReply?.(reply)
      if (!reply.ok) apply(afterRefusal(event, reply.error, call.state))
    }
    const asked = port.ask({ event, data: { call_uuid: call.callUuid, ...data }, ...more, onReply })
    return quiet(
      asked.then((reply) => {
        if (event.startsWith('webrtc.')) checkPassed(reply as CallAck)
      }),
    )
  }

  /** The service acknowledges what comes after the end of the call, and drops it [END1]. */
  function checkPassed({ status }: CallAck): void {
    // Whether it is over here as well says nothing about this relay.
    if (nextCallState({ name: 'connected' }, { type: 'stands', status }).name === 'over') throw overError()
  }

  /** Sends an empty candidate: the service checks whose place it is, and the peer hears nothing [ENV3, PLACE4]. */
  function confirm(): void {
    void ask(
      'webrtc.ice_candidate',
      { candidate: null },
      { insistent: true, onReply: (reply) => apply(afterConfirm(reply)) },
    )
  }

  function accept(): Promise<void> {
    const { name } = call.state
    if (name === 'accepted' || name === 'connected') return Promise.resolve()
    if (name === 'over') return quiet(Promise.reject(overError()))
    if (accepting) return accepting
    apply({ type: 'answering', on: true })
    // Insistent: who pressed Accept has answered, however long the network takes. The service refuses it once the ring is over.
    const onReply = (reply: Reply) => {
      apply(afterAccept(reply))
      if (reply.ok) settleInvited()
    }
    const asked = ask('call.accept', {}, { insistent: true, onReply })
    accepting = quiet(
      asked.finally(() => {
        accepting = undefined
      }),
    )
    return accepting
  }

  /** Hanging up never fails [END1], so here the call is over at once. */
  function hangUp(event: 'call.cancel' | 'call.reject' | 'call.end', given: unknown): Promise<void> {
    if (call.state.name === 'over') return Promise.resolve()
    const [status, usual] = ends[event]
    // A click handler is called with its event, which is no reason and may have no JSON.
    const reason = typeof given === 'string' ? given : undefined
    // An accept that waits for the network would answer the call for a moment.
    port.withdraw(call.callUuid, 'call.accept')
    // One that was never sent has nothing to end.
    const asked = port.withdraw(call.callUuid) ? Promise.resolve() : ask(event, { reason }, { insistent: true })
    apply({ type: 'over', status, reason: reason ?? usual, by: port.self() })
    return quiet(
      asked.catch((error: RingwireError) => {
        if (error.code !== 'CALL_NOT_FOUND') throw error
      }),
    )
  }

  const own = createOwnMedia({
    send: (data) => ask('call.media', {}, { data, insistent: true }),
    callUuid: () => call.callUuid,
    changed(held) {
      call.held = held
      listeners.emit('held', held)
    },
  })

  function setHeld(held: boolean): Promise<void> {
    const { name } = call.state
    if (name === 'over') return quiet(Promise.reject(overError()))
    if (name !== 'ringing' || !held) return own.setHeld(held)
    return quiet(Promise.reject(new RingwireError('CALL_INVALID_STATE', 'A call that rings cannot be put on hold.')))
  }

  function end(reason?: string): Promise<void> {
    const { state } = call
    if (state.name !== 'ringing') return hangUp('call.end', reason)
    return hangUp(state.direction === 'outgoing' ? 'call.cancel' : 'call.reject', reason)
  }

  const call: Mutable<Omit<Call, 'client'>> = {
    ...seed,
    invited,
    on: signals.on,
    accept,
    reject: end,
    cancel: (reason) => (call.direction === 'outgoing' ? hangUp('call.cancel', reason) : end(reason)),
    end,
    connected: () => ask('call.connected', {}, { onReply: (reply) => reply.ok && apply({ type: 'connected' }) }),
    alerting: () => ask('call.alerting'),
    held: false,
    hold: () => setHeld(true),
    resume: () => setHeld(false),
    sendMedia: own.tell,
    sendStats: (stats) => ask('call.stats', { stats }, { insistent: true }),
    sendOffer: (sdp) => ask('webrtc.offer', { sdp }),
    sendAnswer: (sdp) => ask('webrtc.answer', { sdp }),
    sendCandidate: (candidate) => (candidate === null ? Promise.resolve() : ask('webrtc.ice_candidate', { candidate })),
    claimSignals: signals.claim,
  }

  const live: LiveCall = {
    // Not enumerable: a client holds its calls, and a circle cannot be printed.
    call: Object.defineProperty(call, 'client', { get: port.client }) as Call,
    apply,
    accept,
    confirm,
    emit: listeners.emit,
    receive: signals.receive,
    invited: (error) => settleInvited(error),
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
      signals.drop()
      listeners.emit('resynced', { restored })
      own.repeat()
    },
  }
  if (!isUnanswered(live.call)) settleInvited()
  return live
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
