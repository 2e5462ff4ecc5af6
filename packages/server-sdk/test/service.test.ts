import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  CallPage,
  CallView,
  DeliveryPage,
  GroupPage,
  GroupRequest,
  GroupShown,
  ParticipantErased,
  ParticipantExport,
  ParticipantView,
  TimelineView,
  TransferRequest,
  Webhook,
  WebhookChange,
  WebhookRequest,
  WebhookRotated,
  WebhookWithSecret,
} from '@ringwire/protocol/backend'
import type { TokenRequest, TokenResponse } from '@ringwire/protocol/rest'
import type { WebhookBody, WebhookEventType } from '@ringwire/protocol/webhook-events'
import { ExtendedClient } from '@ringwire/testkit/extended-client'
import { acceptedCall, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { productKey, Service } from '@ringwire/testkit/service'
import {
  type Call,
  createRingwire,
  type KnownEvent,
  type ParticipantState,
  type Ringwire,
  RingwireError,
  type SessionToken,
  type Timeline,
  type WebhookEvent,
  webhooks,
} from '../src/ringwire.ts'
import type * as sdk from '../src/types.ts'

/** The SDK against a service, and on Node. */

let service: Service
let ringwire: Ringwire
let receiver: ReturnType<typeof openReceiver>
const dir = mkdtempSync(join(tmpdir(), 'ringwire-server-sdk-'))
beforeAll(async () => {
  receiver = openReceiver()
  service = await new Service({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' }).start()
  ringwire = createRingwire({ url: `${service.url}/`, keyId: productKey.id, secret: productKey.secret })
})
afterAll(async () => {
  await service?.dispose()
  await receiver.close()
  rmSync(dir, { recursive: true, force: true })
})

/** Its types are what the service's schemas say, in both directions. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
const isSame: [
  Same<Call, CallView>,
  Same<ParticipantState, Omit<ParticipantView, 'success'>>,
  Same<Timeline, TimelineView>,
  Same<sdk.CallPage, Omit<CallPage, 'success'>>,
  Same<sdk.ParticipantErased, Omit<ParticipantErased, 'success'>>,
  Same<sdk.ParticipantExport, Omit<ParticipantExport, 'success'>>,
  Same<sdk.WebhookRequest, WebhookRequest>,
  Same<sdk.WebhookChange, WebhookChange>,
  Same<sdk.Webhook, Webhook>,
  Same<sdk.WebhookWithSecret, WebhookWithSecret>,
  Same<sdk.WebhookRotated, WebhookRotated>,
  Same<sdk.DeliveryPage, Omit<DeliveryPage, 'success'>>,
  Same<sdk.GroupPage, Omit<GroupPage, 'success'>>,
  Same<sdk.GroupRequest, GroupRequest>,
  Same<sdk.Group, GroupShown>,
  Same<KnownEvent['type'], WebhookEventType>,
] = [true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true]
type DataOf<Event, T> = Event extends { type: T; data: infer Data } ? Data : never
const isSameData: {
  [T in WebhookEventType]: Same<DataOf<KnownEvent, T>, DataOf<WebhookBody, T> & Record<string, unknown>>
} = {
  'call.ringing': true,
  'call.accepted': true,
  'call.connected': true,
  'call.ended': true,
  'call.rejected': true,
  'call.cancelled': true,
  'call.missed': true,
  'call.busy': true,
  'call.wake': true,
  'call.wake_cancelled': true,
  'participant.online': true,
  'participant.offline': true,
  'webhook.test': true,
}
const fits = (token: TokenResponse, request: sdk.TokenRequest): [SessionToken, TokenRequest] => [token, request]
const fitsTransfer = (request: sdk.TransferRequest): TransferRequest => request

test('its types are those of the protocol', () => {
  expect([isSame.every(Boolean), Object.values(isSameData).every(Boolean), typeof fits, typeof fitsTransfer]).toEqual([
    true,
    true,
    'function',
    'function',
  ])
})

const wish = (user_id: string) => ({
  user_id,
  role: 'customer',
  display_name: 'Ann',
  allowed_peer_role: 'agent',
  context_type: 'order',
  context_id: '1042',
})

test('[TOK1] a token opens a session', async () => {
  const { token, user } = await ringwire.token(wish('ann'))
  const history = await fetch(`${service.url}/v1/calls/history`, { headers: { Authorization: `Bearer ${token}` } })
  expect([history.status, user.user_id]).toEqual([200, 'ann'])
})

test('[GROUP1] groups: made, replaced, listed, and removed', async () => {
  const name = { role: 'agent', group: 'support / north' }
  expect(await ringwire.groups.get(name)).toBeUndefined()
  const made = await ringwire.groups.put(name, { members: ['ben', 'eve'], strategy: 'all' })
  expect(made).toEqual({ ...name, members: ['ben', 'eve'], strategy: 'all', member_ring_ms: 15_000, ring_ms: 45_000 })
  const changed = await ringwire.groups.put(name, { members: ['eve'], strategy: 'in_turn', ring_ms: 60_000 })
  expect(await ringwire.groups.get(name)).toEqual(changed)
  await ringwire.groups.put({ role: 'agent', group: 'sales' }, { members: [], strategy: 'longest_idle' })
  const page = await ringwire.groups.list({ limit: 1 })
  expect(page.data).toMatchObject([{ role: 'agent', group: 'sales', member_count: 0 }])
  const all = await Array.fromAsync(ringwire.groups.all())
  expect(all.map(({ group, member_count }) => [group, member_count])).toEqual([
    ['sales', 0],
    ['support / north', 1],
  ])
  await ringwire.groups.delete(name)
  expect(await ringwire.groups.delete(name).catch((error) => error.code)).toBe('NOT_FOUND')
})

test('[SRV2] calls: one, a page, all of them, and their end', async () => {
  const pair = await connectPair(service)
  const who = { user_id: pair.callerId, role: 'customer' }
  const uuids: string[] = []
  for (let n = 0; n < 3; n++) {
    const callUuid = await acceptedCall(pair)
    expect((await ringwire.calls.get(callUuid))?.status).toBe('accepted')
    const ended = await ringwire.calls.end(callUuid, { reason: 'the order is closed' })
    expect([ended.status, ended.end_reason]).toEqual(['ended', 'ended_by_server'])
    uuids.unshift(callUuid)
  }
  const page = await ringwire.calls.list({ ...who, limit: 2, since: new Date(0) })
  expect(page.data.map(({ call_uuid }) => call_uuid)).toEqual(uuids.slice(0, 2))
  expect(page.next_cursor).toBeString()
  const all: string[] = []
  for await (const { call_uuid } of ringwire.calls.all({ ...who, limit: 2, status: 'ended' })) all.push(call_uuid)
  expect(all).toEqual(uuids)
  expect(await ringwire.calls.get(crypto.randomUUID())).toBeUndefined()
})

/** A refused invite is written beside the call, within seconds. */
async function refusedOf(who: { user_id: string; role: string }): Promise<sdk.CallPage> {
  let page = await ringwire.calls.list({ ...who, refused: true })
  await until('the refused invite', async () => {
    page = await ringwire.calls.list({ ...who, refused: true })
    return page.refused?.length === 1
  })
  return page
}

test('[TRACE1] the calls of a participant, with the invites of it that were refused', async () => {
  const { caller, callerId, calleeId } = await connectPair(service)
  const refused = crypto.randomUUID()
  caller.send('call.invite', { call_uuid: refused, callee_user_id: 'x', callee_role: 'boss' })
  await caller.next('call.error')
  const callUuid = await invite(caller, calleeId)
  const who = { user_id: callerId, role: 'customer' }
  const page = await refusedOf(who)
  expect(page.data.map(({ call_uuid }) => call_uuid)).toEqual([callUuid])
  expect(page.refused).toMatchObject([
    {
      call_uuid: refused,
      entry: { what: 'refused', detail: { code: 'CALL_PEER_ROLE_NOT_ALLOWED', peer_role: 'boss' } },
    },
  ])
  expect(await ringwire.calls.list(who)).toEqual({ data: page.data, next_cursor: null })
  expect(await failure(ringwire.calls.list({ refused: true }))).toMatchObject({ code: 'INVALID_QUERY' })
})

test('[SRV2] [XFER1] a call is transferred, to somebody and to a group', async () => {
  const [annId, eveId] = [someone('ann'), someone('eve')]
  const token = await service.token({ user_id: annId, role: 'customer' })
  const ann = new ExtendedClient({ userId: annId, url: service.url, token, can: 'transfer' })
  await ann.connect()
  const benId = someone('ben')
  const [ben, eve] = [
    await service.connect({ user_id: benId, role: 'agent' }),
    await service.connect({ user_id: eveId, role: 'agent' }),
  ]
  const { call_uuid } = (await ann.request('call.invite', { callee_user_id: benId, callee_role: 'agent' })).data
  await ben.next('call.ringing')
  ben.send('call.accept', { call_uuid })
  await ann.next('call.accepted')
  const declined = await ringwire.calls.transfer(call_uuid, { by: 'callee', to: { role: 'agent', user_id: eveId } })
  expect((await eve.next('call.ringing')).data.call_uuid).toBe(declined)
  eve.send('call.reject', { call_uuid: declined })
  await ann.next('call.transfer_failed')
  const to = { role: 'agent', group: someone('group') }
  const failed = (wish: sdk.TransferRequest) => failure(ringwire.calls.transfer(call_uuid, wish))
  expect(await failed({ by: 'callee', to })).toMatchObject({ code: 'GROUP_NOT_FOUND', status: 404 })
  expect(await failed({ by: 'caller', to })).toMatchObject({ code: 'NOT_SUPPORTED_BY_PEER', status: 409 })
  await ringwire.groups.put(to, { members: [eveId], strategy: 'all' })
  const next = await ringwire.calls.transfer(call_uuid, { by: 'callee', to, metadata: { order: 7 } })
  const rings = await eve.next('call.ringing', ({ data }) => data.call_uuid === next)
  expect(rings.data).toMatchObject({ caller_user_id: annId, metadata: { order: 7 } })
  expect((await ringwire.calls.get(next))?.transferred_from).toBe(call_uuid)
  const unknown = ringwire.calls.transfer(crypto.randomUUID(), { by: 'callee', to })
  expect(await failure(unknown)).toMatchObject({ code: 'NOT_FOUND' })
  ann.stop()
})

test('[TRACE1] the timeline of a call, and of none', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const timeline = await ringwire.calls.timeline(callUuid)
  expect(timeline?.call?.call_uuid).toBe(callUuid)
  expect(timeline?.entries.map(({ what }) => what)).toContain('rung')
  expect(timeline?.summary).toStartWith('The call goes on')
  expect(await ringwire.calls.timeline(crypto.randomUUID())).toBeUndefined()
})

test('[SRV2] participants: whatever they are called, and their tokens are taken back', async () => {
  const user_id = someone("a/b?c#d%2F 'ä'")
  const participant = { user_id, role: 'customer' }
  expect((await ringwire.participants.get(participant)).online).toBe(false)
  const client = await service.connect(participant)
  const { online, sessions, live_calls } = await ringwire.participants.get(participant)
  expect([online, sessions.length, live_calls]).toEqual([true, 1, []])
  const until = new Date(Date.now() + 60_000)
  expect(await ringwire.participants.disconnect(participant, { until })).toEqual(until)
  expect((await client.closed).code).toBe(4403)
})

test('[ID3] a participant that a URL path cannot name is asked for in the query', async () => {
  for (const participant of [
    { user_id: '..', role: 'customer' },
    { user_id: 'ann', role: '.' },
  ]) {
    expect(await ringwire.participants.get(participant)).toMatchObject({ online: false, live_calls: [] })
    expect(await ringwire.participants.export(participant)).toMatchObject({ ...participant, tokens_from: null })
    const from = await ringwire.participants.disconnect(participant)
    expect((await ringwire.participants.export(participant)).tokens_from).toBe(from.toISOString())
    expect(await ringwire.participants.erase(participant)).toMatchObject({ calls: 0 })
    const refused = await ringwire.token({ ...wish('x'), ...participant }).catch((error) => error)
    expect(refused).toMatchObject({ code: 'INVALID_REQUEST_BODY' })
  }
})

test('[SRV2] a participant is exported, and erased: its sockets are closed, and its calls name it no more', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const participant = { user_id: pair.callerId, role: 'customer' }
  const exported = await ringwire.participants.export(participant)
  expect(exported).toMatchObject({ ...participant, tokens_from: null, devices: [], refused: [] })
  expect(exported.sessions).toHaveLength(1)
  const [one, ...more] = exported.calls
  expect([one?.call.call_uuid, one?.call.caller.user_id, more]).toEqual([callUuid, pair.callerId, []])
  expect(one?.entries.map(({ what }) => what)).toContain('invited')
  const erased = await ringwire.participants.erase(participant)
  expect(erased).toMatchObject({ calls: 1, devices: 0, webhook_deliveries: 0 })
  expect((await pair.caller.closed).code).toBe(4403)
  const call = await ringwire.calls.get(callUuid)
  expect(call?.caller).toEqual({ user_id: '', role: 'customer', display_name: null })
  expect((await ringwire.participants.export(participant)).calls).toEqual([])
  expect((await ringwire.participants.erase(participant)).calls).toBe(0)
})

/** A backend that takes webhooks, and verifies them with the secrets that it is given. */
function openReceiver() {
  const events: WebhookEvent[] = []
  const secrets: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      events.push(webhooks.verify({ payload: await request.text(), headers: request.headers, secret: secrets }))
      return new Response('thank you')
    },
  })
  return { url: `http://127.0.0.1:${server.port}/hook`, events, secrets, close: () => server.stop(true) }
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: unknown) => error as RingwireError,
  )

