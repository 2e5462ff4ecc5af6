import { afterAll, beforeAll, expect, test } from 'bun:test'
import { get, type IncomingMessage, request } from 'node:http'
import SwaggerParser from '@apidevtools/swagger-parser'
import { closeCodes } from '@ringwire/protocol/close-codes'
import { ExtendedAuthOk } from '@ringwire/protocol/events/auth'
import { serverEvents } from '@ringwire/protocol/server-events'
import { Service } from '@ringwire/testkit/service'
import { Compile } from 'typebox/schema'
import { setProduct } from '../../packages/server/test/support/products.ts'
import { claimsOf, signingKeyEnv, signToken } from '../../packages/server/test/support/session-tokens.ts'
import { createAsyncApi, versioned } from './asyncapi.ts'
import { tokenRequest } from './examples.ts'
import { createOpenApi } from './openapi.ts'
import { type JsonObject, plainSchema } from './schemas.ts'

/** The running service answers what the documents say: every answer here is held against its schema. */
const secret = 'a-secret-of-the-documents-test-0123456789'
const service = new Service({
  RINGWIRE_BOOTSTRAP_KEYS: `one:${secret}:shop;many:${secret}:shop,desk;slow:${secret}:shop`,
  RINGWIRE_TOKEN_RATE_KEY: '12/60',
  RINGWIRE_REST_RATE: '12/60',
  ...signingKeyEnv,
  RINGWIRE_TURN_URLS: 'turn:turn.example.com:3478',
  RINGWIRE_TURN_SECRET: 'a-secret-that-turn-servers-know',
  // So short that new credentials are pushed at once.
  RINGWIRE_TURN_TTL_S: '1',
})
beforeAll(() => service.start())
afterAll(() => service.dispose())

interface Operation {
  responses: Record<string, { headers?: JsonObject; content?: Record<string, { schema: JsonObject }> }>
}
const openApi = (await SwaggerParser.dereference(JSON.parse(JSON.stringify(createOpenApi())))) as unknown as {
  paths: Record<string, Record<string, Operation>>
}

/** Asks, and holds the answer against the document; gives the error code, if it is an error. */
async function ask(method: string, path: string, init: RequestInit = {}, documented = method): Promise<string> {
  return hold(await fetch(service.url + path, { method, ...init }), path, documented)
}

async function hold(response: Response, path: string, method: string): Promise<string> {
  const operation = openApi.paths[path.replace(/\?.*/, '')]?.[method.toLowerCase()]
  const described = operation?.responses[String(response.status)]
  expect(described, `${response.status} of ${method} ${path}`).toBeDefined()
  const body = await response.json()
  const schema = described?.content?.['application/json']?.schema ?? {}
  expect({ path, body, right: Compile(schema).Check(body) }).toMatchObject({ right: true })
  for (const header of Object.keys(described?.headers ?? {})) {
    expect(response.headers.get(header), `${header} of ${response.status} ${method} ${path}`).not.toBeNull()
  }
  return body.success === false ? body.error.code : String(response.status)
}

const tokenPath = '/v1/call/session-token'
function askToken(body: unknown, keyId = 'one', keySecret = secret): Promise<string> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' }
  if (keyId !== '') headers['X-SVC-Product-Key-ID'] = keyId
  if (keySecret !== '') headers['X-SVC-Product-Secret'] = keySecret
  return ask('POST', tokenPath, { headers, body: typeof body === 'string' ? body : JSON.stringify(body) })
}

test('POST /v1/call/session-token', async () => {
  expect(await askToken(tokenRequest)).toBe('200')
  expect(await askToken('no JSON')).toBe('INVALID_REQUEST_BODY')
  expect(await askToken({ ...tokenRequest, user_id: 5 })).toBe('INVALID_REQUEST_BODY')
  expect(await askToken({ ...tokenRequest, padding: 'x'.repeat(20_000) })).toBe('REQUEST_BODY_TOO_LARGE')
  expect(await askToken(tokenRequest, 'many')).toBe('PRODUCT_REQUIRED')
  for (const field of ['context_type', 'context_id', 'role', 'user_id', 'display_name', 'allowed_peer_role']) {
    expect(await askToken({ ...tokenRequest, product: 'desk', [field]: ' ' }, 'many')).toBe(
      `${field.toUpperCase()}_REQUIRED`,
    )
  }
  expect(await askToken(tokenRequest, '')).toBe('PRODUCT_AUTH_KEY_ID_REQUIRED')
  expect(await askToken(tokenRequest, 'one', '')).toBe('PRODUCT_AUTH_SECRET_REQUIRED')
  expect(await askToken(tokenRequest, 'nobody')).toBe('PRODUCT_AUTH_INVALID_KEY')
  expect(await askToken(tokenRequest, 'one', 'wrong')).toBe('PRODUCT_AUTH_INVALID_SECRET')
  expect(await askToken({ ...tokenRequest, product: 'other' })).toBe('PRODUCT_AUTH_PRODUCT_MISMATCH')
  expect(await ask('PUT', tokenPath, {}, 'POST')).toBe('METHOD_NOT_ALLOWED')
  const many = await Promise.all(Array.from({ length: 14 }, () => askToken(tokenRequest, 'slow')))
  expect(many).toContain('BOOTSTRAP_KEY_RATE_LIMITED')
})

