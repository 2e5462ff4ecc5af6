import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { routes } from '@ringwire/protocol/routes'
import { RawSocket } from '@ringwire/testkit/raw-socket'
import { credentials, failureOf, goodBody, keys, openStores, type RestService, startRest } from './rest-service.ts'

let shared: Awaited<ReturnType<typeof openStores>>
let running: RestService[] = []
beforeAll(async () => {
  shared = await openStores()
})
afterEach(async () => {
  for (const service of running.splice(0)) await service.stop()
  running = []
})
afterAll(() => shared.close())

function start(env: Record<string, string>): RestService {
  const service = startRest({ stores: shared.stores, env })
  running.push(service)
  return service
}

/** Sends requests in one go, and gives the statuses that come until the service closes the connection. */
async function pipelined({ url }: RestService, heads: readonly string[]): Promise<number[]> {
  const socket = new RawSocket(url)
  socket.write(heads.map((head) => `${head}\r\nHost: x\r\n\r\n`).join(''))
  await socket.closed
  socket.destroy()
  return [...socket.received.toString('latin1').matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
}
const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

describe('the limit of an address', () => {
  const paths = ['GET /v1/calls/history', 'POST /v1/call/ice-servers', 'GET /v1/ws', 'GET /nothing', 'OPTIONS /v1/ws']
  for (const head of paths) {
    test(`[HTTP1] ${head}: over it 429 RATE_LIMITED says when to come back, and closes the connection`, async () => {
      const service = start({ RINGWIRE_REST_RATE_IP: '3/60' })
      const [method = '', path = ''] = head.split(' ')
      for (let i = 0; i < 3; i++) expect((await service.get(path, { method })).status).not.toBe(429)
      // A text that is not a token is not even looked at.
      const response = await service.get(path, { method, ...bearer('rubbish') })
      expect(response.headers.get('connection')).toBe('close')
      expect(Number(response.headers.get('retry-after'))).toBeWithin(1, 61)
      expect(await failureOf(response)).toMatchObject({ status: 429, code: 'RATE_LIMITED' })
    })
  }

  for (const { path, endpoints } of routes) {
    test(`[HTTP1] ${path}: OPTIONS and every method that it has not count; over the limit the connection is closed`, async () => {
      const service = start({ RINGWIRE_REST_RATE_IP: '3/60', RINGWIRE_TRUST_PROXY: '127.0.0.1' })
      const target = path.replaceAll(/[{}]/g, '')
      const right = endpoints.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      const wrong = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => !right.includes(method))
      for (const [index, method] of ['OPTIONS', ...wrong].entries()) {
        const head = `${method} ${target} HTTP/1.1\r\nX-Forwarded-For: 203.0.113.${index}`
        const status = method === 'OPTIONS' ? 204 : 405
        const statuses = await pipelined(service, Array(10).fill(head))
        const over = endpoints[0]?.counts === 'close' ? status : 429
        expect([method, ...statuses]).toEqual([method, status, status, status, over])
      }
    })
  }

  test('[HTTP1] what is pipelined after a refusal is not answered', async () => {
    const service = start({ RINGWIRE_REST_RATE_IP: '3/60' })
    expect(await pipelined(service, Array(1_000).fill('GET /nothing HTTP/1.1'))).toEqual([404, 404, 404, 429])
    expect(await pipelined(service, Array(1_000).fill('GET /v1/calls/history HTTP/1.1'))).toEqual([429])
  })

  test('[HEALTH1] probes are answered whatever else came; over the limit each has a connection of its own', async () => {
    const service = start({ RINGWIRE_REST_RATE_IP: '3/60' })
    expect(await pipelined(service, Array(1_000).fill('GET /healthz HTTP/1.1'))).toEqual([200, 200, 200, 200])
    expect(await pipelined(service, Array(1_000).fill('GET /healthz HTTP/1.1'))).toEqual([200])
    for (const path of ['/healthz', '/readyz']) {
      const probe = await service.get(path)
      expect(probe.headers.get('connection')).toBe('close')
      expect(await probe.json()).toMatchObject({ ok: true, service_ready: true })
    }
  })

  test('[TOK5] token requests have a limit and a code of their own, and close the connection, too', async () => {
    const service = start({ RINGWIRE_REST_RATE_IP: '1/60', RINGWIRE_TOKEN_RATE_IP: '2/60' })
    for (let i = 0; i < 2; i++) expect((await service.get('/nothing')).status).toBe(i === 0 ? 404 : 429)
    for (const method of ['GET', 'HEAD']) expect((await service.get('/v1/server/calls', { method })).status).toBe(401)
    for (let i = 0; i < 2; i++) expect((await service.ask(goodBody)).status).toBe(200)
    const response = await service.ask(goodBody)
    expect(response.headers.get('connection')).toBe('close')
    expect(await failureOf(response)).toMatchObject({ status: 429, code: 'BOOTSTRAP_IP_RATE_LIMITED' })
  })

  test('[HTTP1] a web page can read the refusal where it could read the answer', async () => {
    const service = start({ RINGWIRE_REST_RATE_IP: '1/60', RINGWIRE_ALLOWED_ORIGINS: 'https://app.example.com' })
    await service.get('/nothing')
    const headers = { Origin: 'https://app.example.com' }
    const history = await service.get('/v1/calls/history', { headers })
    expect([history.status, history.headers.get('access-control-allow-origin')]).toEqual([429, headers.Origin])
    const nothing = await service.get('/nothing', { headers })
    expect([nothing.status, nothing.headers.get('access-control-allow-origin')]).toEqual([429, null])
  })

  test('[HTTP1] each client behind a trusted proxy counts for itself; off: nobody counts', async () => {
    const proxied = start({ RINGWIRE_REST_RATE_IP: '1/60', RINGWIRE_TRUST_PROXY: '127.0.0.1' })
    const from = async (address: string) =>
      (await proxied.get('/nothing', { headers: { 'X-Forwarded-For': address } })).status
    expect([await from('203.0.113.1'), await from('203.0.113.2')]).toEqual([404, 404])
    expect([await from('203.0.113.1'), await from('203.0.113.2')]).toEqual([429, 429])
    const free = start({ RINGWIRE_REST_RATE_IP: 'off' })
    for (let i = 0; i < 5; i++) expect((await free.get('/nothing')).status).toBe(404)
  })
})