test('[HOOK1] an endpoint from its making to its end; its secret is in the answers that make it', async () => {
  const { url } = receiver
  const made = await ringwire.webhooks.create({ url, events: ['call.ended'], description: 'ours' })
  const { secret, ...endpoint } = made
  expect(made).toMatchObject({ url, events: ['call.ended'], description: 'ours', enabled: true })
  expect(secret).toStartWith('whsec_')
  expect(await ringwire.webhooks.get(made.id)).toEqual(endpoint)
  expect(await ringwire.webhooks.list()).toEqual([endpoint])
  const changed = await ringwire.webhooks.change(made.id, { enabled: false, events: null, description: null })
  expect(changed).toMatchObject({ id: made.id, url, enabled: false, description: null })
  expect(changed.events).toContain('call.ringing')
  const rotated = await ringwire.webhooks.rotate(made.id)
  expect(rotated).toMatchObject(changed)
  expect(rotated.secret).not.toBe(secret)
  expect(Date.parse(rotated.old_secret_valid_until)).toBeGreaterThan(Date.now())
  expect(await ringwire.webhooks.delete(made.id)).toBeUndefined()
  expect([await ringwire.webhooks.get(made.id), await ringwire.webhooks.list()]).toEqual([undefined, []])
})

test('[HOOK5] the settings of the product, and the secret of its invite hook', async () => {
  const before = await ringwire.product.get()
  expect(before).toMatchObject({ product: 'shop', busy: 'allow', invite_url: null, invite_failure: 'refuse' })
  const invite_url = 'https://backend.example.com/invites'
  const { invite_secret, ...changed } = await ringwire.product.change({ invite_url, busy: 'reject' })
  expect(invite_secret).toStartWith('whsec_')
  expect(changed).toEqual({ ...before, invite_url, busy: 'reject' })
  expect(await ringwire.product.get()).toEqual(changed)
  const wrong = ringwire.product.change({ ring_timeout_ms: 1 })
  expect(await failure(wrong)).toMatchObject({ code: 'INVALID_REQUEST_BODY', status: 400 })
  expect(await ringwire.product.change({ invite_url: null, busy: 'allow' })).toEqual(before)
})

