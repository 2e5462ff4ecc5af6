import { afterAll, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, connectPair, invite } from '@ringwire/testkit/flows'
import { productKey, type Service } from '@ringwire/testkit/service'
import { finish } from '../scenarios/calls/composition.ts'
import { adminUrlOf, startObserved } from './observed.ts'

const token = 'a-token-that-only-tests-know'
const headers = { Authorization: `Bearer ${token}`, 'X-Ringwire-Admin': '1', 'X-Ringwire-Operator': 'Olga' }

let service: Service
let url = ''
beforeAll(async () => {
  service = await startObserved({ RINGWIRE_ADMIN_TOKEN: token })
  url = await adminUrlOf(service)
})
afterAll(() => service && finish(service))

async function ask(path: string, method = 'GET', body?: object) {
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const response = await fetch(`${url}/admin/api/${path}`, init)
  return { status: response.status, ...(await response.json()) }
}

const product = 'shop'

test('[ADM2] the products, and what their backends see of a call', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  expect((await ask('products')).data).toEqual([{ product }])
  const credentials = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
  const own = await (await fetch(`${service.url}/v1/server/calls/${callUuid}`, { headers: credentials })).json()
  expect(await ask(`products/${product}/calls/${callUuid}`)).toEqual({ status: 200, ...own })
  const { summary, entries } = await ask(`products/${product}/calls/${callUuid}/timeline`)
  expect(summary).toStartWith('The call goes on')
  expect(entries.map(({ what }: { what: string }) => what)).toContain('accepted')
  const { data } = await ask(`products/${product}/calls?status=live`)
  expect(data).toMatchObject([{ call_uuid: callUuid, status: 'accepted' }])
  expect((await ask(`products/another/calls/${callUuid}`)).status).toBe(404)

  const ended = await ask(`products/${product}/calls/${callUuid}/end`, 'POST', { reason: 'operator' })
  expect(ended).toMatchObject({ status: 200, call: { status: 'ended', end_reason: 'ended_by_server' } })
  await Promise.all([pair.caller.next('call.ended'), pair.callee.next('call.ended')])
  await Promise.all([pair.caller.close(), pair.callee.close()])
})

test('[ADM2] calls are found by a person, an id, and a context; only of the product', async () => {
  const pair = await connectPair(service)
  const callUuid = await invite(pair.caller, pair.calleeId, { context_type: 'order', context_id: 'Order-4711/ü' })
  await pair.callee.next('call.ringing')
  const search = (q: string, more = '') => ask(`products/${product}/search?q=${encodeURIComponent(q)}${more}`)
  for (const q of [
    callUuid,
    callUuid.toUpperCase(),
    callUuid.slice(0, 8),
    pair.calleeId,
    `customer/${pair.callerId}`,
    'order-4711/Ü',
    'R/ORDER-47',
  ])
    expect([q, (await search(q)).data]).toMatchObject([q, [{ call_uuid: callUuid }]])
  expect(await search('nobody-has-this')).toMatchObject({ status: 200, data: [], next_cursor: null, searched: 2 })
  expect((await search(pair.calleeId, '&status=ended')).data).toEqual([])
  expect(await search('x', '&status=nonsense')).toMatchObject({ status: 400, error: { code: 'INVALID_QUERY' } })
  expect((await ask(`products/another/search?q=${callUuid}`)).data).toEqual([])
  await Promise.all([pair.caller.close(), pair.callee.close()])
})

test('[ADM2] a search goes on where it stopped', async () => {
  const pair = await connectPair(service)
  // The callee ends each, so that no limit of ringing calls is reached.
  for (let i = 0; i < 3; i++) {
    const callUuid = await invite(pair.caller, pair.calleeId, { context_id: `many-${i}` })
    pair.callee.send('call.reject', { call_uuid: callUuid })
    await pair.caller.next('call.rejected')
  }
  const first = await ask(`products/${product}/search?q=many-`)
  expect(first.data.map(({ context_id }: { context_id: string }) => context_id)).toEqual(['many-2', 'many-1', 'many-0'])
  const after = Buffer.from(`${Date.parse(first.data[0].started_at)}.${first.data[0].call_uuid}`).toString('base64url')
  const rest = await ask(`products/${product}/search?q=many-&cursor=${after}`)
  expect(rest.data).toHaveLength(2)
  await Promise.all([pair.caller.close(), pair.callee.close()])
})

test('[ADM2] what is not there, and methods and bodies that are not taken', async () => {
  const nothing = [
    'products/shop/nothing',
    'products/%ff/calls',
    'products/shop/calls/x/y/z',
    'constructor',
    'products/shop/search/x',
  ]
  for (const path of nothing) expect([path, (await ask(path)).status]).toEqual([path, 404])
  expect((await ask(`products/${product}/calls`, 'POST', {})).status).toBe(405)
  expect((await ask(`products/${product}/search`, 'POST', {})).status).toBe(405)
  expect((await ask('products', 'DELETE')).status).toBe(405)
  const large = await fetch(`${url}/admin/api/products/${product}/calls/x/end`, {
    ...{ method: 'POST', headers },
    body: JSON.stringify({ reason: 'x'.repeat(20_000) }),
  })
  expect(large.status).toBe(413)
})
