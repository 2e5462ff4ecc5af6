import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { program } from '@ringwire/testkit/program'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { neededRights } from '../../src/stores/postgres/check.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'
import { signingKeyEnv } from '../support/session-tokens.ts'
import { type Box, createBox } from './command.ts'

let postgres: Databases
let redis: RedisDatabases
let box: Box
beforeAll(async () => {
  ;[postgres, redis] = await Promise.all([openDatabases(), openRedisDatabases()])
})
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())
afterAll(async () => {
  await Promise.all([postgres.dispose(), redis.stop()])
})

async function check(env: Record<string, string>): Promise<{ code: number; problems: string[]; warnings: string[] }> {
  const { code, out } = await box.run('config check --json', { env: { ...signingKeyEnv, ...env } })
  const { problems, warnings } = JSON.parse(out)
  return { code, problems, warnings }
}

test('[CONF1] stores that can be used are good, and nothing is made in them', async () => {
  const [DATABASE_URL, REDIS_URL] = [await postgres.database(), await redis.database()]
  expect(await check({ DATABASE_URL, REDIS_URL })).toMatchObject({ code: 0, problems: [] })
  const [{ tables }] = await postgres.query(
    "SELECT count(*)::int AS tables FROM pg_tables WHERE schemaname = 'public'",
    DATABASE_URL,
  )
  expect(tables).toBe(0)
  const client = new Redis(REDIS_URL)
  expect(await client.keys('*')).toEqual([])
  client.disconnect()
  await (await openPostgres({ url: DATABASE_URL })).close()
  expect(await check({ DATABASE_URL, REDIS_URL })).toMatchObject({ code: 0, problems: [] })
}, 60_000)

test('[CONF1] a store that cannot be reached, or does not answer, is named within its time', async () => {
  const silent = await new TcpProxy(await redis.database()).start()
  silent.stall()
  try {
    const env = { DATABASE_URL: await postgres.database(), REDIS_URL: `redis://${silent.host}` }
    expect((await check(env)).problems).toEqual([expect.stringMatching(/^Redis: /)])
    const nobody = { DATABASE_URL: 'postgres://u@127.0.0.1:1/calls', REDIS_URL: await redis.database() }
    expect((await check(nobody)).problems).toEqual([expect.stringMatching(/^PostgreSQL: .*127\.0\.0\.1:1/)])
  } finally {
    await silent.stop()
  }
}, 60_000)

test('[CONF1] a role without the rights, a schema of a newer version, and the Redis of another deployment are named', async () => {
  const url = await postgres.database()
  const database = new URL(url).pathname.slice(1)
  const role = `weak_${database}`
  await (await openPostgres({ url })).close()
  await postgres.query(`CREATE ROLE ${role} LOGIN`, url)
  await postgres.query(`REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO ${role}`, url)
  await postgres.query(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}; REVOKE DELETE ON outbox FROM ${role}`, url)
  const weak = url.replace(/\/\/[^@]*@/, `//${role}@`)
  expect((await check({ DATABASE_URL: weak })).problems).toEqual(['PostgreSQL: this role lacks DELETE on outbox'])

  const REDIS_URL = await redis.database()
  const client = new Redis(REDIS_URL)
  await client.set('rw:deployment', 'somebody else')
  client.disconnect()
  const foreign = await check({ DATABASE_URL: url, REDIS_URL })
  expect(foreign.problems).toEqual([expect.stringContaining('belongs to another deployment')])

  await postgres.query(
    "INSERT INTO schema_migrations SELECT max(number) + 1, '9999_breaking_x.sql', 'x', 0 FROM schema_migrations",
    url,
  )
  expect((await check({ DATABASE_URL: url })).problems).toEqual([expect.stringContaining('newer than this version')])
  await postgres.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`, url)
}, 60_000)

test('[CONF1] few descriptors and times that make no sense are warnings', async () => {
  const few = ['sh', '-c', 'ulimit -n 1000; exec "$@"', 'sh', ...program]
  const env = { RINGWIRE_DRAIN_MS: '0', RINGWIRE_PONG_TIMEOUT_MS: '30000' }
  const { code, out } = await box.run('config check --json', { program: few, env })
  expect(code).toBe(0)
  const { warnings } = JSON.parse(out)
  expect(warnings).toEqual([
    expect.stringContaining('RINGWIRE_DRAIN_MS'),
    expect.stringContaining('RINGWIRE_PONG_TIMEOUT_MS'),
    expect.stringContaining('may open 1000 files'),
  ])
}, 60_000)

test('the rights that config check asks for are those of docs/operations.md', () => {
  const text = readFileSync(new URL('../../../../docs/operations.md', import.meta.url), 'utf8')
  const granted = [...text.matchAll(/^GRANT ([A-Z, ]+) ON (\w+) TO ringwire_service;$/gm)]
  expect(Object.fromEntries(granted.map(([, rights, table]) => [table, rights]))).toEqual({ ...neededRights })
})
