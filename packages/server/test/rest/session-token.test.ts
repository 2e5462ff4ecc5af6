import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { allowedActions, TokenResponse } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import { hashSecret } from '../../src/products/product-auth.ts'
import {
  credentials,
  failureOf,
  goodBody,
  jwtKey,
  keys,
  openStores,
  type RestService,
  startRest,
  tokenOf,
} from './rest-service.ts'

let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
beforeAll(async () => {
  shared = await openStores()
  rest = startRest({ stores: shared.stores })
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

const without = (field: keyof typeof goodBody) => ({ ...goodBody, [field]: undefined })
const refusal = async (body: unknown, headers?: Record<string, string>) => failureOf(await rest.ask(body, headers))

describe('success', () => {
  test('[interface] POST /v1/call/session-token 200: every field', async () => {
    const response = await rest.ask({ ...goodBody, product: 'shop', device_id: 'phone', app_version: '1.2.3' })
    const answer = await tokenOf(response)
    expect(createValidator(TokenResponse)(answer).ok).toBe(true)
    expect(Object.keys(answer).sort()).toEqual(
      ['allowed_actions', 'expires_at', 'ice_servers', 'token', 'user', 'ws_url'].sort(),
    )
    expect(answer.expires_at).toBe('2026-01-01T01:00:00.000Z')
    expect(answer.ws_url).toBe(`${rest.url.replace('http', 'ws')}/v1/ws`)
    expect(answer.ice_servers).toEqual([])
    expect(answer.user).toEqual({ user_id: 'ann', role: 'customer', display_name: 'Ann' })
    expect(answer.allowed_actions).toEqual([...allowedActions])
    expect(response.headers.get('content-type')).toBe('application/json')
  })

  test('[TOK2] the token allows the further roles, too, each once', async () => {
    const rolesOf = async (more_peer_roles: unknown) => {
      const { token } = await tokenOf(await rest.ask({ ...goodBody, more_peer_roles }))
      return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).allowed_peer_roles
    }
    expect(await rolesOf(['boss', 'agent', 'boss'])).toEqual(['agent', 'boss'])
    for (const none of [undefined, null, []]) expect(await rolesOf(none)).toEqual(['agent'])
  })

  test('[TOK2] the token, read by hand', async () => {
    const { token } = await tokenOf(await rest.ask({ ...goodBody, device_id: 'phone', app_version: '1.2.3' }))
    const [head = '', body = '', signature = ''] = token.split('.')
    expect(signature).toBe(createHmac('sha256', jwtKey).update(`${head}.${body}`).digest('base64url'))
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
    const at = rest.clock.at / 1000
    expect(claims).toEqual({
      iss: 'ringwire',
      aud: 'ringwire',
      sub: 'ann',
      iat: at,
      nbf: at - 60,
      exp: at + 3600,
      jti: expect.any(String),
      product: 'shop',
      role: 'customer',
      display_name: 'Ann',
      context_type: 'order',
      context_id: '17',
      allowed_peer_roles: ['agent'],
      allowed_actions: [...allowedActions],
      device_id: 'phone',
      app_version: '1.2.3',
      key: createHash('sha256').update(keys.shop.id).digest('base64url').slice(0, 16),
    })
  })

  test('[TOK3] no-store, nosniff and no CORS, also on failures and preflights', async () => {
    const origin = { Origin: 'https://evil.example.com' }
    const answers = [
      await rest.ask(goodBody, { ...credentials(), ...origin }),
      await rest.ask('', { ...credentials(), ...origin }),
      await rest.get('/v1/call/session-token', { method: 'OPTIONS', headers: origin }),
    ]
    for (const { headers } of answers) {
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  test('[TOK1] unknown fields are ignored, __proto__ among them', async () => {
    const text = JSON.stringify({ ...goodBody, more: { deep: [1] } }).replace('{', '{"__proto__":{"product":5},')
    expect((await tokenOf(await rest.ask(text))).user.user_id).toBe('ann')
  })

  test('[TOK1] a key of several products takes the one that is named', async () => {
    const { token } = await tokenOf(await rest.ask({ ...goodBody, product: 'clinic' }, credentials(keys.both)))
    expect(rest.tokens.verify(token)).toMatchObject({ ok: true, claims: { participant: { product: 'clinic' } } })
  })

  test('[PRIV1] the policy is beside the ICE servers where the product relays alone, and else not there', async () => {
    const tokenFor = async (product: string) =>
      tokenOf(await rest.ask({ ...goodBody, product }, credentials(keys.both)))
    expect((await tokenFor('clinic')).ice_transport_policy).toBe('relay')
    expect(Object.keys(await tokenFor('shop'))).not.toContain('ice_transport_policy')
  })

  test('[TOK1] product null or blank is not given', async () => {
    for (const product of [null, '', '  ', undefined]) {
      expect((await rest.ask({ ...goodBody, product })).status).toBe(200)
    }
  })

  test('[TOK1] device_id and app_version null or blank are not given', async () => {
    for (const nothing of [null, '', ' \t']) {
      const { token } = await tokenOf(await rest.ask({ ...goodBody, device_id: nothing, app_version: nothing }))
      expect(rest.tokens.verify(token)).toMatchObject({ ok: true, claims: { deviceId: null, appVersion: null } })
    }
  })

  test('[TOK1] text comes through as it was sent: every script, spaces around it', async () => {
    const display_name = ' Ŝtefanie 🜁 '
    const answer = await tokenOf(await rest.ask({ ...goodBody, display_name, user_id: 'id ' }))
    expect(answer.user).toMatchObject({ display_name, user_id: 'id ' })
    expect(rest.tokens.verify(answer.token)).toMatchObject({ ok: true, claims: { displayName: display_name } })
  })

  test('[TOK4] both secrets of a rotated key are good until the grace period ends', async () => {
    const now = rest.clock.at
    const put = { keyId: 'turning', secretHash: hashSecret('first'), products: ['shop'], origin: 'cli' } as const
    await shared.stores.products.putKey(put, now)
    await shared.stores.products.rotateKey('turning', hashSecret('second'), now + 60_000, now)
    const as = (secret: string) => rest.ask(goodBody, credentials({ id: 'turning', secret }))
    expect([(await as('first')).status, (await as('second')).status]).toEqual([200, 200])
    rest.clock.at = now + 60_001
    expect([(await as('first')).status, (await as('second')).status]).toEqual([401, 200])
    rest.clock.at = now
  })
})

describe('the codes of the interface', () => {
  test('[interface] POST /v1/call/session-token 400 INVALID_REQUEST_BODY', async () => {
    for (const body of [undefined, '', 'no json', '[]', 'null', '"text"', '5', 'true', '{"a":1', '{}x', "{'a':1}"]) {
      expect(await refusal(body)).toMatchObject({ status: 400, code: 'INVALID_REQUEST_BODY' })
    }
  })
  test('[interface] POST /v1/call/session-token 400 PRODUCT_REQUIRED', async () => {
    for (const product of [undefined, null, '', ' ']) {
      const failure = await refusal({ ...goodBody, product }, credentials(keys.both))
      expect(failure).toMatchObject({ status: 400, code: 'PRODUCT_REQUIRED' })
    }
  })
  for (const field of ['context_type', 'context_id', 'role', 'user_id', 'display_name', 'allowed_peer_role'] as const) {
    const code = `${field.toUpperCase()}_REQUIRED`
    test(`[interface] POST /v1/call/session-token 400 ${code}`, async () => {
      for (const body of [
        without(field),
        ...[null, '', '  ', '\t\n', '\u00a0'].map((value) => ({ ...goodBody, [field]: value })),
      ]) {
        expect(await refusal(body)).toEqual({ status: 400, code, message: `${field} is required.` })
      }
    })
  }
  test('[interface] POST /v1/call/session-token 401 PRODUCT_AUTH_KEY_ID_REQUIRED', async () => {
    const { secret } = keys.shop
    for (const headers of [{ 'X-SVC-Product-Secret': secret }, credentials({ id: ' ', secret }), {}]) {
      expect(await refusal(goodBody, headers)).toMatchObject({ status: 401, code: 'PRODUCT_AUTH_KEY_ID_REQUIRED' })
    }
  })
  test('[interface] POST /v1/call/session-token 401 PRODUCT_AUTH_SECRET_REQUIRED', async () => {
    const { id } = keys.shop
    for (const headers of [{ 'X-SVC-Product-Key-ID': id }, credentials({ id, secret: ' ' })]) {
      expect(await refusal(goodBody, headers)).toMatchObject({ status: 401, code: 'PRODUCT_AUTH_SECRET_REQUIRED' })
    }
  })
  test('[interface] POST /v1/call/session-token 401 PRODUCT_AUTH_INVALID_KEY', async () => {
    for (const key of [
      { id: 'nobody', secret: keys.shop.secret },
      keys.off,
      { id: 'SHOP-KEY', secret: keys.shop.secret },
    ]) {
      expect(await refusal(goodBody, credentials(key))).toMatchObject({ status: 401, code: 'PRODUCT_AUTH_INVALID_KEY' })
    }
  })
  test('[interface] POST /v1/call/session-token 401 PRODUCT_AUTH_INVALID_SECRET', async () => {
    const { id, secret } = keys.shop
    for (const wrong of ['wrong', secret.slice(0, -1), `${secret}x`, secret.toUpperCase(), keys.both.secret]) {
      const failure = await refusal(goodBody, credentials({ id, secret: wrong }))
      expect(failure).toMatchObject({ status: 401, code: 'PRODUCT_AUTH_INVALID_SECRET' })
    }
  })
  test('[interface] POST /v1/call/session-token 403 PRODUCT_AUTH_PRODUCT_MISMATCH', async () => {
    for (const product of ['clinic', 'Shop', ' shop', 'shop ']) {
      expect(await refusal({ ...goodBody, product })).toMatchObject({
        status: 403,
        code: 'PRODUCT_AUTH_PRODUCT_MISMATCH',
      })
    }
    const failure = await refusal({ ...goodBody, product: 'third' }, credentials(keys.both))
    expect(failure.code).toBe('PRODUCT_AUTH_PRODUCT_MISMATCH')
  })
  test('[interface] POST /v1/call/session-token 429 BOOTSTRAP_IP_RATE_LIMITED', async () => {
    const limited = startRest({ stores: shared.stores, env: { RINGWIRE_TOKEN_RATE_IP: '2/60' } })
    try {
      const statuses = []
      for (let i = 0; i < 3; i++) statuses.push((await limited.ask(goodBody)).status)
      expect(statuses).toEqual([200, 200, 429])
      const response = await limited.ask(goodBody)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(Number(response.headers.get('retry-after'))).toBeLessThanOrEqual(60)
      expect(await failureOf(response)).toMatchObject({ status: 429, code: 'BOOTSTRAP_IP_RATE_LIMITED' })
    } finally {
      await limited.stop()
    }
  })
  test('[interface] POST /v1/call/session-token 429 BOOTSTRAP_KEY_RATE_LIMITED', async () => {
    const limited = startRest({ stores: shared.stores, env: { RINGWIRE_TOKEN_RATE_KEY: '1/60' } })
    try {
      expect((await limited.ask(goodBody)).status).toBe(200)
      const response = await limited.ask(goodBody)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(await failureOf(response)).toMatchObject({ status: 429, code: 'BOOTSTRAP_KEY_RATE_LIMITED' })
      expect((await limited.ask({ ...goodBody, product: 'shop' }, credentials(keys.both))).status).toBe(200)
    } finally {
      await limited.stop()
    }
  })
})

describe('what is around it', () => {
  test('[TOK6] ws_url comes from the public URL', async () => {
    const service = startRest({ stores: shared.stores, env: { RINGWIRE_PUBLIC_URL: 'https://calls.example.com/x/' } })
    try {
      expect((await tokenOf(await service.ask(goodBody))).ws_url).toBe('wss://calls.example.com/x/v1/ws')
    } finally {
      await service.stop()
    }
  })

  test('[TOK6] without one it follows the Host header; whoever is not on this machine gets wss', async () => {
    const text = JSON.stringify(goodBody)
    const request = (host: string) =>
      [
        'POST /v1/call/session-token HTTP/1.1',
        `Host: ${host}`,
        `X-SVC-Product-Key-ID: ${keys.shop.id}`,
        `X-SVC-Product-Secret: ${keys.shop.secret}`,
        `Content-Length: ${text.length}`,
        '',
        text,
      ].join('\r\n')
    expect(await rest.raw(request('calls.example.com'))).toContain('"ws_url":"wss://calls.example.com/v1/ws"')
    expect(await rest.raw(request('localhost:99'))).toContain('"ws_url":"ws://localhost:99/v1/ws"')
    // A Host header that is not a host: the address on which the service listens.
    for (const host of ['[', 'a b', 'x@y', 'x:99999', '']) {
      expect(await rest.raw(request(host))).toContain('"ws_url":"ws://127.0.0.1:8080/v1/ws"')
    }
  })

  test('[ICE1] TURN credentials, computed again by hand', async () => {
    const env = {
      RINGWIRE_STUN_URLS: 'stun:s.test:3478',
      RINGWIRE_TURN_URLS: 'turn:t.test:3478?transport=udp,turns:t.test:443?transport=tcp',
      RINGWIRE_TURN_SECRET: 'shared-with-coturn',
    }
    const service = startRest({ stores: shared.stores, env })
    try {
      const [stun, turn, ...more] = (await tokenOf(await service.ask(goodBody))).ice_servers
      expect(more).toEqual([])
      expect(stun).toEqual({ urls: ['stun:s.test:3478'] })
      expect(turn?.urls).toEqual(env.RINGWIRE_TURN_URLS.split(','))
      const [expiry, name, ...rest] = turn?.username?.split(':') ?? []
      expect(rest).toEqual([])
      expect(Number(expiry)).toBe(service.clock.at / 1000 + 4 * 3600)
      expect(name).toMatch(/^[\w-]{24}$/)
      const credential = createHmac('sha1', env.RINGWIRE_TURN_SECRET)
        .update(turn?.username ?? '')
        .digest('base64')
      expect(turn?.credential).toBe(credential)
    } finally {
      await service.stop()
    }
  })

  test('[TOK5] failed authentications have a budget; a valid credential always passes it', async () => {
    const service = startRest({ stores: shared.stores, env: { RINGWIRE_TOKEN_FAIL_RATE_IP: '2/60' } })
    try {
      const wrong = credentials({ id: keys.shop.id, secret: 'wrong' })
      const unknown = credentials({ id: 'nobody', secret: 'wrong' })
      expect((await failureOf(await service.ask(goodBody, wrong))).code).toBe('PRODUCT_AUTH_INVALID_SECRET')
      expect((await failureOf(await service.ask(goodBody, unknown))).code).toBe('PRODUCT_AUTH_INVALID_KEY')
      for (const headers of [wrong, unknown]) {
        const response = await service.ask(goodBody, headers)
        expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
        expect(await failureOf(response)).toMatchObject({ status: 429, code: 'BOOTSTRAP_IP_RATE_LIMITED' })
      }
      expect((await service.ask(goodBody)).status).toBe(200)
      // A header that is missing is not a guess.
      expect((await failureOf(await service.ask(goodBody, {}))).code).toBe('PRODUCT_AUTH_KEY_ID_REQUIRED')
    } finally {
      await service.stop()
    }
  })

  test('[TOK5] behind a trusted proxy each client counts for itself', async () => {
    const env = { RINGWIRE_TOKEN_RATE_IP: '1/60', RINGWIRE_TRUST_PROXY: '127.0.0.1' }
    const service = startRest({ stores: shared.stores, env })
    const from = (address: string) => service.ask(goodBody, { ...credentials(), 'X-Forwarded-For': address })
    try {
      expect((await from('203.0.113.1')).status).toBe(200)
      expect((await from('203.0.113.2')).status).toBe(200)
      expect((await from('6.6.6.6, 203.0.113.1')).status).toBe(429)
      expect((await from('2001:db8::1')).status).toBe(200)
      expect((await from('2001:db8::2')).status).toBe(429)
      expect((await from('::ffff:203.0.113.2')).status).toBe(429)
    } finally {
      await service.stop()
    }
  })

  test('[LOG1] nothing that was sent is in the log', async () => {
    await rest.ask(goodBody)
    await rest.ask(goodBody, credentials({ id: keys.shop.id, secret: 'wrong-hunter2' }))
    expect(rest.log.join('')).not.toContain('hunter2')
    expect(rest.log.join('')).not.toContain(keys.shop.secret)
  })
})
