import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { CallPage, CallShown } from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import fc from 'fast-check'
import type { Call } from '../../src/call/call.ts'
import { createSeenCalls } from '../../src/history/seen-calls.ts'
import { accepted, created, ended, ringing } from '../../src/ports/call-store.fixture.ts'
import { credentials, failureOf, keys, openStores, type RestService, startRest } from './rest-service.ts'

let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
const ann = { product: 'shop', role: 'customer', userId: 'ann' }
const bob = { product: 'shop', role: 'agent', userId: 'bob' }
const calls: Call[] = []
let ofClinic: Call

beforeAll(async () => {
  shared = await openStores()
  rest = startRest({ stores: shared.stores })
  const { calls: store } = shared.stores
  for (let n = 0; n < 5; n++) {
    const call = ringing(ann, bob, { startedAt: 1_000_000 + n * 1000, metadata: { n } })
    await store.transition(call, () => ({ steps: [created(call)] }))
    calls.push(call)
  }
  const answered = accepted(calls[0] as ReturnType<typeof ringing>)
  await store.transition(answered.call, () => ({ steps: [answered] }))
  const over = ended(answered.call as Parameters<typeof ended>[0])
  await store.transition(over.call, () => ({ steps: [over] }))
  const clinic = ringing({ ...ann, product: 'clinic' }, { ...bob, product: 'clinic' })
  await store.transition(clinic, () => ({ steps: [created(clinic)] }))
  ofClinic = clinic
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

const ask = (path: string, headers: Record<string, string> = credentials()) => rest.get(path, { headers })
const path = '/v1/server/calls'
async function page(query: string, headers?: Record<string, string>): Promise<CallPage> {
  const response = await ask(`${path}${query}`, headers)
  expect([query, response.status]).toEqual([query, 200])
  const body = await response.json()
  expect(createValidator(CallPage)(body).ok).toBe(true)
  return body as CallPage
}
const refused = async (query: string, headers?: Record<string, string>) => {
  const { status, code } = await failureOf(await ask(`${path}${query}`, headers))
  return [status, code]
}

describe('[SRV1] who asks', () => {
  test('product credentials as in the token endpoint, with its codes and in its order', async () => {
    expect(await refused('', {})).toEqual([401, 'PRODUCT_AUTH_KEY_ID_REQUIRED'])
    expect(await refused('', { 'X-SVC-Product-Key-ID': keys.shop.id })).toEqual([401, 'PRODUCT_AUTH_SECRET_REQUIRED'])
    expect(await refused('', credentials({ ...keys.shop, id: 'who' }))).toEqual([401, 'PRODUCT_AUTH_INVALID_KEY'])
    expect(await refused('', credentials({ ...keys.shop, secret: 'x' }))).toEqual([401, 'PRODUCT_AUTH_INVALID_SECRET'])
    expect(await refused('', credentials(keys.off))).toEqual([401, 'PRODUCT_AUTH_INVALID_KEY'])
    expect(await refused('?status=what', credentials(keys.both))).toEqual([400, 'PRODUCT_REQUIRED'])
    expect(await refused('', { Authorization: `Bearer ${rest.token()}` })).toEqual([
      401,
      'PRODUCT_AUTH_KEY_ID_REQUIRED',
    ])
  })

  test('a key asks about its own products alone; of several it names one', async () => {
    expect(await refused('?product=clinic')).toEqual([403, 'PRODUCT_AUTH_PRODUCT_MISMATCH'])
    expect(await refused('?product=nothing')).toEqual([403, 'PRODUCT_AUTH_PRODUCT_MISMATCH'])
    expect((await page('?product=clinic', credentials(keys.both))).data.map((call) => call.call_uuid)).toEqual([
      ofClinic.callUuid,
    ])
    expect((await page('?product=%20')).data).toHaveLength(5)
  })

  test('no web page may read it, nothing keeps it, and other methods are refused', async () => {
    const response = await ask(path, { ...credentials(), Origin: 'https://shop.example' })
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    expect(response.headers.get('cache-control')).toBe('no-store')
    const preflight = await rest.get(path, { method: 'OPTIONS', headers: { Origin: 'https://shop.example' } })
    expect(preflight.headers.get('access-control-allow-origin')).toBeNull()
    const post = await rest.get(path, { method: 'POST', headers: credentials() })
    expect([(await failureOf(post)).code, post.headers.get('allow')]).toEqual([
      'METHOD_NOT_ALLOWED',
      'GET, HEAD, OPTIONS',
    ])
  })

  test('limits of its own: token requests go on', async () => {
    const service = startRest({
      stores: shared.stores,
      env: { RINGWIRE_TOKEN_RATE_IP: '3/60', RINGWIRE_TOKEN_RATE_KEY: '2/60' },
    })
    try {
      const get = () => service.get(path, { headers: credentials() })
      const codes: (string | number)[] = []
      for (let n = 0; n < 4; n++) codes.push(await get().then(async (it) => (it.ok ? 200 : (await failureOf(it)).code)))
      expect(codes).toEqual([200, 200, 'BOOTSTRAP_KEY_RATE_LIMITED', 'BOOTSTRAP_IP_RATE_LIMITED'])
      expect((await service.ask({})).status).toBe(400)
    } finally {
      await service.stop()
    }
  })
})

describe('[SRV2] calls', () => {
  test('a list, its filters, and pages that follow each other', async () => {
    const newest = calls.map(({ callUuid }) => callUuid).reverse()
    const uuids = async (query: string) => (await page(query)).data.map((call) => call.call_uuid)
    expect(await uuids('')).toEqual(newest)
    expect(await uuids('?status=live')).toEqual(newest.slice(0, 4))
    expect(await uuids('?status=ended')).toEqual(newest.slice(4))
    expect(await uuids('?user_id=ann&role=customer&status=ended')).toEqual(newest.slice(4))
    expect(await uuids('?user_id=ann&role=agent')).toEqual([])
    expect(await uuids('?since=1970-01-01T00:16:43.000Z')).toEqual(newest.slice(0, 2))
    // In a query a plus sign that was not encoded is a space [TIME1].
    for (const plus of ['%2B', '+', '%20']) {
      expect(await uuids(`?since=1970-01-01T01:16:43${plus}01:00&limit=1`)).toEqual(newest.slice(0, 1))
    }
    const first = await page('?limit=2')
    const second = await page(`?limit=2&cursor=${first.next_cursor}`)
    const third = await page(`?limit=2&cursor=${second.next_cursor}`)
    expect([...first.data, ...second.data, ...third.data].map((call) => call.call_uuid)).toEqual(newest)
    expect(third.next_cursor).toBeNull()
  })

  test('one call, whole, in either case of its uuid', async () => {
    const { callUuid } = calls[0] as Call
    for (const name of [callUuid, callUuid.toUpperCase()]) {
      const body = (await (await ask(`${path}/${name}`)).json()) as CallShown
      expect(createValidator(CallShown)(body).ok).toBe(true)
      expect(body.call).toMatchObject({
        call_uuid: callUuid,
        status: 'ended',
        metadata: { n: 0 },
        by: null,
        version: 3,
      })
    }
  })

  test('a call of another product, one that never was, and what is no uuid are not there', async () => {
    const names = [ofClinic.callUuid, crypto.randomUUID(), 'x', "'%20OR%201=1--", '%00', '..%2f..', 'a'.repeat(5000)]
    for (const name of names) expect([name, ...(await refused(`/${name}`))]).toEqual([name, 404, 'NOT_FOUND'])
    expect(await refused(`/${ofClinic.callUuid}?product=shop`, credentials(keys.both))).toEqual([404, 'NOT_FOUND'])
    expect((await ask(`${path}/${ofClinic.callUuid}?product=clinic`, credentials(keys.both))).status).toBe(200)
  })

  test('a filter that cannot be read is refused by name', async () => {
    for (const [query, field] of [
      ['status=lively', 'status'],
      ['status=live,ended', 'status'],
      ['user_id=ann', 'role'],
      ['role=agent', 'user_id'],
      [`user_id=${'x'.repeat(256)}&role=a`, 'user_id'],
      ['user_id=a%00b&role=a', 'user_id'],
      ['since=yesterday', 'since'],
      ['since=2026-01-01', 'since'],
      ['since=2026-13-01T00:00:00Z', 'since'],
      ['since=2026-02-30T00:00:00Z', 'since'],
      ['since=2026-03-01T09:00:00%2B01:61', 'since'],
      ['since=1e9', 'since'],
    ]) {
      const failed = await failureOf(await ask(`${path}?${query}`))
      expect([query, failed.status, failed.code, failed.message.split(' ')[0]]).toEqual([
        query,
        400,
        'INVALID_QUERY',
        field,
      ])
    }
  })

  test('names that are SQL find who is called so, and nobody else', async () => {
    for (const name of ["ann' OR '1'='1", 'ann";--', 'ann%', '_nn', 'ann\\', "ann' UNION SELECT * FROM calls--"]) {
      expect((await page(`?user_id=${encodeURIComponent(name)}&role=customer`)).data).toEqual([])
    }
  })

  test('a cursor is a position and no right: one of another product, or made up, shows the own calls alone', async () => {
    const seen = createSeenCalls(shared.stores)
    const foreign = await seen.page('shop', { limit: '1' })
    const cursor = foreign.ok ? foreign.next_cursor : null
    const own = await page(`?product=clinic&cursor=${cursor}`, credentials(keys.both))
    for (const { call_uuid } of own.data) expect(call_uuid).toBe(ofClinic.callUuid)
    expect((await page('?cursor=%00%ff')).data).toHaveLength(5)
  })

  test('whatever the query says, the answer is a page of the own calls or a refusal', async () => {
    const own = new Set(calls.map(({ callUuid }) => callUuid))
    const name = fc.constantFrom('status', 'user_id', 'role', 'since', 'limit', 'cursor', 'Status', 'x')
    const value = fc.oneof(
      fc.constantFrom('live', 'ended', 'ann', 'customer', '1', '-1', '1e3', '2026-01-01T00:00:00Z', ''),
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: 'binary' }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(name, value), { maxLength: 6 }), async (pairs) => {
        const query = pairs.map(([key, text]) => `${key}=${encodeURIComponent(text.toWellFormed())}`).join('&')
        const response = await ask(`${path}?${query}`)
        if (response.status === 400) return expect((await failureOf(response)).code).toBe('INVALID_QUERY')
        expect(response.status).toBe(200)
        for (const { call_uuid } of ((await response.json()) as CallPage).data) expect(own.has(call_uuid)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})
