import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectRoot } from '@ringwire/testkit/documents'
import { acceptedCall, connectPair } from '@ringwire/testkit/flows'
import { productKey, Service } from '@ringwire/testkit/service'
import { threeOf } from '../support/transfer-flows.ts'

/**
 * What a backend gets that makes its client from openapi.json with a public generator, oazapfts: its types hold, and what the
 * service answers is what they say.
 */

const modules = join(projectRoot, 'node_modules')
// Inside node_modules, where the generated file finds its runtime and nobody commits it.
const dir = mkdtempSync(join(modules, '.generated-client-'))
const service = new Service()

async function run(...words: string[]): Promise<{ code: number; said: string }> {
  const child = Bun.spawn(words, { cwd: dir, stdout: 'pipe', stderr: 'pipe' })
  const said = (await new Response(child.stdout).text()) + (await new Response(child.stderr).text())
  return { code: await child.exited, said }
}

// biome-ignore lint/suspicious/noExplicitAny: it is generated while the test runs; the compiler reads it in the test of its types.
let api: any
beforeAll(async () => {
  const spec = join(projectRoot, 'docs/generated/openapi.json')
  const { code, said } = await run('node', join(modules, '.bin/oazapfts'), spec, join(dir, 'ringwire.ts'))
  if (code !== 0) throw new Error(said)
  await service.start()
  api = await import(join(dir, 'ringwire.ts'))
  api.defaults.baseUrl = service.url
  api.defaults.headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
}, 120_000)
afterAll(async () => {
  await service.dispose()
  rmSync(dir, { recursive: true })
})

test('the client compiles, takes what the service takes, and refuses what it refuses', async () => {
  writeFileSync(
    join(dir, 'program.ts'),
    `import * as ringwire from './ringwire.ts'
export async function main(): Promise<string> {
  const asked = { user_id: 'ann', role: 'customer', display_name: 'Ann', context_type: 'order', context_id: '1' }
  const token = await ringwire.issueSessionToken({ ...asked, allowed_peer_role: 'agent' })
  if (token.status !== 200) return token.status === 401 ? (token.data.error?.code ?? '') : ''
  const page = await ringwire.listProductCalls({ status: 'live', limit: 10 })
  if (page.status === 200) for (const { call_uuid } of page.data.data) await ringwire.endCall(call_uuid, { reason: 'over' })
  const begun = await ringwire.transferCall('c', { by: 'callee', to: { role: 'agent', group: 'support' } })
  if (begun.status === 200) return begun.data.new_call_uuid
  if (begun.status === 409) return begun.data.error?.code ?? ''
  // @ts-expect-error: a call has no such side.
  await ringwire.transferCall('c', { by: 'agent', to: { role: 'agent', user_id: 'eva' } })
  const group = { members: ['ben'], strategy: 'in_turn' as const }
  await ringwire.putGroup('agent', 'support', group)
  // @ts-expect-error: there is no such strategy.
  await ringwire.putGroup('agent', 'support', { ...group, strategy: 'loudest' })
  // @ts-expect-error: a list has no such status.
  await ringwire.listProductCalls({ status: 'sleeping' })
  // @ts-expect-error: a token is for somebody.
  await ringwire.issueSessionToken({ role: 'customer' })
  // @ts-expect-error: a token is text.
  token.data.token satisfies number
  return token.data.token
}
`,
  )
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--allowImportingTsExtensions',
    '--module',
    'nodenext',
    '--target',
    'es2023',
  ]
  const tsc = join(modules, '.bin/tsc')
  const { code, said } = await run('node', tsc, ...options, '--lib', 'es2023,dom', join(dir, 'program.ts'))
  expect([code, said]).toEqual([0, ''])
}, 120_000)

test('a backend with it issues a token, lists, shows and ends a call', async () => {
  const asked = { user_id: 'ann', role: 'customer', display_name: 'Ann', context_type: 'order', context_id: '1' }
  const token = await api.issueSessionToken({ ...asked, allowed_peer_role: 'agent' })
  expect(token).toMatchObject({ status: 200, data: { user: { user_id: 'ann' }, token: expect.any(String) } })

  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const live = await api.listProductCalls({ status: 'live' })
  expect(live.data.data.map(({ call_uuid }: { call_uuid: string }) => call_uuid)).toEqual([callUuid])
  const mine = await api.listProductCalls({ userId: pair.callerId, role: 'customer', limit: 1 })
  expect(mine).toMatchObject({ status: 200, data: { data: [{ call_uuid: callUuid }], next_cursor: null } })
  const ended = await api.endCall(callUuid, { reason: 'the order was cancelled' })
  expect(ended).toMatchObject({ status: 200, data: { call: { status: 'ended', end_reason: 'ended_by_server' } } })
  expect((await pair.callee.next('call.ended')).data).toMatchObject({ call_uuid: callUuid })
  expect(await api.showCall(callUuid)).toMatchObject({ status: 200, data: { call: { status: 'ended' } } })
  expect((await api.showTimeline(callUuid)).data).toMatchObject({ success: true })
}, 60_000)

test('a backend with it transfers a call', async () => {
  const { eva, ids, first } = await threeOf(service)
  const begun = await api.transferCall(first, { by: 'callee', to: { role: 'agent', user_id: ids.eva } })
  expect(begun).toMatchObject({ status: 200, data: { call_uuid: first } })
  expect((await eva.next('call.ringing')).data.call_uuid).toBe(begun.data.new_call_uuid)
  const again = await api.transferCall(first, { by: 'caller', to: { role: 'agent', group: 'nobody' } })
  expect(again).toMatchObject({ status: 409, data: { error: { code: 'CALL_INVALID_STATE' } } })
})

test('what is refused comes with its status and its code', async () => {
  expect(await api.showCall('0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55')).toMatchObject({
    status: 404,
    data: { success: false, error: { code: 'NOT_FOUND' } },
  })
  const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': 'wrong' }
  expect(await api.listGroups({}, { headers })).toMatchObject({
    status: 401,
    data: { error: { code: 'PRODUCT_AUTH_INVALID_SECRET' } },
  })
})

test('names with signs that a URL cannot hold reach the service as they are', async () => {
  const [role, name] = ['agents/of ü', 'a?b#c%d']
  const settings = { members: ['ben', 'x/y'], strategy: 'all' }
  expect(await api.putGroup(role, name, settings)).toMatchObject({ status: 200, data: { role, group: name } })
  expect(await api.showGroup(role, name)).toMatchObject({ status: 200, data: settings })
  expect((await api.deleteGroup(role, name)).status).toBe(204)
  expect((await api.showGroup(role, name)).status).toBe(404)
})
