import type { Client } from './client.ts'
import type { Service } from './service.ts'

/** Two people who may call each other: a customer and an agent. */
export interface Pair {
  readonly caller: Client
  readonly callee: Client
}

/** A user_id that no other test uses. */
export function someone(name: string): string {
  return `${name}-${crypto.randomUUID().slice(0, 8)}`
}

export async function connectPair(service: Service): Promise<Pair & { callerId: string; calleeId: string }> {
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const caller = await service.connect({ user_id: callerId, role: 'customer' })
  const callee = await service.connect({ user_id: calleeId, role: 'agent' })
  return { caller, callee, callerId, calleeId }
}

/** Invites and answers the call_uuid as soon as the caller knows it. */
export async function invite(caller: Client, calleeId: string, data: object = {}): Promise<string> {
  const requestId = crypto.randomUUID()
  caller.send('call.invite', { callee_user_id: calleeId, callee_role: 'agent', ...data }, requestId)
  const invited = await caller.next('call.invited', (message) => message.request_id === requestId)
  return invited.data.call_uuid
}

/** A call that was accepted; both sides have heard of it. */
export async function acceptedCall(pair: Pair & { calleeId: string }): Promise<string> {
  const callUuid = await invite(pair.caller, pair.calleeId)
  await pair.callee.next('call.ringing', (message) => message.data.call_uuid === callUuid)
  pair.callee.send('call.accept', { call_uuid: callUuid })
  await pair.caller.next('call.accepted', (message) => message.data.call_uuid === callUuid)
  return callUuid
}

export function candidate(callUuid: string, n: number): object {
  return { call_uuid: callUuid, candidate: { candidate: `candidate:${n}`, sdpMid: '0', sdpMLineIndex: 0 } }
}
