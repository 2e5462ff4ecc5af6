import { afterEach, beforeEach, expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import type { Participant } from '../../src/call/call.ts'
import { createLimits, type Limit, type Limits } from '../../src/limits/limits.ts'
import { createMemoryCounters } from '../../src/stores/memory/limits.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisCounters } from '../../src/stores/redis/limits.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

interface Node {
  readonly limits: Limits
  /** The reports: away, back, away … */
  readonly told: string[]
  /** Resolves after that many reports. */
  until(count: number): Promise<void>
  close(): void
}

const person = (userId: string): Participant => ({ product: 'shop', role: 'customer', userId })
const hour = (count: number) => ({ count, seconds: 3_600 })

let server: RedisServer
let nodes: Node[] = []
beforeEach(async () => {
  server = await startRedis()
})
afterEach(async () => {
  for (const node of nodes) node.close()
  nodes = []
  await server.stop()
})

/** A Redis that waits for a core is not away: it may take its time, in ms. */
const patientMs = 4_000
/** The same where it stands still, and each node waits for it once. */
const briefMs = 1_000

async function startNodes(answerMs = patientMs): Promise<void> {
  nodes = await Promise.all([startNode(answerMs), startNode(answerMs)])
}

async function startNode(answerMs: number): Promise<Node> {
  const told: string[] = []
  let waiting = { count: 0, resolve() {} }
  const tell = (what: string) => {
    told.push(what)
    if (told.length >= waiting.count) waiting.resolve()
  }
  const store = createStore(server.url, () => {})
  await store.ready()
  const counters = createRedisCounters({
    store,
    fallback: createMemoryCounters(),
    onAway: () => tell('away'),
    onBack: () => tell('back'),
    answerMs,
  })
  const config = { tokenRateIp: hour(10), tokenRateKey: null, tokenFailRateIp: null }
  return {
    limits: createLimits({ ...config, inviteRate: hour(1_000_000), pairInviteRate: hour(1_000_000) }, counters),
    told,
    until(count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting = { count, resolve }
      if (told.length >= count) resolve()
      return promise
    },
    close() {
      counters.close()
      store.close()
    },
  }
}

/** How many of `count` requests are allowed, half of them at either node. */
async function allowedOf(count: number, ask: (limits: Limits) => Promise<Limit>): Promise<number> {
  const answers: Limit[] = []
  for (let i = 0; i < count; i++) answers.push(await ask(nodes[i % nodes.length]!.limits))
  return answers.filter(({ ok }) => ok).length
}

const request = (address: string) => (limits: Limits) => limits.tokenRequest(address)

/** Invites, one after another until told to stop; the longest time that one took. */
function inviteAllTheTime({ limits }: Node): { stop(): Promise<number> } {
  let isOver = false
  let longestMs = 0
  const work = (async () => {
    while (!isOver) {
      const start = performance.now()
      expect((await limits.invite(person('a'), person('b'))).ok).toBe(true)
      longestMs = Math.max(longestMs, performance.now() - start)
      // Memory answers without waiting: others have to have their turn.
      await Bun.sleep(1)
    }
  })()
  return {
    async stop() {
      isOver = true
      await work
      return longestMs
    },
  }
}

test('[TOK5] Redis stands still: no request waits, each node counts for itself, and it ends by itself', async () => {
  await startNodes(briefMs)
  const invites = nodes.map(inviteAllTheTime)
  expect(await allowedOf(20, request('192.0.2.1'))).toBe(10)
  process.kill(server.pid, 'SIGSTOP')
  await Promise.all(nodes.map((node) => node.until(1)))
  // A whole budget at each node.
  expect(await allowedOf(40, request('192.0.2.1'))).toBe(20)
  // Longer than commands may take: connections are given up meanwhile.
  await Bun.sleep(5_000)
  process.kill(server.pid, 'SIGCONT')
  await Promise.all(nodes.map((node) => node.until(2)))
  const longest = await Promise.all(invites.map((each) => each.stop()))
  expect(Math.max(...longest)).toBeLessThan(soon(briefMs + 250))
  // Earlier counts still count; and new counts hold for both.
  expect(await allowedOf(20, request('192.0.2.1'))).toBe(0)
  expect(await allowedOf(20, request('192.0.2.2'))).toBe(10)
  for (const { told } of nodes) expect(told).toEqual(['away', 'back'])
}, 240_000)

test('[TOK5] Redis dies and comes back empty: the same', async () => {
  await startNodes()
  const invites = nodes.map(inviteAllTheTime)
  expect(await allowedOf(20, request('192.0.2.1'))).toBe(10)
  await server.kill()
  await Promise.all(nodes.map((node) => node.until(1)))
  expect(await allowedOf(40, request('192.0.2.1'))).toBe(20)
  await server.restart()
  await Promise.all(nodes.map((node) => node.until(2)))
  const longest = await Promise.all(invites.map((each) => each.stop()))
  expect(Math.max(...longest)).toBeLessThan(soon(250))
  expect(await allowedOf(20, request('192.0.2.1'))).toBe(10)
  for (const { told } of nodes) expect(told).toEqual(['away', 'back'])
}, 240_000)

test('[TOK5] Redis that is away again soon is left alone for longer', async () => {
  await startNodes()
  const [node] = nodes as [Node]
  const pauses: { sinceAway: number; sinceThere: number }[] = []
  for (let i = 0; i < 2; i++) {
    await server.kill()
    // The pause begins with the first of them.
    const awayAt = performance.now()
    await allowedOf(2, request('192.0.2.1'))
    await server.restart()
    const thereAt = performance.now()
    await node.until(2 * i + 2)
    pauses.push({ sinceAway: performance.now() - awayAt, sinceThere: performance.now() - thereAt })
  }
  expect(node.told).toEqual(['away', 'back', 'away', 'back'])
  expect(pauses[0]?.sinceThere).toBeLessThan(soon(2_000))
  expect(pauses[1]?.sinceAway).toBeGreaterThan(1_900)
}, 240_000)

test('[TOK5] Redis that answers and does not write: it is away until it writes', async () => {
  await startNodes()
  const client = new Redis(server.url)
  await client.config('SET', 'maxmemory', '1')
  expect(await allowedOf(40, request('192.0.2.1'))).toBe(20)
  await Bun.sleep(1_500)
  for (const { told } of nodes) expect(told).toEqual(['away'])
  await client.config('SET', 'maxmemory', '0')
  await Promise.all(nodes.map((node) => node.until(2)))
  client.disconnect()
  expect(await allowedOf(20, request('192.0.2.1'))).toBe(10)
}, 240_000)

test('[TOK5] [INV8] [LOG1] nothing in Redis says who was counted, and all of it expires', async () => {
  await startNodes()
  const client = new Redis(server.url)
  await allowedOf(4, request('192.0.2.1'))
  await allowedOf(4, (limits) => limits.invite(person('somebody'), person('someone')))
  const keys = await client.keys('*')
  expect(keys).toHaveLength(3)
  for (const key of keys) {
    expect(key).toMatch(/^rw:c:[\w-]{22}$/)
    expect(await client.pttl(key)).toBeWithin(3_590_000, 3_600_001)
    expect(await client.get(key)).toBe('4')
  }
  client.disconnect()
})
