import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Master } from '../../src/cluster/directory.port.ts'
import { newSessionId } from '../../src/ports/session-id.ts'
import { somebody } from '../../src/ports/sessions.fixture.ts'
import { createStore, type Store } from '../../src/stores/redis/connection.ts'
import { createRedisDirectory } from '../../src/stores/redis/directory.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

let server: RedisServer
let store: Store
beforeAll(async () => {
  server = await startRedis()
  store = createStore(server.url, () => {})
  await store.ready()
})
afterAll(async () => {
  store.close()
  await server.stop()
})

/** A replica that is promoted keeps what it has, and gets a name of its own. */
async function promote(): Promise<void> {
  await store.client.replicaof('127.0.0.1', 1)
  await store.client.replicaof('NO', 'ONE')
}

test('[PING1] a node that takes a session over takes over neither its socket nor the doubt about it', async () => {
  const directory = createRedisDirectory(store, 'two')
  const id = newSessionId(somebody())
  await store.client.hset(rowKey(id), { o: 'one', f: '1', c: 'state', k: '1', u: '1' })
  expect(await directory.row(id)).toMatchObject({ owner: 'one', hasSocket: true, isUnsure: true })
  expect(await directory.claim(id, '1')).toMatchObject({ fence: 2 })
  expect(await directory.row(id)).toMatchObject({ owner: 'two', hasSocket: false, isUnsure: false })
})

test('[RES4] a session is taken by a row of another server only where all nodes have written there, and gets a fence above all others', async () => {
  const directory = createRedisDirectory(store, 'two')
  const ids = [newSessionId(somebody()), newSessionId(somebody()), newSessionId(somebody())] as const
  const originOf = async () => ((await directory.masters()) as [Master])[0].origin
  const [old, written, taken] = ids
  const before = await originOf()
  for (const id of ids) await store.client.hset(rowKey(id), { o: 'one', f: '1', c: 'state', r: before })
  const freshFence = Date.now()
  // Its owner wrote it here.
  expect(await directory.claim(taken, '1', { origin: undefined, freshFence })).toMatchObject({
    fence: 2,
    isWhole: true,
  })
  await promote()
  const origin = await originOf()
  await store.client.hset(rowKey(written), { r: origin })
  for (const known of [undefined, before])
    expect(await directory.claim(old, '1', { origin: known, freshFence })).toBe('unsure')
  // Its owner was faster.
  expect(await directory.claim(written, '1', { origin, freshFence })).toBeUndefined()
  expect(await directory.row(old)).toMatchObject({ owner: 'one', fence: '1' })
  expect(await directory.claim(old, '1', { origin, freshFence })).toMatchObject({ fence: freshFence, isWhole: false })
  expect(await directory.row(old)).toMatchObject({ owner: 'two', fence: String(freshFence) })
})

test('[END3] what a node had said to a server counts no more once that server has begun again, or took over', async () => {
  const directory = createRedisDirectory(store, 'one')
  const [{ marker, origin }] = (await directory.masters()) as [Master]
  expect(await directory.said(marker)).toBeNull()
  await directory.say(marker, origin)
  expect(await directory.said(marker)).toBe(origin)
  await promote()
  expect(await directory.say(marker, '')).toEqual(new Map([['one', origin]]))
  expect(await directory.said(marker)).toBeNull()
})

test('[RES3] of a server that was emptied one node makes up the sessions, until another takes that over, or nobody has to', async () => {
  await store.client.flushall()
  const [one, two, three] = ['one', 'two', 'three'].map((node) => createRedisDirectory(store, node))
  const [{ marker, origin }] = (await one!.masters()) as [Master]
  expect(await Promise.all([one!.maker(marker), two!.maker(marker)])).toEqual(['one', 'one'])
  await one!.say(marker, origin)
  await two!.say(marker, origin)
  // Only one of those who saw that it died.
  expect([await two!.maker(marker, 'one'), await three!.maker(marker, 'one')]).toEqual(['two', 'two'])
  await two!.made(marker)
  expect([await two!.maker(marker), await three!.maker(marker, 'two')]).toEqual([undefined, undefined])
})

test('[RES4] a node that serves says its word on a server that was emptied: nobody makes up its sessions', async () => {
  await store.client.flushall()
  const [one, two] = ['one', 'two'].map((node) => createRedisDirectory(store, node))
  const [{ marker, origin }] = (await one!.masters()) as [Master]
  expect(await two!.maker(marker)).toBe('two')
  await two!.say(marker, origin, { isForced: true })
  expect(await two!.maker(marker)).toBe('two')
  await one!.say(marker, origin, { serves: true })
  expect(await two!.maker(marker)).toBeUndefined()
})