async function tokenOf(user_id: string, role: string, peer: string): Promise<string> {
  const response = await fetch(service.url + tokenPath, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-SVC-Product-Key-ID': 'one', 'X-SVC-Product-Secret': secret },
    body: JSON.stringify({ ...tokenRequest, device_id: null, user_id, role, allowed_peer_role: peer }),
  })
  return (await response.json()).token
}

const messages = createAsyncApi().components as { messages: Record<string, { name: string; payload: JsonObject }> }
const schemaOf = (direction: 'client' | 'service', event: string) => {
  const [, message] =
    Object.entries(messages.messages).find(([key, it]) => key.startsWith(direction) && it.name === event) ?? []
  return message?.payload
}
const seen = new Set<string>()

interface Frame {
  readonly event: string
  readonly data: Record<string, unknown>
  readonly seq?: number
  readonly version?: number
}

/** A socket that holds every frame of both directions against the document. */
async function connect(token: string, query = '') {
  const socket = new WebSocket(`${service.url.replace('http', 'ws')}/v1/ws${query}`, ['jwt', token])
  const frames: Frame[] = []
  const all: Frame[] = []
  let requests = 0
  let arrived: (() => void) | undefined
  const wrong: unknown[] = []
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(String(data))
    const schema = schemaOf('service', frame.event)
    if (schema === undefined || !Compile(schema).Check(frame)) wrong.push(frame)
    seen.add(frame.event)
    frames.push(frame)
    all.push(frame)
    arrived?.()
  }
  const closed = new Promise<number>((resolve) => {
    socket.onclose = ({ code }) => resolve(code)
  })
  const next = async (event: string) => {
    for (;;) {
      const at = frames.findIndex((frame) => frame.event === event)
      const [frame] = at < 0 ? [] : frames.splice(at, 1)
      if (frame !== undefined) return frame.data
      await new Promise<void>((resolve) => {
        arrived = resolve
      })
    }
  }
  return {
    next,
    all,
    closed,
    wrong,
    close: (code?: number) => socket.close(code),
    send(event: string, data: object) {
      requests++
      const frame = { event, request_id: `r${requests}`, ...(query !== '' && { n: requests }), data }
      expect(Compile(schemaOf('client', event) ?? {}).Check(frame)).toBe(true)
      socket.send(JSON.stringify(frame))
    },
    raw: (text: string) => socket.send(text),
  }
}

const sdp = (type: string) => ({ type, sdp: 'v=0\r\n' })
const candidate = { candidate: 'candidate:1 1 udp 1 192.0.2.1 9 typ host', sdpMid: '0', sdpMLineIndex: 0 }

