import type { CallInvited } from '@ringwire/protocol/events/call'
import type { LiveCall } from './call.ts'
import { type CallList, isSame } from './call-list.ts'
import { rings } from './call-state.ts'
import type { Environment } from './environment.ts'
import { check, RingwireError } from './error.ts'
import type { Reply, Requests } from './requests.ts'
import { unknownState } from './seeds.ts'
import { type Call, type CallOptions, type ConnectionState, ownReasons } from './types.ts'

/** What an invite needs of the client. */
export interface Inviting {
  readonly list: CallList
  readonly requests: Pick<Requests, 'ask'>
  readonly env: Pick<Environment, 'now' | 'uuid'>
  connectionState(): ConnectionState
  /** The service's instant by this device's clock. */
  localTime(iso: string): number
}

/** The form of a call type that the service takes [INV1]. */
const callTypes = /^[a-z0-9_-]{1,32}$/

/** A new call, or the one that rings between the two already. */
export function placeCall(client: Inviting, wish: CallOptions): Call {
  const { list } = client
  const { userId = null, group, role, callType = 'audio', onGlare = 'accept' } = wish ?? {}
  check(role && !userId !== !group, 'role, and userId or group', 'given')
  check(callTypes.test(callType), 'callType', `${callTypes}`)
  const { name, why } = client.connectionState()
  if (name === 'idle') throw new RingwireError('NOT_STARTED', 'Call connect() before call().')
  const peer = { userId, role, displayName: wish.displayName ?? null }
  const ringing = [...list.live.values()].find(
    ({ call }) => call.state.name === 'ringing' && call.group === group && isSame(call.peer, peer),
  )
  if (ringing?.call.direction === 'outgoing') return list.resume(ringing)
  if (ringing && onGlare === 'accept') {
    void ringing.accept()
    return ringing.call
  }
  const it = list.add({
    callUuid: client.env.uuid(),
    direction: 'outgoing',
    peer,
    group,
    peerState: unknownState,
    callType,
    contextType: wish.contextType,
    contextId: wish.contextId,
    metadata: wish.metadata,
    state: rings('outgoing'),
  })
  list.refresh()
  if (name !== 'closed') invite(client, it, wish, onGlare)
  // In a moment: the code that called has no listener yet.
  else queueMicrotask(() => failed(client, it, onGlare, new RingwireError('CONNECTION_CLOSED', why.message)))
  return it.call
}

type OnGlare = CallOptions['onGlare']

function invite(client: Inviting, it: LiveCall, options: CallOptions, onGlare: OnGlare): void {
  const { callUuid } = it.call
  const data = {
    callee_user_id: options.userId,
    callee_group: options.group,
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
    if (reply.ok) invited(client, it, reply.data as CallInvited)
    else failed(client, it, onGlare, reply.error)
  }
  // Nobody waits for it any more, so nobody may be rung.
  const onUnsure = () => cancel(client, callUuid)
  client.requests.ask({ event: 'call.invite', data, onReply, onUnsure }).catch((error: RingwireError) => {
    if (!isAnswered) failed(client, it, onGlare, error)
  })
}

function cancel({ requests }: Inviting, callUuid: string): void {
  void requests.ask({ event: 'call.cancel', data: { call_uuid: callUuid }, insistent: true })
}

function invited(client: Inviting, it: LiveCall, data: CallInvited): void {
  const { call } = it
  if (call.state.name === 'over') {
    // It was taken back before the service knew it, or by a name that it does not have [INV7].
    cancel(client, data.call_uuid)
    return
  }
  if (data.call_uuid !== call.callUuid) it.become({ callUuid: data.call_uuid })
  it.apply({ type: 'invited', delivered: data.delivered, expiresAt: client.localTime(data.expires_at) })
  it.invited()
  it.apply({ type: 'stands', status: data.status })
  client.list.release()
}

function failed(client: Inviting, it: LiveCall, onGlare: OnGlare, error: RingwireError): void {
  if (it.call.state.name === 'over') return
  if (error.code !== 'CALL_GLARE' || error.callUuid === undefined) {
    it.apply({ type: 'over', reason: ownReasons.failed, error })
    return
  }
  it.emit('glare', error)
  if (onGlare === 'accept') take(client, it, error.callUuid)
  else it.apply({ type: 'over', reason: ownReasons.glare, error })
}

/** Both sides called at once, and the peer's invite was first. Both want to talk, so this call becomes the peer's. */
function take({ list, env }: Inviting, it: LiveCall, callUuid: string): void {
  const theirs = list.live.get(callUuid)
  const { callType, contextType, contextId, metadata, state } = (theirs ?? it).call
  if (theirs) list.forget(theirs, callUuid)
  it.apply({ type: 'taken', expiresAt: (state.name === 'ringing' && state.expiresAt) || env.now() })
  it.become({ callUuid, direction: 'incoming', callType, contextType, contextId, metadata })
  it.accept().catch((error: RingwireError) => it.invited(error))
}
