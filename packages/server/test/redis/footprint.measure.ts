/**
 * What sessions and limits take of Redis: memory, and counting beside the bare client's EVALSHA of a trivial script.
 * `bun packages/server/test/redis/footprint.measure.ts`
 */
import { Redis } from 'ioredis'
import { openReady, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { createMemoryCounters } from '../../src/stores/memory/limits.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisCounters } from '../../src/stores/redis/limits.ts'
import { pushes, resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { startRedis } from '../support/redis.ts'
import { createRedisSessions } from '../support/redis-sessions.ts'

const server = await startRedis()
const client = new Redis(server.url)
const options = { url: server.url, node: 'one', windowMs, resumeWindowMs, onError: console.error }
const { sessions, ...node } = createRedisSessions(options)
await node.start()

/** Bytes that the work leaves behind, for each of `count`. */
async function bytesEach<T>(what: string, count: number, work: () => Promise<T>): Promise<T> {
  const used = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1])
  const before = await used()
  const result = await work()
  console.log(`${what}: ${Math.round(((await used()) - before) / count)} bytes`)
  return result
}

const textOf = (data: string) => JSON.stringify({ event: 'webrtc.ice_candidate', data })

async function append(each: readonly Seen[], count: number, bytes: number): Promise<void> {
  for (const { id } of each) {
    await stepsOf(sessions).hold(id, 'c', true)
    for (let n = 0; n < count; n++) {
      const data = crypto.randomUUID().padEnd(bytes - textOf('').length, '.')
      await sessions.append(id, { ...pushes.relay('c', n), text: textOf(data) })
    }
  }
}

const open = () => Promise.all(Array.from({ length: 2_000 }, () => openReady(sessions)))
const all = await bytesEach('a session with a socket', 2_000, open)
await bytesEach('40 pushes of 400 bytes in its log', all.length, () => append(all, 40, 400))
await bytesEach('a log that is full, 512 pushes of 2 KiB', 100, () => append(all.slice(0, 100), 512, 2_048))

const store = createStore(server.url, console.error)
await store.ready()
const fallback = createMemoryCounters()
const counters = createRedisCounters({ store, fallback, onAway: console.error, onBack() {} })
const counter = counters.counter('measured', { count: 5, seconds: 3_600 })
await bytesEach('a subject of a limit', 20_000, async () => {
  for (let i = 0; i < 20_000; i++) await counter.consume(String(i))
})

/** How often a second, with `inFlight` in flight. */
async function rate(inFlight: number, once: (i: number) => unknown): Promise<number> {
  let done = 0
  const end = performance.now() + 3_000
  const loop = async () => {
    while (performance.now() < end) await once(done++)
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  return Math.round(done / 3)
}

const sha = String(await client.script('LOAD', 'return 1'))
for (const inFlight of [1, 100]) {
  const bare = await rate(inFlight, () => store.client.evalsha(sha, 1, 'rw:x'))
  const counted = await rate(inFlight, (i) => counter.consume(String(i % 1_000)))
  console.log(`${inFlight} in flight: bare EVALSHA ${bare}/s, a limit ${counted}/s (${(counted / bare).toFixed(2)})`)
}
counters.close()
store.close()
await node.close()
client.disconnect()
await server.stop()