test('[HOOK1] deliveries: sent, verified, paged, and sent once more under the same id', async () => {
  const { id, secret } = await ringwire.webhooks.create({ url: receiver.url, events: ['call.ended'] })
  receiver.secrets.push(secret)
  const sent: string[] = []
  for (let n = 0; n < 3; n++) sent.unshift(await ringwire.webhooks.test(id))
  const isOver = async () => (await ringwire.webhooks.deliveries(id, { status: 'delivered' })).data.length === 3
  await until('all three arrived', isOver)
  expect(receiver.events.map((event) => event.id).toSorted()).toEqual(sent.toSorted())
  expect(receiver.events.map(({ type }) => type)).toEqual(['webhook.test', 'webhook.test', 'webhook.test'])
  const page = await ringwire.webhooks.deliveries(id, { limit: 2 })
  const all: sdk.WebhookDelivery[] = []
  for await (const delivery of ringwire.webhooks.allDeliveries(id, { limit: 2 })) all.push(delivery)
  expect(all.map((delivery) => delivery.id)).toEqual(sent)
  expect([page.data, page.next_cursor]).toEqual([all.slice(0, 2), expect.any(String)])
  expect((await ringwire.webhooks.deliveries(id, { status: 'failed' })).data).toEqual([])
  expect(all[0]).toMatchObject({ attempts: 1, response_status: 200, response: 'thank you', next_attempt_at: null })
  const first = sent.at(-1) ?? ''
  await ringwire.webhooks.retry(id, first)
  await until('it came again', () => receiver.events.filter((event) => event.id === first).length === 2)
  await ringwire.webhooks.delete(id)
})

