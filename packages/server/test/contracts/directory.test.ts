import { afterAll, beforeAll, expect, test } from 'bun:test'
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

test('[PING1] a node that takes a session over takes over neither its socket nor the doubt about it', async () => {
  const directory = createRedisDirectory(store, 'two')
  const id = newSessionId(somebody())
  await store.client.hset(rowKey(id), { o: 'one', f: '1', c: 'state', k: '1', u: '1' })
  expect(await directory.row(id)).toMatchObject({ owner: 'one', hasSocket: true, isUnsure: true })
  expect(await directory.claim(id, '1')).toMatchObject({ fence: 2 })
  expect(await directory.row(id)).toMatchObject({ owner: 'two', hasSocket: false, isUnsure: false })
})
