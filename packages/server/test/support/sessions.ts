import type { Client, Received } from '@ringwire/testkit/client'
import { someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import type { Service, TokenWish } from '@ringwire/testkit/service'

/** Two people with two sessions each: which of them hear something, and which do not. */
export interface Four {
  readonly callerId: string
  readonly calleeId: string
  readonly caller: Client
  readonly callerTab: Client
  readonly callee: Client
  readonly calleeTab: Client
}
export type SessionName = 'caller' | 'callerTab' | 'callee' | 'calleeTab'
export const sessionNames: readonly SessionName[] = ['caller', 'callerTab', 'callee', 'calleeTab']

export async function connectFour(service: Service, more: Partial<TokenWish> = {}): Promise<Four> {
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const asCaller = { ...more, user_id: callerId, role: 'customer' }
  const asCallee = { ...more, user_id: calleeId, role: 'agent' }
  const [caller, callerTab, callee, calleeTab] = await Promise.all([
    service.connect(asCaller),
    service.connect(asCaller),
    service.connect(asCallee),
    service.connect(asCallee),
  ])
  return { callerId, calleeId, caller, callerTab, callee, calleeTab }
}

/** Until everything that these clients asked for has taken effect, and everybody among them has heard of it. */
export async function quiet(...clients: readonly Client[]): Promise<void> {
  await Promise.all(clients.map((client) => client.settle()))
  await Promise.all(clients.map((client) => client.settle()))
}

/** What a client received, but for the answers to `settle`. */
export function received(client: Client): Received[] {
  return client.all.filter(({ request_id: id }) => !id?.startsWith('settle-'))
}

/** From now on: the messages of each of these clients. */
export function listen<Name extends string>(clients: Readonly<Record<Name, Client>>, names: readonly Name[]) {
  const heard = new Map(names.map((name) => [name, received(clients[name]).length]))
  return () => {
    const news = names.map((name) => [name, received(clients[name]).slice(heard.get(name))] as const)
    return Object.fromEntries(news) as unknown as Record<Name, Received[]>
  }
}

/** Only the names of the events. */
export function eventsOf<Name extends string>(
  news: Readonly<Record<Name, readonly Received[]>>,
): Record<Name, string[]> {
  const names = Object.entries<readonly Received[]>(news).map(([name, all]) => [name, all.map(({ event }) => event)])
  return Object.fromEntries(names)
}

/** Sends a request and waits until it is through: its reply, if it had one. */
export async function request(client: Client, event: string, data: object): Promise<Received | undefined> {
  const requestId = crypto.randomUUID()
  client.send(event, data, requestId)
  await client.settle()
  return client.all.find((message) => message.request_id === requestId)
}

/** The code of a request's error, or undefined where it had none. */
export async function errorCode(client: Client, event: string, data: object): Promise<string | undefined> {
  const reply = await request(client, event, data)
  return reply?.error?.code
}

/** An envelope that is still to be sent. */
export type Message = readonly [event: string, data: object, requestId?: string]

/** Sends several envelopes in one write: one TCP segment, as long as they fit into one. */
export function burst(client: Client, messages: readonly Message[]): void {
  const frames = messages.map(([event, data, requestId]) =>
    encodeFrame(opcodes.text, JSON.stringify({ event, request_id: requestId, data })),
  )
  client.raw(Buffer.concat(frames))
}

export function inviteOf(calleeId: string, more: object = {}): object {
  return { callee_user_id: calleeId, callee_role: 'agent', ...more }
}

export function offer(callUuid: string, text = 'v=0 offer'): object {
  return { call_uuid: callUuid, sdp: { type: 'offer', sdp: text } }
}

export function answer(callUuid: string, text = 'v=0 answer'): object {
  return { call_uuid: callUuid, sdp: { type: 'answer', sdp: text } }
}

/** A participant's record of a call, as the history shows it. */
// biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
export async function recordOf(service: Service, wish: TokenWish, callUuid: string): Promise<any> {
  const { data } = await service.history(await service.token(wish), '?limit=100')
  return data.find((record: { call_uuid: string }) => record.call_uuid === callUuid)
}
