import { beforeEach, expect, test } from 'bun:test'
import type { AuditView } from '../audit/page.ts'
import { openSqlite } from '../stores/sqlite/open.ts'
import { dataDir, json, run, useDataDirs } from './program.fixture.ts'

useDataDirs()
beforeEach(() => run('keys create --product shop'))
const url = 'https://backend.example.com/webhooks'
interface Endpoint {
  id: string
  url: string
  events: string[]
  description: string | null
  enabled: boolean
  created_at: string
  secret?: string
}
const create = async (options = '') => {
  const { secret: _, ...endpoint } = await json<Endpoint>(`webhooks create ${url} --product shop${options}`)
  return endpoint
}
const list = () => json<Endpoint[]>('webhooks list --product shop')
type Work<T> = (store: Awaited<ReturnType<typeof openSqlite>>) => T | Promise<T>
const withStore = async <T>(work: Work<T>, exclusive = false) => {
  const store = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}
const stored = (id: string) =>
  withStore(async ({ webhooks }) => (await webhooks.endpointsOf('shop')).find((endpoint) => endpoint.id === id))

test('[HOOK1] set changes what is given, and nothing else', async () => {
  const before = await create(' --events call.ended --description ours')
  const set = (options: string) => json<Endpoint>(`webhooks set ${before.id} --product shop ${options}`)
  const moved = { ...before, url: 'https://other.example.com/' }
  expect(await set('--url https://other.example.com')).toEqual(moved)
  const told = { ...moved, events: ['call.missed', 'participant.online'], description: 'theirs' }
  expect(await set('--events call.missed,participant.online --description theirs')).toEqual(told)
  expect(await list()).toEqual([told])
  const { out } = await run(`webhooks set ${before.id} --product shop --events all`)
  expect(out).toMatch(/^ID +URL +STATE +EVENTS +DESCRIPTION\nwe_\w+ +https:\/\/other\S+ +enabled +all +theirs\n$/)
  expect((await run(['webhooks', 'set', before.id, '--product', 'shop', '--description', ''])).code).toBe(0)
  const asMade = { ...(await create()), id: before.id, url: moved.url }
  expect((await list()).find(({ id }) => id === before.id)).toEqual(asMade)
})

test('[HOOK1, HOOK4] what an endpoint may not be changes nothing; one that is not there ends with 3', async () => {
  const endpoint = await create()
  for (const [args, exit, said] of [
    [`${endpoint.id} --product shop --url http://example.com/`, 1, 'RINGWIRE_WEBHOOK_ALLOW opens other addresses'],
    [`${endpoint.id} --product shop --url https://10.0.0.1/`, 1, 'RINGWIRE_WEBHOOK_ALLOW opens other addresses'],
    [`${endpoint.id} --product shop --events call.ended,call.unknown`, 1, 'events must be a list of some of'],
    [`${endpoint.id} --product shop --description ${'x'.repeat(256)}`, 1, 'description must be a text of at most 255'],
    [`${endpoint.id} --product clinic --events all`, 3, `The product clinic has no webhook endpoint ${endpoint.id}.`],
    ['we_none --product shop --events all', 3, 'The product shop has no webhook endpoint we_none.'],
  ] as const) {
    const { code, out, err } = await run(`webhooks set ${args}`)
    expect([args, code, out, err]).toEqual([args, exit, '', expect.stringContaining(said)])
  }
  expect(await list()).toEqual([endpoint])
})

test('[HOOK1] rotate prints a new secret, and the one before signs for 24 hours', async () => {
  const now = Date.UTC(2026, 0, 1)
  const created = await json<Endpoint>(`webhooks create ${url} --product shop`)
  const { secret, ...endpoint } = await json<Endpoint>(`webhooks rotate ${created.id} --product shop`)
  expect<Endpoint>({ ...endpoint, secret: created.secret ?? '' }).toEqual(created)
  expect(secret).toMatch(/^whsec_/)
  expect(secret).not.toBe(created.secret)
  expect(await stored(created.id)).toMatchObject({
    secret,
    oldSecret: created.secret,
    oldSecretUntil: now + 86_400_000,
  })
  const { out, err } = await run(`webhooks rotate ${created.id} --product shop`)
  const again = /^Secret +(whsec_\S+)$/m.exec(out)?.[1]
  expect(await stored(created.id)).toMatchObject({ secret: again, oldSecret: created.secret })
  expect(err).toBe('The secret is not shown again. Keep it in the server that receives the webhooks.\n')
})

test('[HOOK1] disable and enable say what the endpoint is then', async () => {
  const endpoint = await create()
  const disable = `webhooks disable ${endpoint.id} --product shop`
  expect(await run(disable)).toMatchObject({ code: 0, out: '', err: `${endpoint.id} is disabled.\n` })
  expect(await list()).toEqual([{ ...endpoint, enabled: false }])
  expect(await json<Endpoint>(disable)).toEqual({ ...endpoint, enabled: false })
  expect(await json<Endpoint>(`webhooks enable ${endpoint.id} --product shop`)).toEqual(endpoint)
})

test('[HOOK1] delete removes an endpoint with its deliveries, and no other', async () => {
  const [gone, stays] = [await create(), await create()]
  for (const { id } of [gone, stays]) await json(`webhooks test ${id} --product shop`)
  const remove = `webhooks delete ${gone.id} --product shop`
  expect(await run(remove)).toMatchObject({ code: 0, out: '', err: `${gone.id} is removed.\n` })
  expect(await list()).toEqual([stays])
  expect(await json<object[]>(`webhooks deliveries ${stays.id} --product shop`)).toHaveLength(1)
  expect(await run(remove)).toMatchObject({
    code: 3,
    err: expect.stringContaining(`The product shop has no webhook endpoint ${gone.id}. It has: ${stays.id} (`),
  })
  expect(await json<object>(`webhooks delete ${stays.id} --product shop`)).toEqual({ id: stays.id, deleted: true })
  const query = { endpointId: gone.id, status: undefined, limit: 9, before: undefined }
  expect(await withStore(({ webhooks }) => webhooks.deliveries(query))).toEqual([])
})

