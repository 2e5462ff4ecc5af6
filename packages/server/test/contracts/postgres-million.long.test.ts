import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import { createPostgresEphemerals } from '../../src/stores/postgres/ephemerals.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { executedOn, explaining, explainSql, uncalledOf, writtenIn } from '../support/executed-plans.ts'
import { few, fillPostgres } from '../support/million.ts'
import { Postgres } from '../support/postgres.ts'
import { openPostgresNodes } from '../support/postgres-nodes.ts'
import { useStores } from './store-walk.ts'

/*
 * The plan of each statement that the store sends to PostgreSQL, beside a million calls. The test calls every operation of
 * every port. The server logs each plan with the rows that it read, also of statements inside functions.
 */

/** A page of 2,000 calls or a claim that looks at 5,000 rows, with the rows that are joined to it. */
const mostRead = 12_000
/** Tables that do not grow with use: they have one row, or one for each key, product, node, outage or database. */
const small = [
  ...['product_keys', 'product_key_secrets', 'product_settings', 'schema_migrations'],
  ...['webhook_removals', 'webhook_revision'],
  ...['nodes', 'outages', 'readiness', 'deployment', 'pg_database'],
]
/** Counts who is connected now, or the members of each group of a page. The answer needs every row. */
const readsAllOf = /count\(\*\)::int AS count FROM online|SELECT count\(\*\)::int FROM call_group_members/
/** A node reads all endpoints when it starts, and after one was removed. */
const readsEndpoints = /FROM webhook_endpoints w WHERE w\.revision > \$1/
/** Functions that only nodes of earlier versions call, during an upgrade. */
const ofEarlierVersions = ['commit_calls', 'commit_changes']

let server: Postgres
let url: string
beforeAll(async () => {
  server = await Postgres.start({ ...explaining, max_wal_size: '2GB', fsync: 'off' })
  url = await server.database()
  await (await openPostgres({ url })).close()
  await fillPostgres(url)
}, 600_000)
afterAll(async () => {
  await server?.dispose()
})

async function serveAsNode(): Promise<void> {
  const nodes = await openPostgresNodes({
    ...{ url, nodeId: 'one', keptMs: 86_400_000, isReady: () => true, sockets: () => 0, onDeath() {}, onError() {} },
    isGone: () => true,
    saysItLives: () => false,
  })
  await nodes.start()
  await nodes.serve()
  for (const ms of [5_000, -5_000]) await nodes.jumps.add(ms, nodes.jumps.sum())
  await nodes.stop()
}

async function holdSign(): Promise<void> {
  const ephemerals = createPostgresEphemerals(url, 'one')
  const { promise: held, resolve } = Promise.withResolvers<void>()
  ephemerals.hold('one', { onHeld: resolve, onLost() {} })
  await held
  expect((await ephemerals.look(['one', 'two'])).held).toEqual(new Set(['one']))
  await ephemerals.close()
}

async function walk(some: Participant): Promise<void> {
  const stores = await openPostgres({ url, nodeId: 'one', limitMs: 60_000 })
  try {
    await useStores(stores, some)
    await serveAsNode()
    await holdSign()
  } finally {
    await stores.close()
  }
}

test('each statement finds its rows through an index, and reads few of them, beside a million calls', async () => {
  const begin = server.log.length
  // PostgreSQL plans a statement for its values at first, and may keep one plan for all values after five runs.
  for (const [mode, some] of [
    ['force_custom_plan', few],
    ['force_generic_plan', { ...few, userId: 'caller-7' }],
  ] as const) {
    const from = server.log.length
    await server.query(explainSql(new URL(url).pathname.slice(1), mode))
    await walk(some)
    const executed = await executedOn(server, from)
    expect(executed.length).toBeGreaterThan(100)
    const mayScan = (text: string) => (readsEndpoints.test(text) ? [...small, 'webhook_endpoints'] : small)
    const scans = executed.filter(({ text, scanned }) => scanned.some((table) => !mayScan(text).includes(table)))
    expect(scans.map(({ text, scanned }) => ({ mode, text, scanned }))).toEqual([])
    const dear = executed.filter(({ text, read }) => read > mostRead && !readsAllOf.test(text))
    expect(dear.map(({ text, read }) => ({ mode, text, read }))).toEqual([])
  }
  const executed = await executedOn(server, begin)
  // Commands may read a whole table. So may a start that finds no tables yet.
  const written = writtenIn(new URL('../../src/stores/postgres', import.meta.url).pathname, [
    ...['check.ts', 'content.ts', 'migrations.ts'],
  ])
  expect(written.length).toBeGreaterThan(60)
  const unseen = written.filter((one) => !executed.some(({ text }) => one.matches(text)))
  expect(unseen.map(({ file, text }) => `${file.split('/').at(-1)}: ${text.slice(0, 120)}`)).toEqual([])
  expect(await uncalledOf(server, url)).toEqual(ofEarlierVersions)
}, 600_000)
