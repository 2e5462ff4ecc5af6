import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { failureOf, openStores, type RestService, startRest } from './rest-service.ts'

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

test('[PUSH1] a key that is no point of P-256 is refused, and so is a secret of another length', async () => {
  const phone = rest.token({ deviceId: 'phone' })
  const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  const changed = (at: number, bits: number) => point.map((byte, index) => (index === at ? byte ^ bits : byte))
  const secret = Buffer.alloc(16, 7)
  const put = async (p256dh: Uint8Array, auth: Uint8Array) => {
    const keys = { p256dh: Buffer.from(p256dh).toString('base64url'), auth: Buffer.from(auth).toString('base64url') }
    const subscription = { endpoint: 'https://push.example.com/1', keys }
    const response = await rest.get(path, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${phone}` },
      body: JSON.stringify({ platform: 'webpush', subscription }),
    })
    return response.status === 200 ? 200 : await failureOf(response)
  }
  expect(await put(point, secret)).toBe(200)
  const ones = Buffer.alloc(64, 255)
  const bad = [
    changed(64, 1),
    changed(1, 128),
    changed(0, 1),
    Buffer.alloc(65),
    Buffer.concat([Buffer.from([4]), ones]),
  ]
  for (const key of [...bad, Buffer.concat([Buffer.from([4]), Buffer.alloc(64)]), point.subarray(0, 64)]) {
    expect(await put(key, secret)).toMatchObject({
      status: 400,
      code: 'INVALID_REQUEST_BODY',
      message: 'subscription.keys.p256dh must be an uncompressed point of P-256.',
    })
  }
  for (const length of [15, 17, 32]) {
    const failed = await put(point, Buffer.alloc(length, 7))
    expect(failed).toMatchObject({ status: 400, code: 'INVALID_REQUEST_BODY' })
    expect(failed).toMatchObject({ message: 'subscription.keys.auth must be 16 bytes.' })
  }
})
