import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readDocument } from '@ringwire/testkit/documents'
import { soon, until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { createMemoryCounters } from '../../src/stores/memory/limits.ts'
import { createStore, type Store } from '../../src/stores/redis/connection.ts'
import { createRedisCounters } from '../../src/stores/redis/limits.ts'
import { openEphemerals } from '../contracts/ephemerals.ts'
import { resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { registerSessionsContract } from '../contracts/sessions.ts'
import { type RedisServer, startCluster, startRedis } from '../support/redis.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'
import { type SentinelGroup, startSentinelGroup } from '../support/sentinel.ts'
import { outcomeOf } from './session-nodes.ts'

/** What docs/operations.md tells an operator to give the service. */
const rights = readRights()
const password = 's/e?c@r#e:t+%'
const account = `ringwire:${encodeURIComponent(password)}`

function readRights(): string[] {
  const [, line = ''] = /^ +user ringwire on >\S+ (.+)$/m.exec(readDocument('docs/operations.md')) ?? []
  if (line === '') throw new Error('docs/operations.md has no rights of the Redis account')
  return line.split(' ')
}

let server: RedisServer
let admin: Redis
let databases = 0
beforeAll(async () => {
  server = await startRedis(['--databases', '64'])
  admin = new Redis(server.url)
  await allow(admin)
})
afterAll(async () => {
  admin.disconnect()
  await server.stop()
})

async function allow(client: Redis, name = 'ringwire', given: readonly string[] = rights): Promise<void> {
  await client.call('ACL', 'SETUSER', name, 'reset', 'on', `>${password}`, ...given)
}

/** What the server refused to an account. */
async function denied(client: Redis): Promise<unknown[]> {
  return (await client.call('ACL', 'LOG')) as unknown[]
}

async function startOf(url: string): Promise<string> {
  const store = createStore(url, () => {})
  try {
    await store.ready()
    await store.tryWrite()
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    store.close()
  }
}

/** The whole contract with no more rights than the documents ask for. */
registerSessionsContract('redis, an account with the rights of the documents', async (windows) => {
  databases++
  const node: RedisSessions = createRedisSessions({
    ...{ ...windows, url: `redis://${account}@127.0.0.1:${server.port}/${databases}`, node: crypto.randomUUID() },
    onError: (error) => console.error(error),
  })
  await node.start()
  const flusher = new Redis(`${server.url}/${databases}`)
  return {
    sessions: node.sessions,
    isShared: true,
    async emptyStore() {
      await node.settled()
      await flusher.flushdb()
      await node.look()
    },
    settled: () => node.settled(),
    async close() {
      await node.close()
      flusher.disconnect()
      expect(await denied(admin)).toEqual([])
    },
  }
})

test('limits and readiness need no more rights; one server and its database 0 need fewer', async () => {
  const fewer = rights.filter((right) => right !== '+select' && !right.startsWith('+cluster|'))
  expect(rights.length - fewer.length).toBe(3)
  await allow(admin, 'least', fewer)
  const store = createStore(`redis://${account.replace('ringwire', 'least')}@127.0.0.1:${server.port}`, () => {})
  await store.ready()
  await store.tryWrite()
  const away: unknown[] = []
  const counters = createRedisCounters({
    // What waits for a core is not away.
    ...{ store, fallback: createMemoryCounters(), onBack() {}, answerMs: 4_000 },
    onAway: (error) => void away.push(error),
  })
  const counter = counters.counter('test', { count: 1, seconds: 60 })
  await counter.consume('a')
  await counter.refund('a')
  expect(await counter.consume('a')).toBe(0)
  expect(await counter.consume('a')).toBeGreaterThan(0)
  expect(away).toEqual([])
  expect(await denied(admin)).toEqual([])
  counters.close()
  store.close()
})

/** A node that holds its sign there sees it. */
async function showsThatItLives(url: string, prefix = ''): Promise<void> {
  const { ephemerals, close } = await openEphemerals('redis', url, prefix)
  await new Promise<void>((onHeld) => ephemerals.hold('one', { onHeld, onLost() {} }))
  expect([...(await ephemerals.look(['one', 'two'])).held]).toEqual(['one'])
  await close()
}

test('[PLACE4] signs of life need no more rights, and of a deployment with a prefix none to other channels', async () => {
  const url = `redis://${account}@127.0.0.1:${server.port}`
  await showsThatItLives(url)
  const ofShop = rights.map((right) => right.replace(/^([~&])/, '$1shop:'))
  await allow(admin, 'shop', ofShop)
  await showsThatItLives(url.replace('ringwire', 'shop'), 'shop:')
  expect(await denied(admin)).toEqual([])
  for (const missing of ['&rw:*', '+subscribe', '+pubsub|numsub']) {
    await allow(
      admin,
      'less',
      rights.filter((right) => right !== missing),
    )
    const { ephemerals, close } = await openEphemerals('redis', url.replace('ringwire', 'less'))
    ephemerals.hold('one', { onHeld() {}, onLost() {} })
    await until(`${missing} is missed`, async () => {
      await ephemerals.look(['one']).catch(() => {})
      return (await denied(admin)).length > 0
    })
    await close()
    await admin.call('ACL', 'LOG', 'RESET')
  }
})

async function useSessions(url: string): Promise<void> {
  const node = createRedisSessions({
    ...{ url, node: 'one', windowMs, resumeWindowMs },

    onError: (error) => console.error(error),
  })
  await node.start()
  await node.settled()
  await node.close()
}

test('the same rights on a cluster', async () => {
  const cluster = await startCluster()
  const admins = cluster.servers.map(({ url }) => new Redis(url))
  try {
    await Promise.all(admins.map((each) => allow(each)))
    const url = cluster.url.replace('://', `://${account}@`)
    expect(await startOf(url)).toBe('')
    await useSessions(url)
    await showsThatItLives(url)
    for (const each of admins) expect(await denied(each)).toEqual([])
    const wrong = cluster.url.replace('://', '://ringwire:wrong@')
    expect(await startOf(wrong)).toStartWith('Redis cannot be reached: WRONGPASS')
  } finally {
    for (const each of admins) each.disconnect()
    await cluster.stop()
  }
})

test('the same account at the servers that Sentinel watches, also at the one that is promoted', async () => {
  const group = await startSentinelGroup()
  const admins = [group.master, group.replica].map(({ url }) => new Redis(url))
  const [url, wrong] = [account, 'ringwire:wrong'].map((each) => group.url.replace('://', `://${each}@`)) as [
    string,
    string,
  ]
  for (const admin of admins) admin.on('error', () => {})
  let store: Store | undefined
  try {
    await closeDefaultAccount(group, admins)
    await Promise.all(admins.map((each) => allow(each)))
    const lasting = createStore(url, () => {})
    store = lasting
    await lasting.ready()
    await useSessions(url)
    expect(await denied(admins[0]!)).toEqual([])
    expect(await startOf(wrong)).toStartWith('Redis cannot be reached: WRONGPASS')
    expect(await startOf(group.url)).toStartWith('Redis cannot be reached: NOAUTH')

    await group.master.kill()
    await group.promoted()
    // A client that was connected finds the way like a new one.
    await until('the store is back', async () => (await outcomeOf(() => lasting.tryWrite())) === undefined)
    await useSessions(url)
    expect(await denied(admins[1]!)).toEqual([])
    expect(await startOf(wrong)).toStartWith('Redis cannot be reached: WRONGPASS')
  } finally {
    store?.close()
    for (const admin of admins) admin.disconnect()
    await group.stop()
  }
}, 240_000)

/** Sentinel and the replica keep a password for themselves; nobody else gets in without an account. */
async function closeDefaultAccount(group: SentinelGroup, admins: readonly Redis[]): Promise<void> {
  const secret = 'of-the-servers-themselves'
  const sentinel = new Redis({ port: group.sentinelPort, enableReadyCheck: false })
  await sentinel.call('SENTINEL', 'SET', 'calls', 'auth-pass', secret)
  sentinel.disconnect()
  for (const setting of ['masterauth', 'requirepass']) {
    await Promise.all(admins.map((admin) => admin.config('SET', setting, secret)))
  }
  // A promotion ends the connections to that server.
  for (const admin of admins) admin.options.password = secret
}

test('an account or password that is refused: the start is, too, at once, and without the password', async () => {
  const start = performance.now()
  for (const name of ['ringwire', 'somebody']) {
    const problem = await startOf(`redis://${name}:wrong-${encodeURIComponent(password)}@127.0.0.1:${server.port}`)
    expect(problem).toStartWith('Redis cannot be reached: WRONGPASS')
    expect(problem).not.toContain(password)
  }
  expect(performance.now() - start).toBeLessThan(soon(900))
})

test('a password alone', async () => {
  const plain = await startRedis()
  const client = new Redis(plain.url)
  try {
    await client.config('SET', 'requirepass', password)
    expect(await startOf(`redis://:${encodeURIComponent(password)}@127.0.0.1:${plain.port}`)).toBe('')
    expect(await startOf(`redis://:wrong@127.0.0.1:${plain.port}`)).toStartWith('Redis cannot be reached: WRONGPASS')
    expect(await startOf(plain.url)).toStartWith('Redis cannot be reached: NOAUTH')
  } finally {
    client.disconnect()
    await plain.stop()
  }
})
