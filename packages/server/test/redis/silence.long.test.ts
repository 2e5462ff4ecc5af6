import { afterEach, beforeEach, expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import { createStore } from '../../src/adapters/redis/connection.ts'
import { createRedisSessions, type RedisSessions } from '../../src/adapters/redis/sessions.ts'
import {
  numbersOf,
  openReady,
  relays,
  resumeWindowMs,
  type Seen,
  seqsOf,
  upTo,
  windowMs,
} from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { type FromServer, RedisProxy } from '../support/redis-proxy.ts'

let server: RedisServer
let proxy: RedisProxy
let fromServer: FromServer
let nodes: RedisSessions[] = []
const lost: string[] = []
beforeEach(async () => {
  server = await startRedis()
  fromServer = (bytes) => bytes
  proxy = await new RedisProxy(server.port, (bytes, link) => fromServer(bytes, link)).start()
  nodes = []
  lost.length = 0
})
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close().catch(() => {})))
  await proxy.stop()
  await server.stop()
})

async function startNode(url: string): Promise<RedisSessions> {
  const node = createRedisSessions({
    ...{ url, node: crypto.randomUUID(), windowMs, resumeWindowMs },
    onLogLost: ({ sessionId }) => void lost.push(sessionId),
    // Connections that are given up are what is tested.
    onError: () => {},
  })
  await node.start()
  nodes.push(node)
  return node
}

/** Until the socket was told so much; in order, each once. */
async function told({ socket }: Seen, count: number): Promise<void> {
  for (let tries = 0; socket.told.length < count; tries++) {
    if (tries > 1_000) throw new Error(`told ${socket.told.length} of ${count}`)
    await Bun.sleep(10)
  }
  expect(numbersOf(socket)).toEqual(upTo(count))
  expect(seqsOf(socket)).toEqual(upTo(count))
}

test('[ORD2] a subscription that falls silent without a word is replaced, and nothing is lost', async () => {
  const [behind, direct] = [await startNode(proxy.url), await startNode(server.url)]
  const seen = await openReady(behind.sessions)
  await relays(direct.sessions, seen.id, 'c', upTo(5))
  await told(seen, 5)
  const silent = new Set(proxy.open.filter((link) => proxy.subscribes(link)))
  expect(silent.size).toBe(1)
  let swallowed = 0
  fromServer = (bytes, link) => {
    if (!silent.has(link)) return bytes
    swallowed += bytes.length
    return undefined
  }
  const start = performance.now()
  await relays(direct.sessions, seen.id, 'c', upTo(20, 6))
  await told(seen, 20)
  expect(performance.now() - start).toBeLessThan(soon(6_000))
  expect(swallowed).toBeGreaterThan(15 * 50)
  // The new one is heard by: this takes no look at the log that is due.
  const before = performance.now()
  await relays(direct.sessions, seen.id, 'c', [21])
  await told(seen, 21)
  expect(performance.now() - before).toBeLessThan(soon(500))
  expect(lost).toEqual([])
}, 240_000)

test('[ORD2] a subscription that falls silent in the middle of a message', async () => {
  const [behind, direct] = [await startNode(proxy.url), await startNode(server.url)]
  const seen = await openReady(behind.sessions)
  const silent = new Set(proxy.links.filter((link) => proxy.subscribes(link)))
  let left = 300
  fromServer = (bytes, link) => {
    if (!silent.has(link)) return bytes
    const passed = bytes.subarray(0, left)
    left -= passed.length
    return passed.length > 0 ? passed : undefined
  }
  await relays(direct.sessions, seen.id, 'c', upTo(20))
  await told(seen, 20)
  expect(left).toBe(0)
}, 240_000)

test('[ORD2] everything falls silent, new connections too, and comes back', async () => {
  const [behind, direct] = [await startNode(proxy.url), await startNode(server.url)]
  const seen = await openReady(behind.sessions)
  await relays(direct.sessions, seen.id, 'c', upTo(5))
  await told(seen, 5)
  const before = proxy.links.length
  fromServer = () => undefined
  await relays(direct.sessions, seen.id, 'c', upTo(20, 6))
  // Until connections that were made in the silence were given up, too.
  while (proxy.links.length < before + 4) await Bun.sleep(20)
  const held = new Set(proxy.links)
  // What was silent stays so.
  fromServer = (bytes, link) => (held.has(link) ? undefined : bytes)
  await told(seen, 20)
  await relays(direct.sessions, seen.id, 'c', [21])
  await told(seen, 21)
  expect(await relays(behind.sessions, seen.id, 'c', [22])).toEqual(['sent'])
  await told(seen, 22)
  expect(lost).toEqual([])
}, 240_000)

test('a server that is too old is refused', async () => {
  // As long as it was, so that the reply stays whole.
  fromServer = (bytes) =>
    Buffer.from(bytes.toString('latin1').replace(/redis_version:\d+\.\d+\.\d+/, olderOfSameLength), 'latin1')
  const store = createStore(proxy.url, () => {})
  const problem = await store.ready().then(
    () => '',
    (error: Error) => error.message,
  )
  store.close()
  expect(problem).toMatch(/^Redis is version 6\.\d+\.\d+, and has to be 7\.0 or newer$/)
})

function olderOfSameLength(field: string): string {
  return `redis_version:6.${field.slice('redis_version:6.'.length)}`
}