test('GET /v1/ws: every event of the service is as it is described', async () => {
  const annToken = await tokenOf('ann', 'customer', 'agent')
  const benToken = await tokenOf('ben', 'agent', 'customer')
  const [ann, ben, benToo] = await Promise.all([connect(annToken), connect(benToken), connect(benToken)])
  await Promise.all([ann, ben, benToo].map((it) => it.next('auth.ok')))
  const invite = async (more: object = {}) => {
    ann.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent', ...more })
    const { call_uuid } = await ann.next('call.invited')
    await ben.next('call.ringing')
    return { call_uuid }
  }

  const call = await invite({ metadata: { topic: 'delivery' } })
  ann.send('webrtc.offer', { ...call, sdp: sdp('offer') })
  ben.send('call.accept', call)
  await ann.next('call.accepted')
  await benToo.next('call.cancelled')
  await ben.next('webrtc.offer')
  ben.send('webrtc.answer', { ...call, sdp: sdp('answer') })
  await ann.next('webrtc.answer')
  ann.send('webrtc.ice_candidate', { ...call, candidate })
  await ben.next('webrtc.ice_candidate')
  ben.send('call.connected', call)
  ben.send('call.end', { ...call, reason: 'done' })
  await ann.next('call.ended')

  const rejected = await invite()
  ben.send('call.reject', rejected)
  await ann.next('call.rejected')
  const cancelled = await invite()
  ann.send('call.cancel', cancelled)
  await ben.next('call.cancelled')
  await invite({ ring_timeout_ms: 1 })
  await Promise.all([ann, ben].map((it) => it.next('call.missed')))

  ann.send('call.invite', { callee_user_id: 'ann', callee_role: 'customer' })
  ann.raw('no JSON')
  ann.raw('{"event":"call.nothing"}')
  ann.raw(`{"event":"call.accept","data":{"call_uuid":"x"}}`)
  ann.send('call.accept', cancelled)
  ann.raw('{"event":"call.invite","data":{"callee_user_id":"ben","callee_role":"agent","call_type":"NO"}}')
  for (let i = 0; i < 6; i++) await ann.next('call.error')

  const taken = ['call.peer_moved', 'call.listed', 'call.transfer_started', 'call.transferring', 'call.transfer_failed']
  const peer = ['call.media', 'call.peer_away', 'call.peer_back', 'presence.state', 'presence.changed', ...taken]
  const extended = [
    'call.ack',
    'call.status',
    'call.alerting',
    'ice.servers',
    'auth.refreshed',
    'session.reset',
    ...peer,
  ]
  const base = Object.keys(serverEvents).filter((event) => !extended.includes(event))
  expect([...seen].sort()).toEqual(base.sort())
  for (const it of [ann, ben, benToo]) {
    it.close()
    expect(it.wrong).toEqual([])
    for (const frame of it.all) expect(frame).not.toContainAnyKeys(['seq', 'version'])
  }
})