test('[HOOK1] what an endpoint may not be, and one that is not there, have their codes', async () => {
  const hooks = ringwire.webhooks
  const { url } = receiver
  for (const [asked, code, status, word] of [
    [() => hooks.create({ url: 'http://example.com/' }), 'INVALID_REQUEST_BODY', 400, 'url'],
    [() => hooks.create({ url, events: ['call.unknown' as 'call.ended'] }), 'INVALID_REQUEST_BODY', 400, 'events'],
    [() => hooks.create({ url, description: 'x'.repeat(256) }), 'INVALID_REQUEST_BODY', 400, 'description'],
    [() => hooks.change('we_none', { enabled: false }), 'NOT_FOUND', 404, 'webhook endpoint'],
    [() => hooks.delete('we_none'), 'NOT_FOUND', 404, 'webhook endpoint'],
    [() => hooks.rotate('we_none'), 'NOT_FOUND', 404, 'webhook endpoint'],
    [() => hooks.test('we_none'), 'NOT_FOUND', 404, 'webhook endpoint'],
    [() => hooks.deliveries('we_none'), 'NOT_FOUND', 404, 'webhook endpoint'],
    [() => hooks.allDeliveries('we_none').next(), 'NOT_FOUND', 404, 'webhook endpoint'],
    [() => hooks.retry('we_none', 'msg_none'), 'NOT_FOUND', 404, 'delivery'],
  ] as const) {
    const error = await failure(asked())
    expect(error).toBeInstanceOf(RingwireError)
    expect(error).toMatchObject({ code, status, message: expect.stringContaining(word) })
  }
  // The id is one part of the path, whatever it is.
  for (const id of ['', '..', '../calls', 'a/b?c#d']) expect(await hooks.get(id)).toBeUndefined()
  const { id } = await hooks.create({ url })
  const statuses = hooks.deliveries(id, { status: 'lost' as 'failed' })
  expect(await failure(statuses)).toMatchObject({ code: 'INVALID_QUERY', status: 400 })
  await hooks.delete(id)
})

