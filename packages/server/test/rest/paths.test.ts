import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { credentials, failureOf, goodBody, openStores, type RestService, startRest } from './rest-service.ts'

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

describe('health', () => {
  test('[interface] GET /healthz', async () => {
    const response = await rest.get('/healthz')
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toEqual({ ok: true, database: 'unchecked', redis: 'unchecked', service_ready: true })
  })

  test('[interface] GET /readyz', async () => {
    const response = await rest.get('/readyz')
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ ok: true, database: 'ok', redis: 'ok', service_ready: true })
  })

  test('[HEALTH1] draining: live, not ready, and when to ask again', async () => {
    const service = startRest({ stores: shared.stores })
    try {
      expect((await service.get('/readyz')).status).toBe(200)
      service.state = 'draining'
      expect(await (await service.get('/healthz')).json()).toMatchObject({ ok: true, service_ready: false })
      const ready = await service.get('/readyz')
      expect(ready.status).toBe(503)
      expect(Number(ready.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(await ready.json()).toEqual({ ok: false, database: 'ok', redis: 'ok', service_ready: false })
    } finally {
      await service.stop()
    }
  })

  test('[HEALTH1] a database that is gone: live, not ready', async () => {
    const gone = await openStores()
    const service = startRest({ stores: gone.stores })
    try {
      await gone.close()
      expect((await service.get('/healthz')).status).toBe(200)
      const ready = await service.get('/readyz')
      expect(ready.status).toBe(503)
      expect(await ready.json()).toEqual({ ok: false, database: 'error', redis: 'ok', service_ready: false })
    } finally {
      await service.stop()
    }
  })

  test('[HEALTH1] no credentials are needed, and wrong ones do no harm', async () => {
    for (const path of ['/healthz', '/readyz']) {
      expect((await rest.get(path, { headers: { Authorization: 'Bearer rubbish' } })).status).toBe(200)
    }
  })

  test('[HEALTH1] a probe in HTTP/1.0, without a Host header, is answered', async () => {
    expect(await rest.raw('GET /healthz HTTP/1.0\r\n\r\n')).toContain('"ok":true')
    expect(await rest.raw('GET /readyz HTTP/1.0\r\n\r\n')).toContain('"service_ready":true')
    expect(await rest.raw('GET /healthz HTTP/1.1\r\nHost: [\r\n\r\n')).toContain('"ok":true')
  })
})

describe('paths and methods', () => {
  test('[HTTP1] an unknown path: 404 with the REST error body', async () => {
    for (const path of [
      '/',
      '/v1',
      '/v1/calls',
      '/v1/calls/history/',
      '/V1/calls/history',
      '/v2/calls/history',
      '/healthz/x',
      '/%2e%2e/etc/passwd',
      '/v1/call/session-token%00',
    ]) {
      const response = await rest.get(path)
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect([path, (await failureOf(response)).code]).toEqual([path, 'NOT_FOUND'])
      expect(response.status).toBe(404)
    }
    expect(await rest.raw('GET //healthz HTTP/1.1\r\nHost: x\r\n\r\n')).toContain('NOT_FOUND')
  })

  const allow = {
    '/v1/call/session-token': 'POST, OPTIONS',
    '/v1/calls/history': 'GET, HEAD, OPTIONS',
    '/v1/call/ice-servers': 'POST, OPTIONS',
    '/v1/call/device': 'PUT, DELETE, OPTIONS',
    '/v1/call/ring': 'GET, HEAD, OPTIONS',
    '/v1/call/ring/reject': 'POST, OPTIONS',
    '/v1/call/ring/alerting': 'POST, OPTIONS',
    '/healthz': 'GET, HEAD, OPTIONS',
    '/readyz': 'GET, HEAD, OPTIONS',
    '/v1/ws': 'GET, HEAD, OPTIONS',
  }
  for (const [path, methods] of Object.entries(allow)) {
    test(`[HTTP1] ${path}: 405 with Allow for every other method, and OPTIONS says the same`, async () => {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((name) => !methods.includes(name))) {
        const response = await rest.get(path, { method })
        expect(response.headers.get('allow')).toBe(methods)
        expect(await failureOf(response)).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED' })
      }
      const options = await rest.get(path, { method: 'OPTIONS' })
      expect([options.status, options.headers.get('allow'), await options.text()]).toEqual([204, methods, ''])
    })
  }

  test('nosniff on each: health, history, /v1/server, unknown paths; what is answered, what is refused', async () => {
    const token = { Authorization: `Bearer ${rest.token()}` }
    const paths = [
      ...Object.keys(allow),
      '/v1/server/calls',
      '/v1/server/webhooks',
      '/.well-known/jwks.json',
      '/nothing',
    ]
    const seen = new Set<number>()
    for (const path of paths) {
      for (const headers of [{}, token, credentials()]) {
        for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
          const { status, headers: given } = await rest.get(path, { method, headers })
          expect([path, method, status, given.get('x-content-type-options')]).toEqual([path, method, status, 'nosniff'])
          seen.add(status)
        }
      }
    }
    for (const status of [200, 204, 400, 401, 404, 405, 426]) expect([...seen]).toContain(status)
  })

  test('[HTTP1] HEAD says what GET would, without a body', async () => {
    const head = await rest.get('/healthz', { method: 'HEAD' })
    const get = await rest.get('/healthz')
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
    expect((await rest.get('/v1/calls/history', { method: 'HEAD' })).status).toBe(401)
    const token = await rest.get('/v1/call/session-token', { method: 'HEAD' })
    expect([token.status, token.headers.get('allow')]).toEqual([405, 'POST, OPTIONS'])
  })

  test('[HTTP1] GET /v1/ws without an upgrade: 426', async () => {
    const response = await rest.get('/v1/ws')
    expect(response.headers.get('upgrade')).toBe('websocket')
    expect(await failureOf(response)).toMatchObject({ status: 426, code: 'UPGRADE_REQUIRED' })
  })

  test('[HTTP1] a query string changes nothing where none is read', async () => {
    expect((await rest.get('/healthz?x=1&token=abc')).status).toBe(200)
  })
})

describe('what is unexpected', () => {
  async function askOn(spoil: (broken: Awaited<ReturnType<typeof openStores>>) => unknown) {
    const broken = await openStores()
    const service = startRest({ stores: broken.stores })
    try {
      await spoil(broken)
      const response = await service.ask(goodBody)
      const failure = await failureOf(response)
      expect(failure.message).not.toMatch(/sqlite|database|table/i)
      expect(service.log).toHaveLength(1)
      expect(service.log[0]).toContain('/v1/call/session-token')
      expect(service.log[0]).not.toContain(credentials()['X-SVC-Product-Secret'])
      return { ...failure, retryAfter: response.headers.get('retry-after') }
    } finally {
      await service.stop()
      await broken.close()
    }
  }

  test('[HTTP1] a store that cannot answer: 503 SERVICE_UNAVAILABLE with Retry-After', async () => {
    const failure = await askOn(({ dataDir }) => {
      const db = new Database(join(dataDir, 'ringwire.db'))
      db.run('ALTER TABLE product_key_secrets RENAME TO gone')
      db.close()
    })
    expect(failure).toMatchObject({ status: 503, code: 'SERVICE_UNAVAILABLE', retryAfter: '1' })
  })

  test('[HTTP1] a bug: 500 INTERNAL_ERROR', async () => {
    const failure = await askOn(({ stores }) => stores.products.close())
    expect(failure).toMatchObject({ status: 500, code: 'INTERNAL_ERROR', retryAfter: null })
  })
})
