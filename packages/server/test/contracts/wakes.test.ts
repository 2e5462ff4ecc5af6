import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Wakes } from '../../src/push/wakes.port.ts'
import { createMemoryWakes } from '../../src/stores/memory/wakes.ts'
import { createStore, type Store } from '../../src/stores/redis/connection.ts'
import { createRedisWakes } from '../../src/stores/redis/wakes.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

let server: RedisServer
let stores: Store[]
beforeAll(async () => {
  server = await startRedis()
  stores = [0, 1].map(() => createStore(server.url, () => {}))
  await Promise.all(stores.map((store) => store.ready()))
})
afterAll(async () => {
  for (const store of stores) store.close()
  await server.stop()
})

let now = 1_000
const clock = () => now
/** The nodes that are known to be dead. */
const dead = new Set<string>()
const onRedis = (store: Store, node = 'one') =>
  createRedisWakes({ store, node, isDead: (each) => dead.has(each), own: createMemoryWakes(clock), now: clock })
/** Of one process, and of two nodes of which each asks the other one. */
const adapters: Readonly<Record<string, () => readonly [Wakes, Wakes]>> = {
  memory() {
    const wakes = createMemoryWakes(clock)
    return [wakes, wakes]
  },
  redis: () => [onRedis(stores[0]!), onRedis(stores[1]!, 'two')],
}

for (const [name, open] of Object.entries(adapters)) {
  test(`[PUSH2] ${name}: each device of a call is woken once, by whichever node`, async () => {
    const [one, two] = open()
    const call = crypto.randomUUID()
    const ends = now + 45_000
    const added = await Promise.all([one.add(call, ['a', 'b'], ends), two.add(call, ['b', 'a', 'c'], ends)])
    expect(added.flat().sort()).toEqual(['a', 'b', 'c'])
    expect(await two.add(call, ['c'], ends)).toEqual([])
    expect([...((await one.of(call)) ?? [])].sort()).toEqual(['a', 'b', 'c'])
    expect(await one.add(`${call} another`, ['a'], ends)).toEqual(['a'])
  })

  test(`[PUSH2] ${name}: a device whose push failed may be woken again`, async () => {
    const [one] = open()
    const call = crypto.randomUUID()
    await one.add(call, ['a', 'b'], now + 45_000)
    await one.remove(call, 'a')
    expect(await one.of(call)).toEqual(['b'])
    expect(await one.add(call, ['a', 'b'], now + 45_000)).toEqual(['a'])
  })
}

test('[PUSH2] a device whose push no push service took is the next node’s once its node is dead', async () => {
  const [one, two, three] = [onRedis(stores[0]!), onRedis(stores[1]!, 'two'), onRedis(stores[1]!, 'three')]
  const call = crypto.randomUUID()
  const add = (wakes: Wakes) => wakes.add(call, ['taken', 'sending'], now + 45_000)
  expect(await add(one)).toEqual(['taken', 'sending'])
  await one.settle(call, ['taken'])
  expect(await add(two)).toEqual([])
  dead.add('one')
  const added = await Promise.all([add(two), add(three), add(two)])
  expect(added.flat()).toEqual(['sending'])
  // It was not dead after all, and what it finds does not count any more.
  await one.remove(call, 'sending')
  expect([...((await three.of(call)) ?? [])].sort()).toEqual(['sending', 'taken'])
  dead.clear()
})

test('[PUSH2] nothing is known of a ring of which no node has said anything, as of one that an earlier version began', async () => {
  const [one, two] = [onRedis(stores[0]!), onRedis(stores[1]!, 'two')]
  const call = crypto.randomUUID()
  expect(await two.of(call)).toBeUndefined()
  await one.add(call, [], now + 45_000)
  expect(await two.of(call)).toEqual([])
})

test('[PUSH2] of one process it is known which calls it has not heard of, and what is over is forgotten', () => {
  const wakes = createMemoryWakes(clock)
  expect(wakes.of('call')).toBeUndefined()
  wakes.add('call', [], now + 1_000)
  expect(wakes.of('call')).toEqual([])
  now += 70_000
  wakes.add('another', [], now + 1_000)
  expect(wakes.of('call')).toBeUndefined()
})

test('[PUSH2] a Redis that was emptied takes nothing from what this node did, and one that is away holds nobody up', async () => {
  const redis = await startRedis()
  const store = createStore(redis.url, () => {})
  await store.ready()
  const wakes = onRedis(store)
  await wakes.add('call', ['a'], now + 45_000)
  await store.client.flushall()
  expect(await wakes.add('call', ['a', 'b'], now + 45_000)).toEqual(['b'])
  expect([...((await wakes.of('call')) ?? [])].sort()).toEqual(['a', 'b'])
  await redis.stop()
  expect(await wakes.add('call', ['b', 'c'], now + 45_000)).toEqual(['c'])
  expect(await wakes.of('call')).toEqual(['a', 'b', 'c'])
  store.close()
})