test('GET /v1/ws?ext=1: every event of an extended session is as it is described, and numbered', async () => {
  const annToken = await tokenOf('ann', 'customer', 'agent')
  const extended = '?ext=1'
  const ann = await connect(annToken, extended)
  const benToken = await tokenOf('ben', 'agent', 'customer')
  const ben = await connect(benToken, extended)
  const welcome = await ann.next('auth.ok')
  const isExtendedAuthOk = Compile(plainSchema(ExtendedAuthOk))
  expect(welcome).toMatchObject({ recovered: false, handled: 0, active_calls: [] })
  expect(isExtendedAuthOk.Check(welcome)).toBe(true)
  await ben.next('auth.ok')

  await setProduct(service, 'shop', '--presence', 'peers')
  const participants = ['ben', 'eva'].map((user_id) => ({ role: 'agent', user_id }))
  // It counts within a second.
  while (!seen.has('presence.state')) {
    ann.raw(JSON.stringify({ event: 'presence.watch', request_id: 'w', data: { participants } }))
    await Promise.race([ann.next('presence.state'), Bun.sleep(200)])
  }
  const eva = await connect(await tokenOf('eva', 'agent', 'customer'), extended)
  await ann.next('presence.changed')

  ann.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent' })
  const { call_uuid } = await ann.next('call.invited')
  await ben.next('call.ringing')
  ben.send('call.alerting', { call_uuid })
  await ben.next('call.ack')
  await ann.next('call.alerting')
  ben.send('call.accept', { call_uuid })
  await ann.next('call.accepted')
  ann.send('webrtc.offer', { call_uuid, sdp: sdp('offer') })
  await ann.next('call.ack')
  await ben.next('webrtc.offer')
  ben.send('call.connected', { call_uuid })
  await ann.next('call.status')
  ann.send('auth.refresh', { token: annToken })
  await ann.next('auth.refreshed')
  await ann.next('ice.servers')

  ben.send('call.media', { call_uuid, audio: false, video: true, screen: false })
  await ann.next('call.media')

  // Gone without a goodbye, and back: what came meanwhile comes then.
  ann.close(4000)
  await ann.closed
  await ben.next('call.peer_away')
  ben.send('webrtc.answer', { call_uuid, sdp: sdp('answer') })
  for (let acks = 0; acks < 4; acks++) await ben.next('call.ack')
  const seq = ann.all.findLast((frame) => frame.seq !== undefined)?.seq ?? 0
  const back = await connect(
    annToken,
    `${extended}&can=take,transfer&resume=${welcome.session_id}&epoch=${welcome.epoch}&seq=${seq}&n=2`,
  )
  const again = await back.next('auth.ok')
  expect(again).toMatchObject({ session_id: welcome.session_id, recovered: true, handled: 3 })
  expect(again.active_calls).toMatchObject([{ call_uuid, holds_place: true }])
  expect(isExtendedAuthOk.Check(again)).toBe(true)
  await back.next('webrtc.answer')
  await ben.next('call.peer_back')
  // Ben goes on at another session, and the peer listed that it understands this.
  const desk = await connect(benToken, `${extended}&can=take,transfer`)
  await desk.next('auth.ok')
  desk.send('call.list', {})
  expect((await desk.next('call.listed')).active_calls).toMatchObject([{ call_uuid, elsewhere: true }])
  desk.send('call.take', { call_uuid })
  await back.next('call.peer_moved')
  await ben.next('call.cancelled')
  // Ben hands Ann over to Zoe, who does not want that.
  const zoe = await connect(await tokenOf('zoe', 'customer', 'agent'), extended)
  await zoe.next('auth.ok')
  desk.send('call.transfer', { call_uuid, to_role: 'customer', to_user_id: 'zoe' })
  const { new_call_uuid } = await desk.next('call.transfer_started')
  await back.next('call.transferring')
  await zoe.next('call.ringing')
  zoe.send('call.reject', { call_uuid: new_call_uuid })
  for (const it of [back, desk]) expect(await it.next('call.transfer_failed')).toMatchObject({ new_call_uuid })
  desk.send('call.end', { call_uuid })
  await back.next('call.ended')
  const missing = Object.keys(serverEvents).filter((event) => !seen.has(event))
  // No log is lost under a live socket; nodes of an earlier version say so where it was [RES4].
  expect(missing).toEqual(['session.reset'])

  for (const told of [[...ann.all, ...back.all], ben.all, desk.all]) {
    const pushes = told.filter((frame) => frame.seq !== undefined)
    expect(pushes.map((frame) => frame.seq)).toEqual(pushes.map((_, index) => index + 1))
    const replies: readonly string[] = [
      'auth.ok',
      'auth.refreshed',
      'call.ack',
      'call.listed',
      'call.invited',
      'call.transfer_started',
      'presence.state',
      'call.error',
    ]
    for (const { event, seq, version } of told) {
      expect({ event, numbered: seq !== undefined }).toEqual({ event, numbered: !replies.includes(event) })
      const ofCall = (versioned as readonly string[]).includes(event)
      expect({ event, version: version !== undefined }).toEqual({ event, version: ofCall })
    }
  }
  for (const it of [ann, ben, eva, back, desk, zoe]) {
    it.close()
    expect(it.wrong).toEqual([])
  }
})

test('GET /v1/ws: a bad token is told over the socket, and the close code is described', async () => {
  const socket = await connect('no-token')
  await socket.next('call.error')
  expect(Object.keys(closeCodes)).toContain(String(await socket.closed))
  expect(socket.wrong).toEqual([])
})

test('GET /v1/ws: what is no upgrade', async () => {
  expect(await ask('GET', '/v1/ws')).toBe('UPGRADE_REQUIRED')
  expect(await ask('POST', '/v1/ws', {}, 'GET')).toBe('METHOD_NOT_ALLOWED')
})

async function wholeResponse(response: IncomingMessage): Promise<Response> {
  const headers = Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)])
  const body = Buffer.concat(await Array.fromAsync(response)).toString()
  return new Response(body, { status: response.statusCode ?? 0, headers })
}

/** A request with headers of that size; fetch has a bound of its own. */
function askWithHeaders(path: string, bytes: number): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = get(service.url + path, { headers: { 'X-Padding': 'x'.repeat(bytes) } }, async (response) => {
      const whole = await wholeResponse(response)
      resolve({ status: whole.status, body: await whole.text() })
    })
    asked.on('error', reject)
  })
}