test('[SRV1] what fails says why, and never the secret', async () => {
  const secret = 'a-secret-that-is-wrong'
  const options = { url: service.url, keyId: productKey.id, secret: productKey.secret }
  const cases: [() => Promise<unknown>, string, number | undefined][] = [
    [() => createRingwire({ ...options, secret }).calls.list(), 'PRODUCT_AUTH_INVALID_SECRET', 401],
    [() => createRingwire({ ...options, product: 'other' }).calls.list(), 'PRODUCT_AUTH_PRODUCT_MISMATCH', 403],
    [() => ringwire.calls.list({ status: 'lively' as 'live' }), 'INVALID_QUERY', 400],
    [() => ringwire.calls.end(crypto.randomUUID()), 'NOT_FOUND', 404],
    [() => createRingwire({ ...options, url: 'http://127.0.0.1:1' }).calls.list(), 'NETWORK', undefined],
  ]
  for (const [asked, code, status] of cases) {
    const error = await failure(asked())
    expect(error).toBeInstanceOf(RingwireError)
    expect(error).toMatchObject({ code, status })
    expect(`${(error as Error).message}${(error as Error).stack}`).not.toContain(secret)
  }
  const answers = (response: Response) => createRingwire({ ...options, fetch: async () => response })
  const limited = Response.json(
    { success: false, error: { code: 'BOOTSTRAP_KEY_RATE_LIMITED', message: 'Too many.' } },
    { status: 429, headers: { 'Retry-After': '7' } },
  )
  expect(await failure(answers(limited).calls.list())).toMatchObject({ retryAfterMs: 7000, status: 429 })
  const proxy = new Response('<h1>Bad gateway</h1>', { status: 502 })
  expect(await failure(answers(proxy).calls.list())).toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 502 })
  const nothing = new Response(null, { status: 204 })
  expect(await failure(answers(nothing).webhooks.list())).toMatchObject({ code: 'UNEXPECTED_ANSWER', status: 204 })
})