describe('the limit of a participant', () => {
  test('[HTTP1] history and ICE servers have one together; over it 429, and nobody else meets it', async () => {
    const service = start({ RINGWIRE_REST_RATE: '3/60' })
    const history = (token: string) => service.get('/v1/calls/history', bearer(token))
    const ice = (token: string) => service.get('/v1/call/ice-servers', { method: 'POST', ...bearer(token) })
    const [ann, again] = [service.token(), service.token({ deviceId: 'tablet' })]
    const statuses = []
    for (const asked of [history(ann), ice(ann), history(again)]) statuses.push((await asked).status)
    expect(statuses).toEqual([200, 200, 200])
    for (const refused of [await history(again), await ice(ann)]) {
      expect(refused.headers.get('connection')).toBe('close')
      expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, 61)
      expect(refused.headers.get('access-control-allow-origin')).toBe('*')
      expect(await failureOf(refused)).toMatchObject({ status: 429, code: 'RATE_LIMITED' })
    }
    const ben = service.token({ participant: { product: 'shop', role: 'customer', userId: 'ben' } })
    expect((await history(ben)).status).toBe(200)
    // An invalid token spends nobody's budget.
    expect((await history('rubbish')).status).toBe(401)
  })
})

describe('bodies that are too large', () => {
  const post = (path: string, headers: string[]) =>
    [`POST ${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n')
  const keyHeaders = Object.entries(credentials(keys.shop)).map(([name, value]) => `${name}: ${value}`)
  const tooLarge =
    /^HTTP\/1\.1 413 [\s\S]*\r\nConnection: close\r\n[\s\S]*\r\n\r\n\{"success":false,"error":\{"code":"REQUEST_BODY_TOO/i

  test('[HTTP1] whoever says so is refused on every path, before anything is read', async () => {
    const service = start({})
    for (const path of [
      '/v1/call/session-token',
      '/v1/call/ice-servers',
      '/v1/calls/history',
      '/healthz',
      '/nothing',
    ]) {
      for (const length of [16 * 1024 + 1, 2 * 1024 * 1024, 10 ** 12, 10 ** 15]) {
        expect(await service.raw(post(path, [`Content-Length: ${length}`]))).toMatch(tooLarge)
      }
    }
  })

  test('[HTTP1] who does not say so is refused as soon as it was sent, and not read on', async () => {
    const service = start({})
    const socket = new RawSocket(service.url)
    socket.write(post('/v1/call/session-token', [...keyHeaders, 'Transfer-Encoding: chunked']))
    socket.write(`4000\r\n${'x'.repeat(0x4000)}\r\n1\r\nx\r\n`)
    await socket.closed
    socket.destroy()
    expect(socket.received.toString()).toMatch(tooLarge)
  })

  test('[HTTP1] a client that sends all of it without looking reads the refusal', async () => {
    const service = start({})
    const response = await service.ask('x'.repeat(300_000))
    expect(await failureOf(response)).toMatchObject({ status: 413, code: 'REQUEST_BODY_TOO_LARGE' })
  })

  test('[HTTP1] Content-Type is not asked for', async () => {
    const service = start({})
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'image/png']) {
      expect((await service.ask(goodBody, { ...credentials(), 'Content-Type': type })).status).toBe(200)
    }
    const text = JSON.stringify(goodBody)
    const raw = await service.raw(
      post('/v1/call/session-token', [...keyHeaders, `Content-Length: ${text.length}`]) + text,
    )
    expect(raw).toStartWith('HTTP/1.1 200')
  })
})
