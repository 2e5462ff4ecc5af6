import { expect } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { connectExtended, type ExtendedPair } from '../support/extended-flows.ts'
import { recordOf } from '../support/sessions.ts'
import { inTime } from './world.ts'

/** A caller and a callee with extended sessions, each on a node of its own choice. */
export async function pairOn(callerAt: Service, calleeAt: Service, persistent = false): Promise<ExtendedPair> {
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const [caller, callee] = await Promise.all([
    connectExtended(callerAt, { user_id: callerId, role: 'customer', device_id: `of-${callerId}` }, { persistent }),
    connectExtended(calleeAt, { user_id: calleeId, role: 'agent', device_id: `of-${calleeId}` }, { persistent }),
  ])
  return { caller, callee, callerId, calleeId }
}

export function stopAll(...pairs: readonly ExtendedPair[]): void {
  for (const { caller, callee } of pairs) {
    caller.stop()
    callee.stop()
  }
}

/** What the history says of a call, as its caller sees it. */
// biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
export function historyOf(service: Service, { callerId }: ExtendedPair, callUuid: string): Promise<any> {
  return recordOf(service, { user_id: callerId, role: 'customer' }, callUuid)
}

/** Hangs up a call that goes on, which the other side hears once, and which the history has right. */
export async function hangUp(service: Service, pair: ExtendedPair, callUuid: string): Promise<void> {
  const reply = await pair.callee.request('call.end', { call_uuid: callUuid })
  expect(reply.event).toBe('call.ack')
  await pair.caller.next('call.ended', ({ data }) => data.call_uuid === callUuid)
  expect(await historyOf(service, pair, callUuid)).toMatchObject({ status: 'ended', end_reason: 'hangup' })
}

/** The relays that came to a client about a call, by their number. */
export function numbersTo(client: ExtendedClient, callUuid: string): number[] {
  return client.all
    .filter(({ event, data }) => event === 'webrtc.ice_candidate' && data.call_uuid === callUuid)
    .map(({ data }) => Number(data.candidate.candidate.split(':')[1]))
}

/** Nobody comes in while a store is away, and nobody is left to wait. */
export async function isAskedToComeLater({ url }: Service, token: string): Promise<void> {
  expect((await inTime(new Client({ url, token }).closed)).code).toBe(1013)
}

/** Nor does a session that lost its socket; its client keeps what it needs to come back later. */
export async function cannotResume(client: ExtendedClient, at: Service): Promise<void> {
  client.url = at.url
  client.supersede()
  expect((await inTime(client.closed)).code).toBe(1013)
}
