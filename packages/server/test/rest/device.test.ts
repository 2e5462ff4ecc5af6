import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openStores, type RestService, startRest } from './rest-service.ts'

/** What web pages may ask and read of PUT and DELETE /v1/call/device. */

const path = '/v1/call/device'
const page = 'https://app.example.com'
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

const methods = ['PUT', 'DELETE']
const body = JSON.stringify({ platform: 'fcm', token: 'an-address' })

function ask(service: RestService, method: string, origin: string, token?: string): Promise<Response> {
  const headers = { Origin: origin, ...(token !== undefined && { Authorization: `Bearer ${token}` }) }
  return service.get(path, { method, headers, ...(method === 'PUT' && { body }) })
}

/** As a browser asks before it puts a device: JSON with a token. */
function preflight(service: RestService, method: string, origin: string): Promise<Response> {
  const asked = {
    'Access-Control-Request-Method': method,
    'Access-Control-Request-Headers': 'authorization,content-type',
  }
  return service.get(path, { method: 'OPTIONS', headers: { Origin: origin, ...asked } })
}

const grantsOf = ({ headers }: Response) => [...headers.keys()].filter((name) => name.startsWith('access-control'))

test('[PUSH1] CORS: any origin by default, on answers, failures and preflights', async () => {
  const phone = rest.token({ deviceId: 'phone' })
  for (const [method, token, status] of [
    ['PUT', phone, 200],
    ['DELETE', phone, 204],
    ['PUT', rest.token(), 400],
    ['DELETE', rest.token(), 400],
    ['PUT', 'rubbish', 401],
    ['DELETE', undefined, 401],
    ['POST', phone, 405],
  ] as const) {
    const response = await ask(rest, method, page, token)
    expect([method, response.status]).toEqual([method, status])
    const { headers } = response
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-allow-credentials')).toBeNull()
    expect(headers.get('access-control-expose-headers')).toBe('Retry-After')
  }
  for (const method of methods) {
    const { status, headers } = await preflight(rest, method, page)
    expect([status, headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect(headers.get('access-control-allow-methods')?.split(', ')).toContain(method)
    const allowed = headers.get('access-control-allow-headers')?.toLowerCase().split(', ')
    expect(allowed).toEqual(expect.arrayContaining(['authorization', 'content-type']))
  }
})

test('[PUSH1] CORS follows RINGWIRE_ALLOWED_ORIGINS', async () => {
  const service = startRest({ stores: shared.stores, env: { RINGWIRE_ALLOWED_ORIGINS: page } })
  try {
    for (const method of methods) {
      for (const asked of [preflight, ask]) {
        const allowed = await asked(service, method, page)
        expect(allowed.headers.get('access-control-allow-origin')).toBe(page)
        const refused = await asked(service, method, 'https://evil.example.com')
        expect([refused.headers.get('vary'), grantsOf(refused)]).toEqual(['Origin', []])
      }
    }
  } finally {
    await service.stop()
  }
})
