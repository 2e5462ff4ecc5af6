import { afterAll, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, connectPair, invite } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { SQL } from 'bun'
import { adminUrlOf } from '../admin/observed.ts'
import { machinesFor } from './machine.ts'

const { startWorkers } = machinesFor()
const token = 'a-token-that-only-tests-know'
const headers = { Authorization: `Bearer ${token}`, 'X-Ringwire-Admin': '1', 'X-Ringwire-Operator': 'Olga' }

let service: Service
let url = ''
beforeAll(async () => {
  service = await startWorkers({ RINGWIRE_WORKERS: '2', RINGWIRE_ADMIN_PORT: '0', RINGWIRE_ADMIN_TOKEN: token })
  url = await adminUrlOf(service)
}, 120_000)
afterAll(async () => {
  expect(await service.terminate()).toBe(0)
  await service.dispose()
})

async function ask(path: string, method = 'GET', body?: object) {
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const response = await fetch(`${url}/admin/api/${path}`, init)
  return { status: response.status, ...(await response.json()) }
}

test('[ADM2] with several workers one of them answers, and Now tells of all', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  await until('both workers are known, and all sockets', async () => {
    const { nodes, connections, calls } = await ask('now')
    const live = calls.accepted.reduce((sum: number, count: number) => sum + count, 0)
    return nodes.length === 2 && connections === 2 && live === 1
  })
  const { nodes } = await ask('now')
  expect(nodes.map(({ node, is_here }: { node: string; is_here: boolean }) => [node, is_here])).toEqual([
    ['m-1', true],
    ['m-2', true],
  ])
  expect((await ask('products')).data).toEqual([{ product: 'shop' }])
  expect((await ask(`products/shop/search?q=${pair.calleeId}`)).data).toMatchObject([{ call_uuid: callUuid }])
  const ended = await ask(`products/shop/calls/${callUuid}/end`, 'POST', {})
  expect(ended).toMatchObject({ status: 200, call: { status: 'ended' } })
  await Promise.all([pair.caller.next('call.ended'), pair.callee.next('call.ended')])
  const exported = await ask(`products/shop/participants/agent/${pair.calleeId}/export`)
  expect(exported.calls).toHaveLength(1)
  expect((await ask('audit')).data).toMatchObject([{ action: 'call.end', by: { kind: 'operator', name: 'Olga' } }])
  expect((await ask('nothing')).status).toBe(404)
  expect((await ask('settings')).data.length).toBeGreaterThan(50)
  await Promise.all([pair.caller.close(), pair.callee.close()])
}, 60_000)

test('[ADM2] an export that fails in the middle is 503, and no worker ends', async () => {
  const pair = await connectPair(service)
  const path = `products/shop/participants/agent/${pair.calleeId}/export`
  const sql = new SQL({ url: service.env.DATABASE_URL ?? '', max: 1 })
  try {
    // It is the last thing that an export reads.
    await sql.unsafe('ALTER TABLE audit RENAME TO audit_away')
    expect(await ask(path)).toMatchObject({ status: 503, error: { code: 'SERVICE_UNAVAILABLE' } })
  } finally {
    await sql.unsafe('ALTER TABLE audit_away RENAME TO audit')
    await sql.close()
  }
  await invite(pair.caller, pair.calleeId)
  await pair.callee.next('call.ringing')
  expect(await ask(path)).toMatchObject({ status: 200, user_id: pair.calleeId })
  await Promise.all([pair.caller.close(), pair.callee.close()])
}, 60_000)

test('[ADM2] an answer without a body comes through, too', async () => {
  const path = 'products/shop/groups/agent/support'
  expect(await ask(path, 'PUT', { members: ['ben'], strategy: 'all' })).toMatchObject({ status: 200, members: ['ben'] })
  const removed = await fetch(`${url}/admin/api/${path}`, { method: 'DELETE', headers })
  expect([removed.status, await removed.text()]).toEqual([204, ''])
})
