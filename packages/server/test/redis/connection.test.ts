import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { createStore } from '../../src/stores/redis/connection.ts'
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
