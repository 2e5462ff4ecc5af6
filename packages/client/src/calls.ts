import type { ElsewhereReason } from '@ringwire/protocol/end-reasons'
import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { CallInvited, CallRinging, PeerAbsence } from '@ringwire/protocol/events/call'
import { type CallPort, type CallSeed, createCall, isUnanswered, type LiveCall } from './call.ts'
import { overFromWire } from './call-state.ts'
import type { Environment } from './environment.ts'
import { check, RingwireError } from './error.ts'
import type { Listeners } from './listeners.ts'
import type { Reply, Requests } from './requests.ts'
import {
  type Call,
  type CallClient,
  type CallOptions,
  type CallState,
  type ClientEvents,
  type ConnectionState,
  type Direction,
  ownReasons,
  type Participant,
  type Peer,
  type RestorableCall,
  type RingwireErrorShape,
} from './types.ts'
import type { Push } from './wire.ts'

export interface CallsOptions {
  readonly requests: Requests
  readonly listeners: Listeners<ClientEvents>
  readonly env: Pick<Environment, 'now' | 'uuid'>
  self(): Participant | null
  client(): CallClient
  rejected: CallPort['rejected']
  connectionState(): ConnectionState
  /** The service's instant by this device's clock. */
  localTime(iso: string): number
}

/** What the service takes as a type of call [INV1]. */
const callTypes = /^[a-z0-9_-]{1,32}$/
/** Calls that are over are remembered so far back: what is still said about them is not news. */
const maxFinished = 128

