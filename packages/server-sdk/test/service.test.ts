import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  CallView,
  ParticipantErased,
  ParticipantExport,
  ParticipantView,
  TimelineView,
} from '@ringwire/protocol/backend'
import type { TokenRequest, TokenResponse } from '@ringwire/protocol/rest'
import { acceptedCall, connectPair, someone } from '@ringwire/testkit/flows'
import { productKey, Service } from '@ringwire/testkit/service'
import {
  type Call,
  createRingwire,
  type ParticipantState,
  type Ringwire,
  RingwireError,
  type SessionToken,
  type Timeline,
} from '../src/ringwire.ts'
import type * as sdk from '../src/types.ts'

/** The SDK against a service, and on Node. */

let service: Service
let ringwire: Ringwire
const dir = mkdtempSync(join(tmpdir(), 'ringwire-server-sdk-'))
beforeAll(async () => {
  service = await new Service().start()
  ringwire = createRingwire({ url: `${service.url}/`, keyId: productKey.id, secret: productKey.secret })
})
afterAll(async () => {
  await service.dispose()
  rmSync(dir, { recursive: true, force: true })
})

/** Its types are what the service's schemas say, in both directions. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
const isSame: [
  Same<Call, CallView>,
  Same<ParticipantState, Omit<ParticipantView, 'success'>>,
  Same<Timeline, TimelineView>,
  Same<sdk.ParticipantErased, Omit<ParticipantErased, 'success'>>,
  Same<sdk.ParticipantExport, Omit<ParticipantExport, 'success'>>,
] = [true, true, true, true, true]
const fits = (token: TokenResponse, request: sdk.TokenRequest): [SessionToken, TokenRequest] => [token, request]

test('its types are those of the protocol', () => {
  expect([isSame, typeof fits]).toEqual([[true, true, true, true, true], 'function'])
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

test('[SRV1] what fails says why, and never the secret', async () => {
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => 'done',
      (error: unknown) => error as RingwireError,
    )
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
    type: 'webhook.test',
  })
})
