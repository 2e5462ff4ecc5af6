import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { createStore, type Store, type StoreOptions } from '../../src/stores/redis/connection.ts'
import { resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { type RedisServer, startCluster, startRedis } from '../support/redis.ts'
import { createRedisSessions } from '../support/redis-sessions.ts'

let server: RedisServer
let admin: Redis
beforeAll(async () => {
  server = await startRedis()
  admin = new Redis(server.url)
})
afterAll(async () => {
  admin.disconnect()
  await server.stop()
})

/** What the work rejects with; the empty text where it does not. */
async function problemOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

async function withStore<T>(url: string, use: (store: Store) => Promise<T>, options?: StoreOptions) {
  const store = createStore(url, () => {}, options)
  try {
    return await use(store)
  } finally {
    store.close()
  }
}

const wrongPolicy = 'the maxmemory-policy allkeys-lru, and needs noeviction: with any other it drops sessions unasked'

test('a server that evicts is refused at the start, and a change is told once', async () => {
  await admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
  expect(await problemOf(withStore(server.url, (store) => store.ready()))).toBe(`Redis has ${wrongPolicy}`)
  const sessions = createRedisSessions({
    ...{ url: server.url, node: 'one', windowMs, resumeWindowMs },

    onError() {},
  })
  expect(await problemOf(sessions.start())).toBe(`Redis has ${wrongPolicy}`)
  await sessions.close()
  await admin.config('SET', 'maxmemory-policy', 'noeviction')
  const heard: string[] = []
  const store = createStore(server.url, (error) => void heard.push(String(error)), { watchMs: 10 })
  await store.ready()
  const looks = await countLooks()
  try {
    for (const policy of ['allkeys-lru', 'noeviction', 'allkeys-lru', 'noeviction']) {
      await admin.config('SET', 'maxmemory-policy', policy)
      // The next look must not report again what this one finds.
      await looks.more(4)
    }
    expect(heard).toEqual([`Error: Redis has ${wrongPolicy}`, `Error: Redis has ${wrongPolicy}`])
  } finally {
    store.close()
    looks.stop()
  }
})

/** Sees each look at the policy as the server does; `more` counts those after what the test has asked of it before. */
async function countLooks(): Promise<{ more(count: number): Promise<void>; stop(): void }> {
  let wanted = 0
  let left = 0
  let enough = () => {}
  let rest = ''
  const { promise: listens, resolve } = Promise.withResolvers<void>()
  const { hostname, port } = new URL(server.url)
  const monitor = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_socket, bytes) {
        const lines = (rest + bytes.toString()).split('\r\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          if (line === '+OK') resolve()
          // Earlier looks may come late.
          if (/"echo" "count"$/i.test(line)) left = wanted
          if (/"info" "memory"$/i.test(line) && --left === 0) enough()
        }
      },
    },
  })
  monitor.write('MONITOR\r\n')
  await listens
  return {
    more(count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      wanted = count
      left = 0
      enough = resolve
      return Promise.all([promise, admin.echo('count')]).then(() => {})
    },
    stop: () => monitor.end(),
  }
}

/** How often each command ran. */
function stats(): Promise<string> {
  return admin.info('commandstats')
}

test('what forbids CONFIG says its policy all the same', async () => {
  const restricted = await startRedis(['--rename-command', 'CONFIG', '', '--maxmemory-policy', 'volatile-ttl'])
  try {
    const problem = await problemOf(withStore(restricted.url, (store) => store.ready()))
    expect(problem).toContain('has the maxmemory-policy volatile-ttl')
  } finally {
    await restricted.stop()
  }
})

test('every master of a cluster is looked at, and named', async () => {
  const cluster = await startCluster()
  try {
    await withStore(cluster.url, async (store) => {
      await store.ready()
      await store.tryWrite()
    })
    const { url, port } = cluster.servers[1]!
    const client = new Redis(url)
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    client.disconnect()
    const problem = await problemOf(withStore(cluster.url, (store) => store.ready()))
    expect(problem).toBe(`Redis at 127.0.0.1:${port} has ${wrongPolicy}`)
  } finally {
    await cluster.stop()
  }
})

test('a replica is refused', async () => {
  const replica = await startRedis(['--replicaof', '127.0.0.1', String(server.port)])
  try {
    expect(await problemOf(withStore(replica.url, (store) => store.ready()))).toContain('Redis is a replica')
  } finally {
    await replica.stop()
  }
})

