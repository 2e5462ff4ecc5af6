import { afterEach, beforeEach, expect, test } from 'bun:test'
import { makeCertificates } from '@ringwire/testkit/certificates'
import { soon, until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { openReady, type Seen } from '../../src/ports/sessions.fixture.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { createMemoryCounters } from '../../src/stores/memory/limits.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisCounters } from '../../src/stores/redis/limits.ts'
import {
  comeBack,
  numbersOf,
  pushes,
  relays,
  resumeWindowMs,
  seqsOf,
  upTo,
  windowMs,
} from '../contracts/session-parts.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'
import { type SentinelGroup, startSentinelGroup } from '../support/sentinel.ts'

let group: SentinelGroup
let nodes: RedisSessions[] = []
beforeEach(async () => {
  group = await startSentinelGroup()
  nodes = []
}, 240_000)
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close().catch(() => {})))
  await group.stop()
})

async function startNode(): Promise<RedisSessions> {
  const node: RedisSessions = createRedisSessions({
    ...{ url: group.url, node: crypto.randomUUID(), windowMs, resumeWindowMs },
    // Lost connections are what is tested.
    onError: () => {},
  })
  await node.start()
  nodes.push(node)
  return node
}

/** What the start says; the empty text where it begins. */
async function startOf(url: string): Promise<string> {
  const store = createStore(url, () => {}, { startMs: 3_000 })
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

/** Appends until one is taken. */
async function appendAtLast({ sessions }: RedisSessions, { id }: Seen, n: number): Promise<void> {
  for (let tries = 0; tries < 2_000; tries++) {
    try {
      const result = await sessions.append(id, { ...pushes.relay('c', n), source: { sessionId: 'sender', n } })
      // `kept`: it was taken before, and the answer was lost.
      if (result === 'sent' || result === 'kept') return
      // What the replica lacks its owner is about to write again.
      expect(result).toBe('gone')
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
    }
    await Bun.sleep(20)
  }
  throw new Error('the sessions do not come back')
}

for (const [how, signal] of [
  ['dies', 'SIGKILL'],
  ['stands still', 'SIGSTOP'],
] as const) {
  test(`[RES2] [RES4] a master ${how}, its replica is promoted: sessions go on by themselves, and lose nothing`, async () => {
    const [one, two] = [await startNode(), await startNode()]
    const [here, away] = [await openReady(one.sessions), await openReady(one.sessions)]
    for (const { id } of [here, away]) await relays(two.sessions, id, 'c', upTo(3))
    await one.settled()
    expect(numbersOf(here.socket)).toEqual(upTo(3))
    await one.sessions.detach(away.id, away.socket, false, 0)

    process.kill(group.master.pid, signal)
    await group.promoted()
    const promotedAt = performance.now()
    await appendAtLast(two, here, 10)
    expect(performance.now() - promotedAt).toBeLessThan(soon(6_000))
    await appendAtLast(one, here, 11)
    await one.look()
    await one.settled()
    // What the new master has may be behind: logs are in the memory of their owner, and are written again.
    expect(numbersOf(here.socket)).toEqual([1, 2, 3, 10, 11])
    expect(seqsOf(here.socket)).toEqual(upTo(5))
    const returned = await comeBack(two.sessions, away, 2)
    expect(returned && numbersOf(returned.socket)).toEqual([3])
    await one.sessions.detach(here.id, here.socket, false, 0)
    await relays(two.sessions, here.id, 'c', [12])
    const back = await comeBack(two.sessions, here, 4)
    expect(back && numbersOf(back.socket)).toEqual([11, 12])
  }, 240_000)
}

test('[TOK5] limits and readiness follow the promotion', async () => {
  const told: string[] = []
  const { promise: back, resolve } = Promise.withResolvers<void>()
  const store = createStore(group.url, () => {})
  await store.ready()
  await store.tryWrite()
  const counters = createRedisCounters({
    store,
    fallback: createMemoryCounters(),
    // What waits for a core is not away.
    answerMs: 4_000,
    onAway: () => void told.push('away'),
    onBack() {
      told.push('back')
      resolve()
    },
  })
  const counter = counters.counter('test', { count: 1, seconds: 3_600 })
  expect(await counter.consume('a')).toBe(0)
  // A replica has what it is sent a moment later.
  const replica = new Redis(group.replica.url)
  await until('the replica has it', async () => (await replica.dbsize()) > 0)
  replica.disconnect()
  await group.master.kill()
  const refused = await store.tryWrite().then(
    () => 'answered',
    () => 'refused',
  )
  expect(refused).toBe('refused')
  expect(await counter.consume('b')).toBe(0)
  await group.promoted()
  await back
  await store.tryWrite()
  // The replica had what was counted.
  expect(await counter.consume('a')).toBeGreaterThan(0)
  expect(told).toEqual(['away', 'back'])
  counters.close()
  store.close()
}, 240_000)

test('an account at the Sentinel of its own', async () => {
  const sentinel = new Redis({ port: group.sentinelPort, enableReadyCheck: false })
  const password = 'w/a+t@c?h'
  const rights = ['-@all', '+sentinel|get-master-addr-by-name', '+sentinel|sentinels']
  await sentinel.call('ACL', 'SETUSER', 'watcher', 'on', `>${password}`, ...rights)
  await sentinel.call('ACL', 'SETUSER', 'default', 'off')
  sentinel.disconnect()
  const account = `sentinel_username=watcher&sentinel_password=${encodeURIComponent(password)}`
  expect(await startOf(`${group.url}?${account}`)).toBe('')
  expect(await startOf(group.url)).toMatch(/^Redis cannot be reached: .*NOAUTH/)
  const wrong = await startOf(`${group.url}?${account}wrong`)
  expect(wrong).toMatch(/^Redis cannot be reached: .*(WRONGPASS|NOAUTH)/)
  expect(wrong).not.toContain(password)
})

test('Sentinel and servers with TLS, also after the promotion', async () => {
  const certificates = await makeCertificates()
  const secure = await startSentinelGroup(certificates)
  try {
    expect(await startOf(secure.url)).toMatch(/^Redis cannot be reached: All sentinels are unreachable/)
    const url = `${secure.url}?ca=${certificates.ca}`
    expect(await startOf(url)).toBe('')
    const store = createStore(url, () => {})
    await store.ready()
    await secure.master.kill()
    await secure.promoted()
    for (let tries = 0; ; tries++) {
      if (tries > 500) throw new Error('the store does not come back')
      const isBack = await store.tryWrite().then(
        () => true,
        () => false,
      )
      if (isBack) break
      await Bun.sleep(20)
    }
    store.close()
  } finally {
    await secure.stop()
    await certificates.remove()
  }
}, 240_000)
