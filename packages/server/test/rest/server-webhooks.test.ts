import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  DeliveryPage,
  Webhook,
  WebhookPage,
  WebhookQueued,
  WebhookRotated,
  WebhookWithSecret,
} from '@ringwire/protocol/backend'
import { created, ringing } from '../../src/ports/call-store.fixture.ts'
import { attempted } from '../contracts/webhooks.ts'
import { asker, credentials, failureOf, keys, openStores, type RestService, read, startRest } from './rest-service.ts'

const path = '/v1/server/webhooks'
const url = 'https://backend.example.com/webhooks'
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

const ask = asker(() => rest, path)

const refused = async (asked: Promise<Response>) => {
  const { status, code } = await failureOf(await asked)
  return [status, code]
}

test('[HOOK1] an endpoint from its making to its end; its secret is shown where it is made', async () => {
  const made = await read(WebhookWithSecret, ask('POST', '', { url, events: ['call.ended'], description: 'ours' }), 201)
  expect(made).toMatchObject({ url, events: ['call.ended'], description: 'ours', enabled: true })
  const { secret, ...endpoint } = made
  expect(await read(Webhook, ask('GET', `/${made.id}`))).toEqual(endpoint)
  expect(await read(WebhookPage, ask('GET', ''))).toEqual({ success: true, data: [endpoint], next_cursor: null })
  const changed = await read(Webhook, ask('PATCH', `/${made.id}`, { enabled: false, events: null }))
  expect(changed).toEqual({
    ...endpoint,
    enabled: false,
    events: expect.arrayContaining(['call.ringing', 'call.busy']),
  })
  const rotated = await read(WebhookRotated, ask('POST', `/${made.id}/rotate`))
  expect(rotated.secret).not.toBe(secret)
  expect(Date.parse(rotated.old_secret_valid_until)).toBe(Date.UTC(2026, 0, 2))
  const [stored] = await shared.stores.webhooks.endpointsOf('shop')
  expect([stored?.secret, stored?.oldSecret]).toEqual([rotated.secret, secret])
  expect((await ask('DELETE', `/${made.id}`)).status).toBe(204)
  expect(await refused(ask('DELETE', `/${made.id}`))).toEqual([404, 'NOT_FOUND'])
  expect((await read(WebhookPage, ask('GET', ''))).data).toEqual([])
})

test('[SRV1] nobody sees or changes what belongs to another product', async () => {
  const { id } = await read(WebhookWithSecret, ask('POST', '?product=clinic', { url }, credentials(keys.both)), 201)
  const of = `/${id}`
  for (const [method, below, body] of [
    ['GET', of],
    ['PATCH', of, { enabled: false }],
    ['DELETE', of],
    ['POST', `${of}/rotate`],
    ['POST', `${of}/test`],
    ['GET', `${of}/deliveries`],
    ['POST', `${of}/deliveries/msg_1/retry`],
  ] as const)
    expect([method, below, ...(await refused(ask(method, below, body)))]).toEqual([method, below, 404, 'NOT_FOUND'])
  expect(await refused(ask('GET', '', undefined, credentials(keys.both)))).toEqual([400, 'PRODUCT_REQUIRED'])
  expect(await refused(ask('GET', '?product=clinic'))).toEqual([403, 'PRODUCT_AUTH_PRODUCT_MISMATCH'])
  expect(await refused(rest.get(path, {}))).toEqual([401, 'PRODUCT_AUTH_KEY_ID_REQUIRED'])
  expect((await read(WebhookPage, ask('GET', ''))).data).toEqual([])
})

test('[HOOK1, HOOK4] what an endpoint may not be says which field', async () => {
  for (const [body, field] of [
    [{}, 'url'],
    [{ url: 'http://example.com/' }, 'url'],
    [{ url: 'https://169.254.169.254/' }, 'url'],
    [{ url, events: ['call.unknown'] }, 'events'],
    [{ url, enabled: 1 }, 'enabled'],
  ] as const) {
    const { status, code, message } = await failureOf(await ask('POST', '', body))
    expect([status, code, message.split(' ', 1)[0]]).toEqual([400, 'INVALID_REQUEST_BODY', field])
  }
  const { id } = await read(WebhookWithSecret, ask('POST', '', { url }), 201)
  expect(await refused(ask('PATCH', `/${id}`, { url: 'https://10.0.0.1/' }))).toEqual([400, 'INVALID_REQUEST_BODY'])
  expect(await refused(ask('PATCH', `/${id}`, { url: null }))).toEqual([400, 'INVALID_REQUEST_BODY'])
  await ask('DELETE', `/${id}`)
})

test('[HOOK1] deliveries are listed, paged, and sent once more', async () => {
  const { webhooks, calls } = shared.stores
  const { id } = await read(WebhookWithSecret, ask('POST', '', { url, events: ['call.ringing'] }), 201)
  await webhooks.refresh()
  for (let n = 0; n < 3; n++) {
    const call = ringing({ product: 'shop', role: 'customer', userId: `ann-${n}` })
    await calls.transition(call, () => ({ steps: [created(call)] }))
  }
  const queued = await read(WebhookQueued, ask('POST', `/${id}/test`), 202)
  const { claimed } = await webhooks.claim(new Map([[id, 10]]))
  expect(claimed.map(({ type }) => type).toSorted()).toEqual([
    'call.ringing',
    'call.ringing',
    'call.ringing',
    'webhook.test',
  ])
  await webhooks.settle(
    claimed.map(({ id }, n) =>
      attempted(id, n > 0 ? {} : { outcome: 'failed', responseStatus: null, response: 'ECONNREFUSED' }),
    ),
  )
  const page = (query: string) => read(DeliveryPage, ask('GET', `/${id}/deliveries${query}`))
  const failed = await page('?status=failed')
  expect(failed.data).toMatchObject([
    { status: 'failed', attempts: 1, response_status: null, response: 'ECONNREFUSED' },
  ])
  const first = await page('?limit=3')
  const second = await page(`?limit=3&cursor=${first.next_cursor}`)
  const ids = [...first.data, ...second.data].map(({ id }: { id: string }) => id)
  expect([new Set(ids).size, second.next_cursor, ids.includes(queued.delivery_id)]).toEqual([4, null, true])
  for (const query of ['?limit=x', '?limit=0', '?cursor=nonsense']) expect((await page(query)).data.length).toBe(4)
  expect(await refused(ask('GET', `/${id}/deliveries?status=lost`))).toEqual([400, 'INVALID_QUERY'])
  const retry = `/${id}/deliveries/${failed.data[0].id}/retry`
  expect(await read(WebhookQueued, ask('POST', retry), 202)).toEqual({ delivery_id: failed.data[0].id })
  // It is on its way already.
  expect(await refused(ask('POST', retry))).toEqual([404, 'NOT_FOUND'])
  expect((await page('?status=pending')).data).toMatchObject([{ id: failed.data[0].id, ended_at: null }])
})
