import { ExtendedClient, type ExtendedClientOptions } from '@ringwire/testkit/extended-client'
import type { ExtendedMessage } from '@ringwire/testkit/extended-trace'
import { someone } from '@ringwire/testkit/flows'
import type { Service, TokenWish } from '@ringwire/testkit/service'
import { inviteOf } from './sessions.ts'

/** A client of an extended session that has had its `auth.ok`. */
export async function connectExtended(
  service: Service,
  wish: TokenWish,
  options: Partial<ExtendedClientOptions> = {},
): Promise<ExtendedClient> {
  const { passedOn } = service
  const url = service.nextUrl()
  const token = await service.token(wish)
  const client = new ExtendedClient({ userId: wish.user_id, url, passedOn, token, ...options })
  await client.connect()
  return client
}

export interface ExtendedPair {
  readonly caller: ExtendedClient
  readonly callee: ExtendedClient
  readonly callerId: string
  readonly calleeId: string
}

export async function connectExtendedPair(service: Service, more: Partial<TokenWish> = {}): Promise<ExtendedPair> {
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const [caller, callee] = await Promise.all([
    connectExtended(service, { ...more, user_id: callerId, role: 'customer' }),
    connectExtended(service, { ...more, user_id: calleeId, role: 'agent' }),
  ])
  return { caller, callee, callerId, calleeId }
}

export const about = (callUuid: string) => (message: ExtendedMessage) => message.data.call_uuid === callUuid

/** A call that rings at the callee. */
export async function ringingCall({ caller, callee, calleeId }: ExtendedPair, more: object = {}): Promise<string> {
  const callUuid = crypto.randomUUID()
  await caller.request('call.invite', inviteOf(calleeId, { call_uuid: callUuid, ...more }))
  await callee.next('call.ringing', about(callUuid))
  return callUuid
}

/** A call that was accepted; both sides have heard of it. */
export async function answeredCall(pair: ExtendedPair): Promise<string> {
  const callUuid = await ringingCall(pair)
  await pair.callee.request('call.accept', { call_uuid: callUuid })
  await pair.caller.next('call.accepted', about(callUuid))
  return callUuid
}

/** A call that the callee reported as connected; the caller has heard of it. */
export async function connectedCall(pair: ExtendedPair): Promise<string> {
  const callUuid = await answeredCall(pair)
  await pair.callee.request('call.connected', { call_uuid: callUuid })
  await pair.caller.next('call.status', about(callUuid))
  return callUuid
}

/** The numbers of the candidates that came, in the order in which they came. */
export function candidatesOf(client: ExtendedClient, callUuid: string): number[] {
  return client.pushes
    .filter(({ event, data }) => event === 'webrtc.ice_candidate' && data.call_uuid === callUuid)
    .map(({ data }) => Number(data.candidate.candidate.split(':')[1]))
}