test('an erasure that goes on is asked for again after a pause, also where the answer says 0', async () => {
  const options = { url: service.url, keyId: productKey.id, secret: productKey.secret }
  let asked = 0
  const busy = createRingwire({
    ...options,
    async fetch() {
      // An end, for a loop without a pause reaches no timer.
      if (++asked === 10) return new Response(null, { status: 204 })
      const error = { code: 'SERVICE_UNAVAILABLE', message: 'It goes on.' }
      return Response.json({ success: false, error }, { status: 503, headers: { 'Retry-After': '0' } })
    },
  })
  const participant = { user_id: 'ann', role: 'customer' }
  expect(await failure(busy.participants.erase(participant, { timeoutMs: 600 }))).toMatchObject({ status: 503 })
  expect(asked).toBeLessThanOrEqual(3)
})

test('an error says what did not answer, and what to look at', async () => {
  const options = { url: service.url, keyId: productKey.id, secret: productKey.secret }
  const messageOf = async (more: object) => {
    const error = await failure(createRingwire({ ...options, ...more }).calls.list())
    return (error as RingwireError).message
  }
  expect(await messageOf({ url: 'http://127.0.0.1:1/below' })).toMatch(
    /^No service answers at http:\/\/127.0.0.1:1 .*RINGWIRE_URL/,
  )
  const answer = async () => new Response('<h1>Bad gateway</h1>', { status: 502 })
  expect(await messageOf({ fetch: answer })).toStartWith(`${service.url} answered 502`)
  const silent = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Promise<Response>(() => {}) })
  expect(await messageOf({ url: silent.url.href, timeoutMs: 50 })).toBe(
    `${silent.url.origin} did not answer within 50 ms.`,
  )
  await silent.stop(true)
})

test('it runs on Node', async () => {
  const built = await Bun.build({
    entrypoints: [new URL('../src/ringwire.ts', import.meta.url).pathname],
    target: 'node',
    outdir: dir,
    naming: 'ringwire.mjs',
  })
  expect(built.success).toBe(true)
  const callUuid = await acceptedCall(await connectPair(service))
  const input = { url: service.url, keyId: productKey.id, secret: productKey.secret, callUuid }
  const script = new URL('support/run-in-node.mjs', import.meta.url).pathname
  const node = Bun.spawn(['node', script, join(dir, 'ringwire.mjs')], {
    stdin: new Blob([JSON.stringify(input)]),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const out = JSON.parse(await new Response(node.stdout).text())
  expect(out).toEqual({
    version: expect.stringMatching(/^v2\d\./),
    reason: 'ended_by_server',
    wrong: 'PRODUCT_AUTH_INVALID_SECRET',
    removed: true,
    type: 'webhook.test',
  })
})