/** A GET with a body, which fetch does not send. */
function askWithBody(path: string, body: string): Promise<Response> {
  return new Promise((resolve, reject) => {
    const asked = request(
      service.url + path,
      { method: 'GET', headers: { 'Content-Length': body.length } },
      async (response) => {
        resolve(await wholeResponse(response))
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })
}

test('headers up to 16 KiB are read; over it the answer is 431 without a body', async () => {
  expect((await askWithHeaders('/healthz', 15 * 1024)).status).toBe(200)
  for (const path of ['/healthz', '/v1/calls/history']) {
    expect(openApi.paths[path]?.get?.responses).toHaveProperty('431')
    expect(await askWithHeaders(path, 16 * 1024)).toEqual({ status: 431, body: '' })
  }
})

test('a body over 16 KiB is refused on every path', async () => {
  const body = 'x'.repeat(17_000)
  for (const [path, methods] of Object.entries(openApi.paths)) {
    for (const method of Object.keys(methods)) {
      const headers = { 'Content-Length': String(body.length) }
      const answer =
        method === 'get'
          ? await askWithBody(path, body)
          : await fetch(service.url + path, { method: 'POST', headers, body })
      expect(await hold(answer, path, method)).toBe('REQUEST_BODY_TOO_LARGE')
    }
  }
})

/** A request for an upgrade that is answered without one. fetch cannot ask for it. */
function askUpgrade(headers: Record<string, string>, query = ''): Promise<Response> {
  const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', ...headers }
  const key = { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  return new Promise((resolve, reject) => {
    const asked = get(`${service.url}/v1/ws${query}`, { headers: { ...upgrade, ...key } }, async (response) => {
      resolve(await wholeResponse(response))
    })
    asked.on('error', reject)
    asked.on('upgrade', () => reject(new Error('the upgrade was not refused')))
  })
}

test('GET /v1/ws: an upgrade that is refused', async () => {
  const refused = async (headers: Record<string, string>, query?: string) =>
    hold(await askUpgrade(headers, query), '/v1/ws', 'GET')
  expect(await refused({})).toBe('AUTH_TOKEN_REQUIRED')
  expect(await refused({ Authorization: 'Basic YTpi' })).toBe('AUTH_TOKEN_REQUIRED')
  expect(await refused({ Authorization: 'Bearer no-token' })).toBe('AUTH_TOKEN_INVALID')
  expect(await refused({}, '?token=no-token')).toBe('AUTH_TOKEN_INVALID')
})

test('GET /v1/calls/history', async () => {
  const authorized = { headers: { Authorization: `Bearer ${await tokenOf('ann', 'customer', 'agent')}` } }
  expect(await ask('GET', '/v1/calls/history?limit=2', authorized)).toBe('200')
  expect(await ask('GET', '/v1/calls/history')).toBe('AUTH_TOKEN_REQUIRED')
  expect(await ask('DELETE', '/v1/calls/history', {}, 'GET')).toBe('METHOD_NOT_ALLOWED')
  const bad = { headers: { Authorization: 'Bearer x' } }
  expect(await ask('GET', '/v1/calls/history', bad)).toBe('AUTH_TOKEN_INVALID')
  const many = Array.from({ length: 14 }, () => ask('GET', '/v1/calls/history', authorized))
  expect(await Promise.all(many)).toContain('RATE_LIMITED')
})

test('POST /v1/call/ice-servers', async () => {
  const path = '/v1/call/ice-servers'
  const token = await tokenOf('eve', 'customer', 'agent')
  const authorized = { headers: { Authorization: `Bearer ${token}` } }
  expect(await ask('POST', path, authorized)).toBe('200')
  expect(await ask('POST', path, { ...authorized, body: 'x'.repeat(20_000) })).toBe('REQUEST_BODY_TOO_LARGE')
  const expired = { headers: { Authorization: `Bearer ${signToken({ ...claimsOf(token), exp: 1 })}` } }
  expect(await ask('POST', path, expired)).toBe('AUTH_TOKEN_INVALID')
  expect(await ask('POST', path)).toBe('AUTH_TOKEN_REQUIRED')
  expect(await ask('GET', path, authorized, 'POST')).toBe('METHOD_NOT_ALLOWED')
  const many = Array.from({ length: 14 }, () => ask('POST', path, authorized))
  expect(await Promise.all(many)).toContain('RATE_LIMITED')
})

test('GET /healthz and GET /readyz', async () => {
  for (const path of ['/healthz', '/readyz']) {
    expect(await ask('GET', path)).toBe('200')
    expect(await ask('POST', path, {}, 'GET')).toBe('METHOD_NOT_ALLOWED')
  }
})
