import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { Redis } from 'ioredis'
import { createStore, type Store } from '../../src/stores/redis/connection.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openRedisDatabases, type RedisDatabases, type RedisServer, startRedis } from '../support/redis.ts'
import { signingKeyEnv } from '../support/session-tokens.ts'

let postgres: Databases
let redis: RedisDatabases
const services: Service[] = []
beforeAll(async () => {
  ;[postgres, redis] = await Promise.all([openDatabases(), openRedisDatabases()])
})
afterEach(async () => {
  for (const service of services.splice(0)) await service.dispose()
})
afterAll(async () => {
  await Promise.all([postgres.dispose(), redis.stop()])
})

/** A node of a deployment: its PostgreSQL database says which. */
function node(databaseUrl: string, redisUrl: string, env: Record<string, string> = {}): Service {
  const service = new Service({ DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, ...signingKeyEnv, ...env })
  services.push(service)
  return service
}

const startOf = (service: Service) => service.start().then(() => 'started', String)
const status = async ({ url }: Service) => (await fetch(`${url}/readyz`, { keepalive: false })).status

test('[REDIS1] a second deployment on one Redis does not start and says what to do; with a prefix of its own it does', async () => {
  const [one, other] = [await postgres.database(), await postgres.database()]
  const shared = await redis.database()
  const first = await node(one, shared).start()
  const refused = await startOf(node(other, shared))
  expect(refused).toContain('belongs to another deployment')
  expect(refused).toContain('RINGWIRE_REDIS_PREFIX')
  expect(refused).toContain('DEL rw:deployment')
  // Another node of the first one is at home there.
  const second = await node(one, shared).start()
  const apart = await node(other, shared, { RINGWIRE_REDIS_PREFIX: 'b:' }).start()
  expect(await startOf(node(one, shared, { RINGWIRE_REDIS_PREFIX: 'b:' }))).toContain('DEL b:rw:deployment')
  for (const each of [first, second, apart]) expect(await status(each)).toBe(200)
  const ann = await apart.connect({ user_id: 'ann' })
  const client = new Redis(shared)
  try {
    const keys = await client.keys('*')
    expect(keys.filter((key) => !key.startsWith('rw:') && !key.startsWith('b:rw:'))).toEqual([])
    expect(keys.filter((key) => key.startsWith('b:rw:')).length).toBeGreaterThan(3)
  } finally {
    client.disconnect()
    await ann.close()
  }
}, 120_000)

test('[REDIS1] two deployments with prefixes in one database do not hear of each other', async () => {
  const [one, other] = [await postgres.database(), await postgres.database()]
  const shared = await redis.database()
  const nodes = await Promise.all([
    node(one, shared, { RINGWIRE_REDIS_PREFIX: 'one:' }).start(),
    node(one, shared, { RINGWIRE_REDIS_PREFIX: 'one:' }).start(),
    node(other, shared, { RINGWIRE_REDIS_PREFIX: 'other:' }).start(),
  ])
  const [first, second, apart] = nodes as [Service, Service, Service]
  const ann = await first.connect({ user_id: 'ann' })
  const ben = await second.connect({ user_id: 'ben', role: 'agent' })
  const stranger = await apart.connect({ user_id: 'ben', role: 'agent' })
  ann.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent' })
  const { data } = await ben.next('call.ringing')
  ben.send('call.accept', { call_uuid: data.call_uuid })
  await ann.next('call.accepted')
  // A session that rang there would have got its push before this is answered.
  stranger.send('call.accept', { call_uuid: data.call_uuid }, 'r')
  expect((await stranger.next('call.error')).error.code).toBe('CALL_NOT_FOUND')
  for (const each of [ann, ben, stranger]) await each.close()
}, 120_000)

test('[REDIS1] a Redis that was emptied, or that nodes without an id have used, is no other deployment: it is named again', async () => {
  const server: RedisServer = await startRedis()
  const admin = new Redis(server.url)
  const errors: string[] = []
  const open = (deployment: string) =>
    createStore(server.url, (error) => void errors.push(String(error)), { deployment, watchMs: 20 })
  const stores: Store[] = []
  try {
    await admin.hset('rw:w:0', 'old~run', 'origin')
    const store = open('a')
    stores.push(store)
    await store.ready()
    expect(await admin.get('rw:deployment')).toBe('a')
    await admin.flushall()
    await until('it is named again', async () => (await admin.get('rw:deployment')) === 'a')
    expect(errors).toEqual([])
    const foreign = open('b')
    stores.push(foreign)
    expect(await foreign.ready().catch(String)).toContain('belongs to another deployment')
    // While a node serves somebody else takes it: that is said, once.
    await admin.set('rw:deployment', 'c')
    await until('the log says so', () => errors.some((error) => error.includes('belongs to another deployment')))
    expect(errors).toHaveLength(1)
  } finally {
    for (const each of stores) each.close()
    admin.disconnect()
    await server.stop()
  }
}, 120_000)