describe('the database of the URL', () => {
  const refused = 'Redis does not give the database that REDIS_URL names: '
  const startOf = (url: string) => problemOf(withStore(url, (store) => store.ready()))

  test('one that the server does not have, or the account may not select: the start is refused at once', async () => {
    const begin = performance.now()
    expect(await startOf(`${server.url}/99`)).toBe(`${refused}ERR DB index is out of range`)
    await admin.call('ACL', 'SETUSER', 'settled', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-select')
    const account = server.url.replace('://', '://settled:secret@')
    expect(await startOf(`${account}/3`)).toMatch(new RegExp(`^${refused}NOPERM .*select`))
    expect(await startOf(`${account}/0`)).toBe('')
    expect(performance.now() - begin).toBeLessThan(soon(900))
  })

  test('a connection that is made again and does not get it is not used', async () => {
    const other = await startRedis()
    const heard: string[] = []
    const store = createStore(`${other.url}/7`, (error) => void heard.push(String(error)))
    try {
      await store.ready()
      // As a server that took its place, and has fewer databases.
      await other.restart(['--databases', '4'])
      await until('it hears why', () => heard.some((text) => text.includes('DB index is out of range')))
      for (let looks = 0; looks < 20; looks++, await Bun.sleep(10)) {
        expect(await problemOf(store.tryWrite())).toBe('Redis is not connected')
      }
      expect(heard.join()).not.toContain('enableOfflineQueue')
      await other.restart()
      await until('it writes again', async () => (await problemOf(store.tryWrite())) === '')
    } finally {
      store.close()
      await other.stop()
    }
  }, 240_000)

  test('a server of a cluster is spoken to as a cluster, and has none but database 0', async () => {
    const cluster = await startCluster()
    try {
      for (const { url } of cluster.servers) {
        expect(await startOf(url)).toStartWith('Redis is one server of a cluster')
        expect(await startOf(`${url}/5`)).toBe(`${refused}ERR SELECT is not allowed in cluster mode`)
      }
    } finally {
      await cluster.stop()
    }
  })
})

test('a server that is not there: the start is refused, and says why', async () => {
  // Nobody serves at this port; one that was free just now may be somebody's by then.
  const problem = await problemOf(withStore('redis://127.0.0.1:1', (store) => store.ready(), { startMs: 2_000 }))
  expect(problem).toStartWith('Redis cannot be reached: ')
  expect(problem).toContain('ECONNREFUSED')
})

test('a server that goes away: why is told once for each time, not with each attempt', async () => {
  const other = await startRedis()
  const heard: string[] = []
  const store = createStore(other.url, (error) => void heard.push(String(error)))
  try {
    for (const round of [1, 2]) {
      await store.ready()
      await other.kill()
      // Every 50 to 500 ms it tries again.
      let attempts = 0
      const { promise, resolve } = Promise.withResolvers<void>()
      const count = () => ++attempts === 5 && resolve()
      store.client.on('reconnecting', count)
      await promise
      store.client.off('reconnecting', count)
      expect(heard.filter((text) => text.includes('ECONNREFUSED'))).toHaveLength(round)
      await other.restart()
    }
    for (const text of heard) expect(heard.filter((other) => other === text).length).toBeLessThanOrEqual(2)
    expect(heard.join()).not.toContain('MaxRetries')
  } finally {
    store.close()
    await other.stop()
  }
}, 240_000)

test('[HEALTH1] whether a write would be taken is asked of the server, and given up after a second', async () => {
  await withStore(server.url, async (store) => {
    await store.ready()
    await admin.config('RESETSTAT')
    await store.tryWrite()
    expect(await stats()).toContain('cmdstat_eval:calls=1')
    process.kill(server.pid, 'SIGSTOP')
    try {
      const problem = problemOf(store.tryWrite())
      // If this process waits for a core, the timer that is due first still goes off first.
      const later = Bun.sleep(1_100).then(() => Bun.sleep(1))
      expect(await Promise.race([problem, later.then(() => 'later')])).toBe('Redis did not answer in time')
    } finally {
      process.kill(server.pid, 'SIGCONT')
    }
    await store.tryWrite()
  })
}, 240_000)

test('[HEALTH1] a server that answers and takes no write fails it, and nothing is written by asking', async () => {
  const replicas = await admin.config('GET', 'min-replicas-to-write')
  await withStore(server.url, async (store) => {
    await store.ready()
    const keys = await admin.dbsize()
    for (const [name, refusing, usual, why] of [
      ['maxmemory', '1', '0', 'OOM'],
      ['min-replicas-to-write', '1', (replicas as string[])[1] ?? '0', 'NOREPLICAS'],
    ] as const) {
      await admin.config('SET', name, refusing)
      try {
        expect(await problemOf(store.tryWrite())).toBe(why)
      } finally {
        await admin.config('SET', name, usual)
      }
      await store.tryWrite()
    }
    expect(await admin.dbsize()).toBe(keys)
  })
})
