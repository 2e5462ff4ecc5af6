import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { IceServersResponse, type TokenResponse } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import { noCredentials, signedTokens } from './bad-tokens.ts'
import { failureOf, goodBody, openStores, type RestService, startRest, tokenOf } from './rest-service.ts'

const path = '/v1/call/ice-servers'
const turnSecret = 'a-secret-that-turn-servers-know'
const turn = { RINGWIRE_TURN_URLS: 'turn:turn.test:3478?transport=udp', RINGWIRE_TURN_SECRET: turnSecret }
const hour = 3600

let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
beforeAll(async () => {
  shared = await openStores()
  rest = start({ ...turn, RINGWIRE_STUN_URLS: 'stun:stun.test:3478', RINGWIRE_REST_RATE: 'off' })
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

function start(env: Record<string, string>): RestService {
  return startRest({ stores: shared.stores, env })
}
const post = (service: RestService, headers: Record<string, string> = {}, body?: string) =>
  service.get(path, { method: 'POST', headers, ...(body !== undefined && { body }) })
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

async function asked(service: RestService, token = service.token()): Promise<IceServersResponse> {
  const response = await post(service, bearer(token))
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as IceServersResponse
}

/** The same question to a service that is configured otherwise. */
async function askedWith(env: Record<string, string>): Promise<IceServersResponse> {
  const service = start(env)
  try {
    return await asked(service)
  } finally {
    await service.stop()
  }
}

describe('success', () => {
  test('[EXT5] POST /v1/call/ice-servers 200: every field', async () => {
    const response = await post(rest, bearer(rest.token()))
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const body = await response.json()
    expect(createValidator(IceServersResponse)(body).ok).toBe(true)
    expect(body).toEqual({
      ice_servers: [
        { urls: ['stun:stun.test:3478'] },
        {
          urls: ['turn:turn.test:3478?transport=udp'],
          username: expect.stringMatching(/^\d+:[\w-]{24}$/),
          credential: expect.any(String),
        },
      ],
      expires_at: new Date(rest.clock.at + 4 * hour * 1000).toISOString(),
    })
  })

  test('[EXT5] [ICE1] the credentials are right, made now, and last until expires_at', async () => {
    const service = start(turn)
    try {
      const token = service.token()
      for (const later of [0, 600_000, 599_999]) {
        service.clock.at += later
        const { ice_servers, expires_at } = await asked(service, token)
        const { username = '', credential } = ice_servers[0] ?? {}
        // turn_server.c: base64(HMAC-SHA1(static-auth-secret, username)), username = "timestamp:anything".
        expect(credential).toBe(createHmac('sha1', turnSecret).update(username).digest('base64'))
        const expiry = Number(username.split(':')[0]) * 1000
        expect(expires_at).toBe(new Date(expiry).toISOString())
        expect(expiry).toBe(Math.floor(service.clock.at / 1000) * 1000 + 4 * hour * 1000)
      }
    } finally {
      await service.stop()
    }
  })

  test('[ICE1] they are what a session token of the same moment comes with', async () => {
    const given: TokenResponse = await tokenOf(await rest.ask({ ...goodBody, user_id: 'both' }))
    expect((await asked(rest, given.token)).ice_servers).toEqual(given.ice_servers)
    const other = rest.token({ participant: { product: 'shop', role: 'customer', userId: 'other' } })
    expect((await asked(rest, other)).ice_servers).not.toEqual(given.ice_servers)
  })

  test('[EXT5] expires_at is null where nothing runs out', async () => {
    expect(await askedWith({})).toEqual({ ice_servers: [], expires_at: null })
    const stun = { RINGWIRE_STUN_URLS: 'stun:stun.test:3478' }
    expect(await askedWith(stun)).toEqual({ ice_servers: [{ urls: ['stun:stun.test:3478'] }], expires_at: null })
    const { RINGWIRE_TURN_URLS } = turn
    const fixed = { RINGWIRE_TURN_URLS, RINGWIRE_TURN_USERNAME: 'u', RINGWIRE_TURN_CREDENTIAL: 'c' }
    expect(await askedWith(fixed)).toEqual({
      ice_servers: [{ urls: [RINGWIRE_TURN_URLS], username: 'u', credential: 'c' }],
      expires_at: null,
    })
    // A secret by itself makes no credentials.
    expect(await askedWith({ RINGWIRE_TURN_SECRET: turnSecret })).toEqual({ ice_servers: [], expires_at: null })
  })

  test('[ICE1] RINGWIRE_TURN_TTL_S and the lifetime of tokens say how long they last', async () => {
    const lasts = async (env: Record<string, string>) =>
      (Date.parse((await askedWith({ ...turn, ...env })).expires_at ?? '') - rest.clock.at) / 1000
    expect(await lasts({ RINGWIRE_TURN_TTL_S: '90' })).toBe(90)
    expect(await lasts({ RINGWIRE_TOKEN_TTL_S: '60' })).toBe(4 * hour)
    expect(await lasts({ RINGWIRE_TOKEN_TTL_S: '80000' })).toBe(80_000)
    expect(await lasts({ RINGWIRE_TOKEN_TTL_S: '80000', RINGWIRE_TURN_TTL_S: '90' })).toBe(90)
  })

  test('a body is not read, whatever is in it', async () => {
    for (const body of ['', '{}', 'rubbish', JSON.stringify({ user_id: 'other' }), 'x'.repeat(10_000)]) {
      const response = await post(rest, { ...bearer(rest.token()), 'Content-Type': 'application/json' }, body)
      expect(response.status).toBe(200)
    }
  })
})

describe('who may not', () => {
  test('401 AUTH_TOKEN_REQUIRED', async () => {
    const token = rest.token()
    for (const value of noCredentials(token)) {
      const response = await post(rest, value === undefined ? {} : { Authorization: value })
      expect(response.headers.get('www-authenticate')).toBe('Bearer')
      expect(await failureOf(response)).toMatchObject({ status: 401, code: 'AUTH_TOKEN_REQUIRED' })
    }
    const inUrl = await rest.get(`${path}?token=${token}&access_token=${token}`, { method: 'POST' })
    expect(await failureOf(inUrl)).toMatchObject({ code: 'AUTH_TOKEN_REQUIRED' })
  })

  test('401 AUTH_TOKEN_INVALID', async () => {
    const { good, bad } = signedTokens(rest.token(), rest.clock.at)
    expect((await post(rest, bearer(good))).status).toBe(200)
    for (const [name, value] of Object.entries(bad)) {
      const response = await post(rest, bearer(value))
      expect(response.headers.get('www-authenticate')).toContain('invalid_token')
      const { status, code } = await failureOf(response)
      expect([name, status, code]).toEqual([name, 401, 'AUTH_TOKEN_INVALID'])
    }
  })

  test('[TOK5] a bad token is 401, however many came', async () => {
    const service = start({ ...turn, RINGWIRE_TOKEN_FAIL_RATE_IP: '2/60' })
    try {
      for (let i = 0; i < 5; i++) expect((await post(service, bearer('rubbish'))).status).toBe(401)
    } finally {
      await service.stop()
    }
  })

  test('[LOG1] neither tokens nor credentials are logged', async () => {
    const service = start({ ...turn, RINGWIRE_LOG_LEVEL: 'debug' })
    try {
      const token = service.token()
      const { ice_servers } = await asked(service, token)
      await post(service, bearer('rubbish-token'))
      for (const secret of [token, 'rubbish-token', ice_servers[0]?.credential, ice_servers[0]?.username, turnSecret]) {
        expect(service.log.join('')).not.toContain(String(secret))
      }
    } finally {
      await service.stop()
    }
  })
})

describe('web pages', () => {
  const origin = { Origin: 'https://app.example.com' }

  test('[EXT5] CORS: any origin by default, on answers, failures and preflights', async () => {
    for (const headers of [{ ...origin, ...bearer(rest.token()) }, origin, { ...origin, ...bearer('rubbish') }]) {
      const response = await post(rest, headers)
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      expect(response.headers.get('access-control-allow-credentials')).toBeNull()
      expect(response.headers.get('access-control-expose-headers')).toBe('Retry-After')
    }
    const preflight = await rest.get(path, {
      method: 'OPTIONS',
      headers: {
        ...origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization',
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('POST')
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toContain('authorization')
  })

  test('[EXT5] CORS follows RINGWIRE_ALLOWED_ORIGINS', async () => {
    const service = start({ RINGWIRE_ALLOWED_ORIGINS: 'https://app.example.com' })
    try {
      for (const method of ['POST', 'OPTIONS']) {
        const allowed = await service.get(path, { method, headers: origin })
        expect(allowed.headers.get('access-control-allow-origin')).toBe(origin.Origin)
        const refused = await service.get(path, { method, headers: { Origin: 'https://evil.example.com' } })
        expect(refused.headers.get('vary')).toBe('Origin')
        expect([...refused.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
      }
    } finally {
      await service.stop()
    }
  })
})
