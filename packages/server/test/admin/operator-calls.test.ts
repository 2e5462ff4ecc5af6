import { afterAll, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, connectPair, invite } from '@ringwire/testkit/flows'
import { program } from '@ringwire/testkit/program'
import { productKey, type Service } from '@ringwire/testkit/service'
import { finish } from '../scenarios/calls/composition.ts'
import { threeOf } from '../support/transfer-flows.ts'
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

test('[ADM3] changes are written down: by the page, by a backend, by a command; questions and refusals are not', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  await ask(`products/${product}/calls/${callUuid}`)
  await ask(`products/${product}/calls/${crypto.randomUUID()}/end`, 'POST', {})
  await ask(`products/${product}/calls/${callUuid}/end`, 'POST', { reason: 'because Ann said so' })
  const three = await threeOf(service)
  const transfer = { by: 'callee', to: { role: 'agent', user_id: three.ids.eva } }
  await ask(`products/${product}/calls/${three.first}/transfer`, 'POST', transfer)
  await ask(`products/${product}/calls/${three.first}/transfer`, 'POST', transfer)
  const group = { members: [pair.calleeId], strategy: 'all' }
  await ask(`products/${product}/groups/agent/support`, 'PUT', group)
  const credentials = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
  const ofBackend = (path: string, method: string, body?: object) =>
    fetch(`${service.url}/v1/server/${path}`, {
      method,
      headers: credentials,
      ...(body && { body: JSON.stringify(body) }),
    })
  await ofBackend(`participants/agent/${pair.calleeId}/disconnect`, 'POST')
  await ofBackend('product', 'PATCH', { busy: 'reject' })
  await ofBackend('product', 'PATCH', { busy: 'nonsense' })
  const box = { ...process.env, RINGWIRE_DATA_DIR: service.dataDir, USER: 'root', SUDO_USER: 'pat' }
  const command = async (...args: string[]) => {
    const child = Bun.spawn([...program, ...args], { env: box, stdout: 'pipe', stderr: 'pipe' })
    return { out: await new Response(child.stdout).text(), err: await new Response(child.stderr).text() }
  }
  const { key_id: keyId, secret } = JSON.parse((await command('keys', 'create', '--product', product, '--json')).out)
  await command('keys', 'disable', keyId)
  await command('participant', 'disconnect', 'customer', pair.callerId, '--product', product)

  const { data, next_cursor } = await ask('audit?limit=8')
  expect(data).toMatchObject([
    {
      by: { kind: 'cli', name: 'pat' },
      action: 'participant.disconnect',
      participant: { role: 'customer', user_id: pair.callerId },
    },
    { by: { kind: 'cli', name: 'pat' }, action: 'key.disable', product: null, subject: keyId },
    { by: { kind: 'cli', name: 'pat' }, action: 'key.create', subject: keyId, detail: { products: [product] } },
    { by: { kind: 'key', name: productKey.id }, action: 'product.change', product, detail: { busy: 'reject' } },
    { by: { kind: 'key', name: productKey.id }, action: 'participant.disconnect', subject: null },
    { by: { kind: 'operator', name: 'Olga' }, action: 'group.put', subject: 'agent/support', detail: { members: 1 } },
    {
      by: { kind: 'operator', name: 'Olga' },
      action: 'call.transfer',
      participant: null,
      subject: three.first,
      detail: { by: 'callee' },
    },
    { by: { kind: 'operator', name: 'Olga' }, action: 'call.end', subject: callUuid, detail: {} },
  ])
  const older = await ask(`audit?cursor=${next_cursor}`)
  expect(older.data.map(({ action }: { action: string }) => action)).toEqual(['call.end'])
  expect((await ask('audit?product=another')).data).toEqual([])
  expect((await ask('audit', 'POST', {})).status).toBe(405)
  const shown = await command('audit', '--exact')
  expect(shown.out).toMatch(/key pat|cli pat +key\.disable/)
  expect(shown.out).not.toContain(secret)
  expect(JSON.parse((await command('audit', '--json', '--limit', '1')).out).data).toEqual(data.slice(0, 1))

  const erased = await ask(`products/${product}/participants/customer/${pair.callerId}`, 'DELETE')
  expect(erased.status).toBe(200)
  const after = await ask('audit')
  expect(after.data[0]).toMatchObject({ action: 'participant.erase', participant: { role: 'customer', user_id: '' } })
  expect(JSON.stringify(after)).not.toContain(pair.callerId)
  expect((await command('audit')).out).toContain('customer/(erased)')
}, 60_000)

