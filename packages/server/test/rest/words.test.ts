/** What REST refuses names the value that is wrong, and what to do. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { productKey, Service } from '@ringwire/testkit/service'

const secret = '0123456789012345678901234567890123'
let service: Service
beforeAll(async () => {
  const keys = `${productKey.id}:${productKey.secret}:shop;both:${secret}:shop,clinic`
  service = await new Service({ RINGWIRE_BOOTSTRAP_KEYS: keys }).start()
}, 120_000)
afterAll(() => service?.dispose())

async function messageOf(method: string, path: string, more: { key?: string; body?: string } = {}): Promise<string> {
  const headers: Record<string, string> =
    more.key === undefined
      ? { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
      : { 'X-SVC-Product-Key-ID': more.key, 'X-SVC-Product-Secret': secret }
  const response = await fetch(service.url + path, {
    method,
    headers,
    ...(more.body !== undefined && { body: more.body }),
  })
  expect(response.ok).toBe(false)
  return ((await response.json()) as { error: { message: string } }).error.message
}

test('[TOK1] [SRV1] [HTTP1] a refusal names the value and the remedy', async () => {
  const token = '/v1/call/session-token'
  for (const [asked, message] of [
    [['GET', '/v1/server/calls?product=nope'], `The key is not for the product "nope". It is for: shop.`],
    [['GET', '/v1/server/calls', { key: 'both' }], 'product is required, because the key has several: shop, clinic.'],
    [
      ['POST', token, { key: 'both', body: '{"product":"nope"}' }],
      'The key is not for the product "nope". It is for: shop, clinic.',
    ],
    [['POST', token, { body: '{}' }], 'context_type is required.'],
    [['POST', token, { body: 'user=ann' }], 'The request body is not JSON. Send a JSON object.'],
    [['POST', token], 'The request body is missing. Send a JSON object.'],
    [['GET', token], 'This path does not answer GET. It answers POST, OPTIONS.'],
    [['GET', '/v2/calls'], 'There is nothing at /v2/calls. docs/generated/openapi.json lists the paths.'],
    [['GET', '/v1/server/calls/nope'], 'The product shop has no call nope. It never was, is of another product, or'],
    [['GET', '/v1/server/webhooks/we_nope'], 'The product shop has no webhook endpoint we_nope.'],
    [['POST', '/v1/server/webhooks', { body: '{"url":"http://127.0.0.1:3000/"}' }], 'ringwire webhooks listen'],
    [['POST', '/v1/server/webhooks', { body: '{"url":"https://10.0.0.1/"}' }], 'ringwire webhooks listen'],
  ] as const) {
    expect([asked, await messageOf(...(asked as unknown as Parameters<typeof messageOf>))]).toEqual([
      asked,
      expect.stringContaining(message),
    ])
  }
})

test('no message repeats what may be a token, or more of a value than is needed to know it', async () => {
  const token = `eyJ${'a'.repeat(200)}.${'b'.repeat(200)}.c`
  for (const path of [`/${token}`, `/v1/server/calls/${token}`, `/v1/server/webhooks/${token}`]) {
    const message = await messageOf('GET', path)
    expect(message).not.toContain(token.slice(0, 100))
    expect(message.length).toBeLessThan(250)
  }
})
