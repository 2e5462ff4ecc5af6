import { afterAll, beforeAll, expect, test } from 'bun:test'
import { NotRinging, RingChanged, RingResponse } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import { invite, someone } from '@ringwire/testkit/flows'
import { productKey, Service } from '@ringwire/testkit/service'
import { createRingTickets, type RingTickets } from '../../src/auth/ring-ticket.ts'

const key = Buffer.alloc(32, 7)
let service: Service
let tickets: RingTickets
beforeAll(async () => {
  service = await new Service({ RINGWIRE_JWT_SECRETS: `k:${key.toString('base64url')}` }).start()
  tickets = createRingTickets({ secrets: [{ kid: 'k', key }], now: Date.now })
})
afterAll(() => service.dispose())

type Wish = { user?: string; product?: string; role?: string; call?: string; device?: string; until?: number }

/** A call that rings for somebody who is not connected, and a ticket for it. */
async function ringing(data: object = {}) {
  const calleeId = someone('callee')
  const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
  const callUuid = await invite(caller, calleeId, data)
  const ticket = ({ user = calleeId, product = 'shop', role = 'agent', call = callUuid, ...wish }: Wish = {}) =>
    tickets.sign(
      { product, callUuid: call, ringExpiresAt: wish.until ?? Date.now() + 45_000 },
      { product, role, userId: user },
      wish.device,
    )
  return { caller, calleeId, callUuid, ticket }
}

