import { expect, spyOn, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { Redis } from 'ioredis'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisDirectory } from '../../src/stores/redis/directory.ts'
import { openRedisDatabases } from '../support/redis.ts'

test('a script is sent while those before it have no answer yet', async () => {
  const databases = await openRedisDatabases()
  const url = new URL(await databases.database())
  const proxy = await new TcpProxy(`http://${url.host}`).start()
  const store = createStore(`redis://${proxy.host}${url.pathname}`, (error) => console.error(error))
  try {
    await store.ready()
    let sent = 0
    proxy.last.observe('client', (bytes) => {
      sent += bytes.toString().split('evalsha').length - 1
    })
    proxy.last.stall('client')
    const answers: Promise<unknown>[] = []
    for (const each of [1, 2, 3]) {
      answers.push(store.run('row', [`row ${each}`], []))
      await until(`script ${each} is sent`, () => sent === each)
    }
    proxy.last.flow('client')
    expect(await Promise.all(answers)).toEqual([[], [], []])
  } finally {
    store.close()
    await proxy.stop()
    await databases.stop()
  }
})

test('what one tick asks for goes in one write, and all who ask whether the store is complete share a question', async () => {
  const databases = await openRedisDatabases()
  const store = createStore(await databases.database(), (error) => console.error(error))
  const scripts = async () => {
    const stats = await (store.client as Redis).info('commandstats')
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  }
  try {
    await store.ready()
    const directory = createRedisDirectory(store, 'one')
    const rows = () => Promise.all(Array.from({ length: 50 }, () => directory.rowsOf('participant')))
    const words = () => Promise.all(Array.from({ length: 50 }, () => directory.said('marker')))
    await rows()
    const before = await scripts()
    const writes = spyOn((store.client as Redis).stream, '_write')
    await Promise.all([rows(), words()])
    // Beside them the store loads its scripts.
    expect(writes.mock.calls.filter(([chunk]) => String(chunk).includes('evalsha')).length).toBe(1)
    expect((await scripts()) - before).toBe(51)
    await words()
    expect((await scripts()) - before).toBe(52)
  } finally {
    store.close()
    await databases.stop()
  }
})