/** The calls of a client, from their first word to their last. */
export function createCalls({ requests, listeners, env, self, localTime, ...options }: CallsOptions) {
  const live = new Map<string, LiveCall>()
  /** Calls of somebody whom this client is inviting at this moment: glare, if the service says so [INV6]. */
  const held = new Set<string>()
  const finished = new Set<string>()
  /** Calls that wait for a gesture before they go on here. */
  const parked = new Map<string, RestorableCall>()
  let list: readonly Call[] = []
  let restorable: readonly RestorableCall[] = []

  const port: CallPort = {
    ask: requests.ask,
    withdraw: requests.withdraw,
    self,
    client: options.client,
    rejected: options.rejected,
    changed(it, before) {
      live.delete(before)
      held.delete(before)
      unpark(before)
      if (it.call.state.name === 'over') finish(before)
      else live.set(it.call.callUuid, it)
      refresh()
    },
  }

  function finish(callUuid: string): void {
    finished.add(callUuid)
    if (finished.size > maxFinished) finished.delete(finished.values().next().value as string)
    release()
  }

  function refresh(): void {
    const isShown = ({ callUuid }: Call) => !held.has(callUuid) && !parked.has(callUuid)
    const next = [...live.values()].map(({ call }) => call).filter(isShown)
    if (next.length === list.length && next.every((call, i) => call === list[i])) return
    list = next
    listeners.emit('calls', list)
  }

  function add(seed: Omit<CallSeed, 'peerState'>): LiveCall {
    const it = createCall({ ...seed, peerState: { away: null, media: null } }, port)
    live.set(seed.callUuid, it)
    return it
  }

  /** A call that this client knows by the service's word alone. */
  function hearOf(data: ActiveCall | CallRinging, direction: Direction, peer: Peer, state: CallState): LiveCall {
    const { call_uuid: callUuid, call_type: callType, context_type: contextType, context_id: contextId } = data
    const metadata = 'metadata' in data ? data.metadata : undefined
    return add({ callUuid, direction, peer, callType, contextType, contextId, metadata, state })
  }

  function announce(it: LiveCall): void {
    held.delete(it.call.callUuid)
    refresh()
    listeners.emit('incoming', it.call)
  }

  function announceOrHold(it: LiveCall): void {
    if (isInviting(it.call.peer)) held.add(it.call.callUuid)
    else announce(it)
  }

  function isInviting(peer: Participant): boolean {
    return [...live.values()].some(({ call }) => isUnanswered(call) && isSame(call.peer, peer))
  }

  function place(wish: CallOptions): Call {
    const { userId, role, callType = 'audio', onGlare = 'accept' } = wish ?? {}
    check(userId && role, 'userId, role', 'given')
    check(callTypes.test(callType), 'callType', `${callTypes}`)
    const { name, why } = options.connectionState()
    if (name === 'idle') throw new RingwireError('NOT_STARTED', 'Call connect() before call().')
    const ringing = [...live.values()].find(({ call }) => call.state.name === 'ringing' && isSame(call.peer, wish))
    if (ringing?.call.direction === 'outgoing') return parked.get(ringing.call.callUuid)?.resume() ?? ringing.call
    if (ringing && onGlare === 'accept') {
      void ringing.accept()
      return ringing.call
    }
    const it = add({
      callUuid: env.uuid(),
      direction: 'outgoing',
      peer: { userId, role, displayName: wish.displayName ?? null },
      callType,
      contextType: wish.contextType,
      contextId: wish.contextId,
      metadata: wish.metadata,
      state: rings('outgoing', undefined),
    })
    refresh()
    if (name !== 'closed') invite(it, wish, onGlare)
    // In a moment: whoever called has no listener yet.
    else queueMicrotask(() => failed(it, onGlare, new RingwireError('CONNECTION_CLOSED', why.message)))
    return it.call
  }

  function invite(it: LiveCall, options: CallOptions, onGlare: 'accept' | 'error'): void {
    const { callUuid } = it.call
    const data = {
      callee_user_id: options.userId,
      callee_role: options.role,
      call_type: options.callType,
      context_type: options.contextType,
      context_id: options.contextId,
      metadata: options.metadata,
      ring_timeout_ms: options.ringTimeoutMs,
      call_uuid: callUuid,
    }
    let isAnswered = false
    const onReply = (reply: Reply) => {
      isAnswered = true
      answered(it, onGlare, reply)
    }
    // Nobody waits for it any more, so nobody may be rung.
    const onUnsure = () => cancel(callUuid)
    requests.ask({ event: 'call.invite', data, onReply, onUnsure }).catch((error: RingwireError) => {
      if (!isAnswered) failed(it, onGlare, error)
    })
  }

  function cancel(callUuid: string): void {
    void requests.ask({ event: 'call.cancel', data: { call_uuid: callUuid }, insistent: true })
  }

  function answered(it: LiveCall, onGlare: 'accept' | 'error', reply: Reply): void {
    const { call } = it
    if (!reply.ok) {
      failed(it, onGlare, reply.error)
      return
    }
    const data = reply.data as CallInvited
    if (call.state.name === 'over') {
      // It was taken back before the service knew it, or by a name that it does not have [INV7].
      cancel(data.call_uuid)
      return
    }
    if (data.call_uuid !== call.callUuid) it.become({ callUuid: data.call_uuid })
    it.apply({ type: 'invited', delivered: data.delivered, expiresAt: localTime(data.expires_at) })
    it.invited()
    it.apply({ type: 'stands', status: data.status })
    release()
  }

  function failed(it: LiveCall, onGlare: 'accept' | 'error', error: RingwireError): void {
    if (it.call.state.name === 'over') return
    if (error.code !== 'CALL_GLARE' || error.callUuid === undefined) {
      it.apply({ type: 'over', reason: ownReasons.failed, error })
      return
    }
    it.emit('glare', error)
    if (onGlare === 'accept') take(it, error.callUuid)
    else it.apply({ type: 'over', reason: ownReasons.glare, error })
  }

  /** Both called each other at once and the peer's invite was first: both want to talk, so this call becomes that one. */
  function take(it: LiveCall, callUuid: string): void {
    const { callType, contextType, contextId, metadata, state } = (live.get(callUuid) ?? it).call
    live.delete(callUuid)
    held.delete(callUuid)
    it.apply({ type: 'taken', expiresAt: (state.name === 'ringing' && state.expiresAt) || env.now() })
    it.become({ callUuid, direction: 'incoming', callType, contextType, contextId, metadata })
    it.accept().catch((error: RingwireError) => it.invited(error))
  }

  /** Calls that were held back because they might have been glare. */
  function release(): void {
    for (const callUuid of [...held]) {
      const it = live.get(callUuid)
      if (it && !isInviting(it.call.peer)) announce(it)
    }
  }

  function hearRinging(data: CallRinging): void {
    const { call_uuid: callUuid, metadata } = data
    const expiresAt = env.now() + data.ring_timeout_ms
    const known = live.get(callUuid)
    if (known) {
      if (metadata) known.become({ metadata })
      known.apply({ type: 'rings until', expiresAt })
      return
    }
    if (finished.has(callUuid)) return
    const peer = { userId: data.caller_user_id, role: data.caller_role, displayName: data.display_name }
    announceOrHold(hearOf(data, 'incoming', peer, rings('incoming', expiresAt)))
  }

  /** What the service says about a call that this client knows. */
  function hear(it: LiveCall, push: Push): void {
    switch (push.event) {
      case 'call.accepted':
        // Again: another session is at the other end, and knows nothing of what was signalled [PLACE5].
        if (it.call.state.name !== 'ringing') {
          // Nor does it go on with what the one before it sent [MEDIA1].
          if (it.call.peerState.media) it.learn({ media: null })
          it.resync(false)
        }
        if (push.data.display_name) it.learn({}, push.data.display_name)
        it.apply({ type: 'accepted' })
        break
      case 'call.status':
        it.emit('status', { status: 'connected', by: participant(push.data.by) })
        it.apply({ type: 'connected' })
        break
      case 'call.alerting':
        it.emit('alerting', participant(push.data.by))
        it.apply({ type: 'alerting' })
        break
      case 'call.media': {
        const { audio, video, screen } = push.data
        it.learn({ media: { audio, video, screen } })
        break
      }
      case 'call.peer_away':
        hearAway(it, push.data)
        break
      case 'call.peer_back':
        hearAway(it)
        break
      case 'webrtc.offer':
        it.receive({ event: 'offer', payload: push.data.sdp })
        break
      case 'webrtc.answer':
        it.receive({ event: 'answer', payload: push.data.sdp })
        break
      case 'webrtc.ice_candidate':
        if (push.data.candidate !== null) it.receive({ event: 'candidate', payload: push.data.candidate })
        break
      default:
        // All final notices, and nothing else, say when the call ended [END2].
        if ('ended_at' in push.data) it.apply(overFromWire(push.data))
    }
  }

  function hearAway(it: LiveCall, away?: PeerAbsence): void {
    if (away) it.learn({ away: { since: localTime(away.since), endsAt: localTime(away.ends_at) } })
    else if (it.call.peerState.away) it.learn({ away: null })
  }

  /** A call that this client knows, after a gap in what it heard. */
  function catchUp(it: LiveCall, active: ActiveCall | undefined): void {
    const { state } = it.call
    if (!active) {
      // An invite without an answer is asked again, and says itself what became of it.
      if (isUnanswered(it.call)) return
      // Who asks about a call that is over is told how it ended [END4].
      if (hadPlace(it.call)) it.confirm()
      else it.apply({ type: 'over', reason: ownReasons.lost })
      return
    }
    const isElsewhere = active.status !== 'ringing' && !active.holds_place
    if (isElsewhere && ringsHere(state)) {
      // An accept that is on its way says itself what became of it.
      if (!state.answering)
        it.apply({ type: 'over', status: 'accepted', reason: 'answered_elsewhere' satisfies ElsewhereReason })
      return
    }
    it.apply({ type: 'stands', status: active.status })
    confirm(it, active)
    it.resync(false)
  }

  /**
   * Who has no place hears nothing, not even the end. A place that the service does not show here may be another
   * session's, or about to become this one's [PLACE4]: it has to be asked.
   */
  function confirm(it: LiveCall, active: ActiveCall | undefined): void {
    if (active) hearAway(it, active.peer.away)
    if (hadPlace(it.call) && active?.holds_place !== true) it.confirm()
  }

  /** A live call of this session that this page did not know. It goes on at once where the page was just loaded again. */
  function restore(active: ActiveCall, rejoins: boolean): void {
    const { status, direction, peer } = active
    const state = status === 'ringing' ? rings(direction, localTime(active.expires_at)) : { name: status }
    const it = hearOf(active, direction, { ...participant(peer), displayName: peer.display_name }, state)
    if (ringsHere(state)) {
      announceOrHold(it)
      return
    }
    hearAway(it, active.peer.away)
    if (!rejoins) {
      park(it, localTime(active.started_at))
      return
    }
    refresh()
    listeners.emit('restored', it.call)
    it.resync(true)
  }

  function park(it: LiveCall, startedAt: number): void {
    const { callUuid, peer, callType, direction, end } = it.call
    const resume = () => {
      if (unpark(callUuid)) {
        refresh()
        // Whoever makes its media in this turn hears that it has to begin anew.
        queueMicrotask(() => it.resync(true))
      }
      return it.call
    }
    parked.set(callUuid, { callUuid, peer, callType, direction, startedAt, resume, end })
    tellParked()
  }

  function unpark(callUuid: string): boolean {
    const wasThere = parked.delete(callUuid)
    if (wasThere) tellParked()
    return wasThere
  }

  function tellParked(): void {
    restorable = [...parked.values()]
    listeners.emit('restorable', restorable)
  }

  return {
    place,
    list: (): readonly Call[] => list,
    restorable: (): readonly RestorableCall[] => restorable,
    find: (callUuid: string): Call | undefined => list.find((call) => call.callUuid === callUuid.toLowerCase()),

    receive(push: Push): void {
      if (push.event === 'call.ringing') hearRinging(push.data)
      else if ('call_uuid' in push.data) {
        const it = live.get(push.data.call_uuid)
        if (it) hear(it, push)
      }
    },

    /** Nothing that was said is lost, but this session may have lost its places while it was away. */
    recovered(active: readonly ActiveCall[]): void {
      for (const it of live.values()) confirm(it, find(active, it))
    },

    /** What was said may have been lost: `active` is what there is. Calls that ring are told anew, or are not. */
    reconcile(active: readonly ActiveCall[], ringsFollow: boolean, rejoins: boolean): void {
      for (const it of [...live.values()]) catchUp(it, find(active, it))
      this.adopt(active, ringsFollow, rejoins)
    },

    /** Takes up what this page does not know, without a word about the rest. */
    adopt(active: readonly ActiveCall[], ringsFollow: boolean, rejoins: boolean): void {
      for (const it of active) {
        const isNews = !live.has(it.call_uuid) && !finished.has(it.call_uuid)
        const isRinging = it.status === 'ringing' && it.direction === 'incoming'
        if (isNews && (isRinging ? !ringsFollow : it.holds_place)) restore(it, rejoins)
      }
    },

    /** Ends what this session holds; what rings here goes on elsewhere. */
    hangUp(): void {
      for (const { call } of [...live.values()]) if (!ringsHere(call.state)) void call.end()
    },

    /** The client is closed. */
    drop(error: RingwireErrorShape | undefined): void {
      for (const it of [...live.values()]) it.apply({ type: 'over', reason: ownReasons.closed, error })
    },
  }
}

export type Calls = ReturnType<typeof createCalls>

/** The first state of a call; an outgoing one has an end of its ring once the service has it. */
function rings(direction: Direction, expiresAt: number | undefined): CallState {
  const ringing = { name: 'ringing', direction, expiresAt } as const
  const more =
    direction === 'incoming'
      ? { answering: false }
      : { invited: expiresAt !== undefined, delivered: undefined, alerting: false }
  return { ...ringing, ...more } as CallState
}

function find(active: readonly ActiveCall[], { call }: LiveCall): ActiveCall | undefined {
  return active.find(({ call_uuid }) => call_uuid === call.callUuid)
}

function ringsHere(state: CallState): state is Extract<CallState, { direction: 'incoming' }> {
  return state.name === 'ringing' && state.direction === 'incoming'
}

/** Calls that ring here have one only when they are answered. */
function hadPlace({ state }: Call): boolean {
  return state.name !== 'ringing' || (state.direction === 'outgoing' && state.invited)
}

function isSame(a: Participant, b: Participant): boolean {
  return a.userId === b.userId && a.role === b.role
}

function participant(wire: { user_id: string; role: string }): Participant {
  return { userId: wire.user_id, role: wire.role }
}