type Path = '' | '/reject' | '/alerting'
async function ask(path: Path, ticket: string | undefined, headers: Record<string, string> = {}) {
  const response = await fetch(`${service.url}/v1/call/ring${path}`, {
    method: path === '' ? 'GET' : 'POST',
    headers: { ...headers, ...(ticket !== undefined && { Authorization: `Bearer ${ticket}` }) },
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}
const paths: readonly Path[] = ['', '/reject', '/alerting']

test('[TICK1] GET /v1/call/ring: the call while it rings', async () => {
  const { caller, callUuid, ticket } = await ringing({ call_type: 'video', context_id: '1042' })
  const { status, body, headers } = await ask('', ticket())
  expect(status).toBe(200)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(createValidator(RingResponse)(body).ok).toBe(true)
  const me = caller.all[0]?.data
  expect(body).toEqual({
    call_uuid: callUuid,
    status: 'ringing',
    caller: { user_id: me.user_id, role: 'customer', display_name: me.user_id },
    call_type: 'video',
    context_type: 'order',
    context_id: '1042',
    expires_at: expect.stringMatching(/Z$/),
  })
})

test('[TICK1] POST /v1/call/ring/reject rejects it, once', async () => {
  const { caller, callUuid, calleeId, ticket } = await ringing()
  const rejected = await ask('/reject', ticket())
  expect([rejected.status, rejected.body]).toEqual([
    200,
    { call_uuid: callUuid, status: 'rejected', end_reason: 'declined' },
  ])
  expect(createValidator(RingChanged)(rejected.body).ok).toBe(true)
  expect((await caller.next('call.rejected')).data).toMatchObject({
    call_uuid: callUuid,
    status: 'rejected',
    reason: 'declined',
    by: { user_id: calleeId, role: 'agent' },
  })
  // A client that did not get the answer asks again, and learns it.
  for (const path of paths) {
    const { status, body } = await ask(path, ticket())
    expect([status, body.error]).toEqual([
      410,
      { code: 'CALL_NOT_RINGING', message: expect.any(String), status: 'rejected', end_reason: 'declined' },
    ])
    expect(createValidator(NotRinging)(body).ok).toBe(true)
  }
})

test('[TICK1] [EXT5] POST /v1/call/ring/alerting: an extended caller is told', async () => {
  const calleeId = someone('callee')
  const caller = await service.connect({ user_id: someone('caller'), role: 'customer' }, { path: '/v1/ws?ext=1' })
  const callUuid = await invite(caller, calleeId)
  const ringExpiresAt = Date.now() + 45_000
  const participant = { product: 'shop', role: 'agent', userId: calleeId }
  const { status, body } = await ask(
    '/alerting',
    tickets.sign({ product: 'shop', callUuid, ringExpiresAt }, participant),
  )
  expect([status, body]).toEqual([200, { call_uuid: callUuid, status: 'ringing', end_reason: null }])
  const told = await caller.next('call.alerting')
  expect(told.data).toEqual({ call_uuid: callUuid, by: { user_id: calleeId, role: 'agent' } })
})

test('[TICK1] after the answer and after the end: 410 with the status, and nothing comes of it', async () => {
  const { caller, callUuid, calleeId, ticket } = await ringing()
  const callee = await service.connect({ user_id: calleeId, role: 'agent', device_id: 'phone' })
  callee.send('call.accept', { call_uuid: callUuid })
  await caller.next('call.accepted')
  const refused = (status: string, end_reason: string | null) => [
    410,
    { code: 'CALL_NOT_RINGING', message: expect.any(String), status, end_reason },
  ]
  for (const path of paths) {
    for (const device of [undefined, 'phone', 'tablet']) {
      const { status, body } = await ask(path, ticket(device === undefined ? {} : { device }))
      expect([status, body.error]).toEqual(refused('accepted', null))
    }
  }
  // The place of one that has left is no one's who has but a ticket: not even of its own device.
  await callee.die()
  expect((await ask('/reject', ticket({ device: 'phone' }))).status).toBe(410)
  await caller.settle()
  expect(caller.events()).not.toContain('call.ended')
  caller.send('call.end', { call_uuid: callUuid })
  await caller.settle()
  for (const path of paths) {
    const { status, body } = await ask(path, ticket())
    expect([status, body.error]).toEqual(refused('ended', 'hangup'))
  }
})

test('[TICK1] of the caller, of a stranger, of another product, of another call: nothing is told or done', async () => {
  const { caller, calleeId, callUuid, ticket } = await ringing()
  const me = caller.all[0]?.data.user_id
  const others = {
    'the caller': ticket({ user: me, role: 'customer' }),
    'a stranger': ticket({ user: 'eve' }),
    'the same id in another role': ticket({ role: 'customer' }),
    'another product': ticket({ product: 'clinic' }),
    'a call that is not there': ticket({ call: crypto.randomUUID() }),
  }
  for (const [whose, other] of Object.entries(others)) {
    for (const path of paths) {
      const { status, body } = await ask(path, other)
      expect([whose, path, status, body.error.status, body.error.end_reason]).toEqual([whose, path, 410, null, null])
    }
  }
  const { status } = await ask('', ticket())
  expect(status).toBe(200)
  expect(calleeId).not.toBe(me)
  expect(caller.events()).not.toContain('call.rejected')
  expect(callUuid).toBeString()
})

test('[TICK1] none, forged, over for a day, of another purpose: 401', async () => {
  const { caller, calleeId, callUuid, ticket } = await ringing()
  const forged = createRingTickets({ secrets: [{ kid: 'k', key: Buffer.alloc(32, 8) }], now: Date.now })
  const ringExpiresAt = Date.now() + 45_000
  const participant = { product: 'shop', role: 'agent', userId: calleeId }
  const bad = {
    forged: forged.sign({ product: 'shop', callUuid, ringExpiresAt }, participant),
    'over for a day': ticket({ until: Date.now() - 86_400_000 }),
    'a session token': await service.token({ user_id: calleeId, role: 'agent' }),
    rubbish: 'rubbish',
  }
  for (const path of paths) {
    const none = await ask(path, undefined)
    expect([none.status, none.body.error.code]).toEqual([401, 'AUTH_TOKEN_REQUIRED'])
    for (const [name, token] of Object.entries(bad)) {
      const { status, body } = await ask(path, token)
      expect([name, status, body.error.code]).toEqual([name, 401, 'AUTH_TOKEN_INVALID'])
    }
  }
  await caller.settle()
  expect(caller.events()).toEqual(['auth.ok', 'call.invited'])
})

test('[TICK1] a ticket that is over: 410 with what became of the call, as soon as its ring is over', async () => {
  const { caller, callUuid, ticket } = await ringing({ ring_timeout_ms: 5_000 })
  const over = () => ticket({ until: Date.now() })
  // The call rings on: to this ticket nothing of it shows.
  for (const path of paths) {
    const { status, body } = await ask(path, over())
    expect([path, status, body.error.status, body.error.end_reason]).toEqual([path, 410, null, null])
  }
  expect(caller.events()).toEqual(['auth.ok', 'call.invited'])
  await caller.next('call.missed')
  for (const path of paths) {
    const { status, body } = await ask(path, over())
    expect([path, status, body.error]).toEqual([
      path,
      410,
      { code: 'CALL_NOT_RINGING', message: expect.any(String), status: 'missed', end_reason: 'no_answer' },
    ])
    expect(createValidator(NotRinging)(body).ok).toBe(true)
  }
  expect((await ask('', ticket({ call: callUuid, until: Date.now(), user: 'eve' }))).body.error.status).toBeNull()
})

test('[TICK1] [SRV2] who is sent away has no ticket any more, and gets one with the next call', async () => {
  const { caller, calleeId, callUuid, ticket } = await ringing()
  const before = ticket()
  expect((await ask('', before)).status).toBe(200)
  const response = await fetch(`${service.url}/v1/server/participants/agent/${calleeId}/disconnect`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
  })
  expect(response.status).toBe(200)
  for (const path of paths) {
    const { status, body } = await ask(path, before)
    expect([path, status, body.error.code]).toEqual([path, 401, 'AUTH_TOKEN_INVALID'])
  }
  await caller.settle()
  expect(caller.events()).toEqual(['auth.ok', 'call.invited'])
  // One second later: tokens count whole seconds.
  const later = createRingTickets({ secrets: [{ kid: 'k', key }], now: () => Date.now() + 1_000 })
  const call = { product: 'shop', callUuid, ringExpiresAt: Date.now() + 45_000 }
  expect((await ask('', later.sign(call, { product: 'shop', role: 'agent', userId: calleeId }))).status).toBe(200)
})

test('[TICK1] a ticket opens nothing else', async () => {
  const { ticket } = await ringing()
  const headers = { Authorization: `Bearer ${ticket()}` }
  const history = await fetch(`${service.url}/v1/calls/history`, { headers })
  const ice = await fetch(`${service.url}/v1/call/ice-servers`, { method: 'POST', headers })
  const socket = await fetch(`${service.url}/v1/ws`, {
    headers: {
      ...headers,
      ...{ Connection: 'Upgrade', Upgrade: 'websocket' },
      ...{ 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': btoa('a key of 16 byte') },
    },
  })
  for (const response of [history, ice, socket]) expect(response.status).toBe(401)
  expect((await ask('', ticket())).status).toBe(200)
})

test('[TICK1] web pages and service workers may ask', async () => {
  const { ticket } = await ringing()
  const origin = { Origin: 'https://app.example.com' }
  for (const [path, method] of [
    ['', 'GET'],
    ['/alerting', 'POST'],
    ['/reject', 'POST'],
  ] as const) {
    const preflight = await fetch(`${service.url}/v1/call/ring${path}`, {
      method: 'OPTIONS',
      headers: {
        ...origin,
        'Access-Control-Request-Method': method,
        'Access-Control-Request-Headers': 'authorization',
      },
    })
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toContain(method)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Authorization')
    for (const [given, status] of [
      [ticket(), 200],
      [undefined, 401],
    ] as const) {
      const answer = await ask(path, given, origin)
      expect([path, answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([path, status, '*'])
    }
  }
})