test('[HOOK1] rotate, disable, delete and deliveries of another product, or of none, end with 3', async () => {
  const created = await json<Endpoint>(`webhooks create ${url} --product shop`)
  for (const verb of ['rotate', 'disable', 'delete', 'deliveries']) {
    for (const [id, product] of [
      ['we_none', 'shop'],
      [created.id, 'clinic'],
    ]) {
      const there = product === 'shop' ? `It has: ${created.id} (` : 'There is no product clinic in '
      const err = expect.stringContaining(`The product ${product} has no webhook endpoint ${id}. ${there}`)
      expect(await run(`webhooks ${verb} ${id} --product ${product}`)).toMatchObject({ code: 3, out: '', err })
    }
  }
  expect(await stored(created.id)).toMatchObject({ secret: created.secret, oldSecret: null, enabled: true })
})

test('[HOOK3] deliveries: all, page after page, and those alone that failed', async () => {
  const { id } = await create()
  const list = `webhooks deliveries ${id} --product shop`
  expect(await run(list)).toMatchObject({ code: 0, out: '', err: 'There are no deliveries.\n' })
  const sent: string[] = []
  for (let n = 0; n < 3; n++) {
    sent.unshift((await json<{ delivery_id: string }>(`webhooks test ${id} --product shop`)).delivery_id)
  }
  // As a service that delivers them.
  await withStore(async ({ webhooks }) => {
    await webhooks.claim(new Map([[id, 3]]))
    const over = { afterMs: 0, at: Date.UTC(2026, 0, 1), response: 'answer' }
    await webhooks.settle([
      { id: sent[0] ?? '', outcome: 'delivered', responseStatus: 200, ...over },
      { id: sent[1] ?? '', outcome: 'failed', responseStatus: 410, ...over },
      { id: sent[2] ?? '', outcome: 'failed', responseStatus: 500, ...over },
    ])
  }, true)
  const of = async (options: string) =>
    (await json<{ id: string; status: string }[]>(list + options)).map((one) => [one.id, one.status])
  const [delivered, gone, failed] = [
    [sent[0], 'delivered'],
    [sent[1], 'failed'],
    [sent[2], 'failed'],
  ]
  expect(await of('')).toEqual([delivered, gone, failed] as string[][])
  expect(await of(' --failed')).toEqual([gone, failed] as string[][])
  const first = await run(`${list} --failed --limit 1`)
  expect(first.out).toMatch(new RegExp(`^ID +TYPE .+\\n${sent[1]} +webhook.test +failed +1 +\\S+ +410\\n$`))
  expect(first.err).toBe(`More with --cursor ${sent[1]}\n`)
  expect(await of(` --failed --limit 1 --cursor ${sent[1]}`)).toEqual([failed] as string[][])
  expect((await run(`${list} --limit 1 --cursor ${sent[1]}`)).err).toBe('')
  expect(await of(` --cursor ${sent[2]}`)).toEqual([])
})

test('[ADM3] a delivery that was queued by test or retry is in the audit log, and no other', async () => {
  const { id } = await create()
  const { delivery_id: delivery } = await json<{ delivery_id: string }>(`webhooks test ${id} --product shop`)
  const retry = `webhooks retry ${id} ${delivery} --product shop`
  expect((await run(retry)).code).toBe(3)
  // As a service that could not deliver it.
  await withStore(async ({ webhooks }) => {
    await webhooks.claim(new Map([[id, 1]]))
    const over = { afterMs: 0, at: Date.UTC(2026, 0, 1), response: 'answer' }
    await webhooks.settle([{ id: delivery, outcome: 'failed', responseStatus: 410, ...over }])
  }, true)
  expect((await run(retry)).code).toBe(0)
  expect((await run(retry)).code).toBe(3)
  const { data } = await json<{ data: AuditView[] }>('audit --product shop')
  const queued = data.filter(({ action }) => action !== 'webhook.create')
  // Entries of one instant have no order.
  const said = queued.map(({ action, by, subject, detail }) => [action, by.kind, subject, detail])
  expect(said.sort()).toEqual([
    ['webhook.retry', 'cli', id, { delivery }],
    ['webhook.test', 'cli', id, {}],
  ])
})

test('[HOOK1] retry of what is not there, or not over, ends with 3', async () => {
  const { id } = await create()
  const { delivery_id: pending } = await json<{ delivery_id: string }>(`webhooks test ${id} --product shop`)
  for (const [args, said] of [
    [`we_none ${pending} --product shop`, 'The product shop has no webhook endpoint we_none.'],
    [`${id} ${pending} --product clinic`, `The product clinic has no webhook endpoint ${id}.`],
    [`${id} msg_none --product shop`, `The endpoint ${id} has no delivery msg_none that is over.`],
    [`${id} ${pending} --product shop`, `The endpoint ${id} has no delivery ${pending} that is over.`],
  ] as const) {
    expect([args, await run(`webhooks retry ${args}`)]).toEqual([
      args,
      expect.objectContaining({ code: 3, out: '', err: expect.stringContaining(said) }),
    ])
  }
})