test('[ADM2] overview and nodes say in a terminal what Now says', async () => {
  const { port } = new URL(url)
  const command = async (env: Record<string, string>, ...args: string[]) => {
    const own = { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: service.dataDir, ...env }
    const child = Bun.spawn([...program, ...args], { env: own, stdout: 'pipe', stderr: 'pipe' })
    const [out, err] = [await new Response(child.stdout).text(), await new Response(child.stderr).text()]
    return { out, err, code: await child.exited }
  }
  const env = { RINGWIRE_ADMIN_PORT: port, RINGWIRE_ADMIN_TOKEN: token }
  const overview = await command(env, 'overview')
  expect(overview.out).toMatch(/Database +ok\n/)
  expect(overview.out).toMatch(/Calls ringing +\d+\n/)
  expect(JSON.parse((await command(env, 'overview', '--json')).out)).toMatchObject({ health: { ok: true } })
  expect((await command(env, 'nodes')).out).toMatch(/^NODE +SOCKETS\n\S+ +\d+ +asked\n$/)
  expect(await command({ ...env, RINGWIRE_ADMIN_TOKEN: 'another-token-of-some-length' }, 'nodes')).toMatchObject({
    ...{ code: 1, err: expect.stringContaining('AUTH_TOKEN_INVALID') },
  })
  expect((await command({ RINGWIRE_ADMIN_PORT: port }, 'nodes')).code).toBe(2)
  expect((await command({ RINGWIRE_ADMIN_TOKEN: token }, 'nodes')).code).toBe(2)
  expect((await command(env, 'nodes', '--url', 'http://127.0.0.1:1')).err).toContain(
    'No listener for operators answers',
  )
})

test('[ADM2] keys are made, given new secrets and disabled; each is written down, and no secret is', async () => {
  const made = await ask('keys', 'POST', { products: ['clinic', 'clinic', 'shop'] })
  expect(made).toMatchObject({ status: 200, products: ['clinic', 'shop'] })
  const works = async (secret: string) => {
    const credentials = { 'X-SVC-Product-Key-ID': made.key_id, 'X-SVC-Product-Secret': secret }
    return (await fetch(`${service.url}/v1/server/product?product=clinic`, { headers: credentials })).status
  }
  expect(await works(made.secret)).toBe(200)
  const rotated = await ask(`keys/${made.key_id}/rotate`, 'POST', { grace_s: 0 })
  expect([await works(made.secret), await works(rotated.secret)]).toEqual([401, 200])
  expect(await ask(`keys/${made.key_id}/disable`, 'POST', {})).toMatchObject({ status: 200, state: 'disabled' })
  expect(await works(rotated.secret)).toBe(401)
  await ask(`keys/${made.key_id}/enable`, 'POST', {})
  expect(await works(rotated.secret)).toBe(200)
  const shown = await ask('keys')
  expect(shown.data.find(({ key_id }: { key_id: string }) => key_id === made.key_id)).toMatchObject({
    ...{ products: ['clinic', 'shop'], state: 'enabled', origin: 'page' },
  })
  const { data } = await ask('audit?limit=4')
  expect(data.map(({ action, subject }: { action: string; subject: string }) => [action, subject])).toEqual(
    ['key.enable', 'key.disable', 'key.rotate', 'key.create'].map((action) => [action, made.key_id]),
  )
  for (const text of [JSON.stringify(shown), JSON.stringify(data), service.log])
    for (const secret of [made.secret, rotated.secret]) expect(text).not.toContain(secret)

  for (const products of [undefined, [], [''], ['a\n'], 'clinic', [1], ['x'.repeat(256)]])
    expect([products, (await ask('keys', 'POST', { products })).status]).toEqual([products, 400])
  for (const grace_s of [-1, 1.5, 'x', 1e9])
    expect((await ask(`keys/${made.key_id}/rotate`, 'POST', { grace_s })).status).toBe(400)
  expect((await ask(`keys/${productKey.id}/rotate`, 'POST', {})).status).toBe(400)
  for (const path of ['keys/nobody/disable', `keys/${made.key_id}/constructor`, `keys/${made.key_id}/disable/x`])
    expect([path, (await ask(path, 'POST', {})).status]).toEqual([path, 404])
  expect((await ask(`keys/${made.key_id}/disable`)).status).toBe(405)
  expect((await ask('keys', 'DELETE')).status).toBe(405)
})

test('[ADM2] the settings that are in force, without a secret', async () => {
  const { data } = await ask('settings')
  const of = (name: string) => data.find((setting: { name: string }) => setting.name === name)
  expect(of('RINGWIRE_ADMIN_TOKEN')).toEqual({ name: 'RINGWIRE_ADMIN_TOKEN', value: '(set, not shown)', source: 'set' })
  expect(of('RINGWIRE_RETENTION_DAYS')).toEqual({ name: 'RINGWIRE_RETENTION_DAYS', value: '90', source: 'default' })
  for (const secret of [token, productKey.secret]) expect(JSON.stringify(data)).not.toContain(secret)
  expect((await ask('settings', 'POST', {})).status).toBe(405)
})
