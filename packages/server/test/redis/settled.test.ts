import { expect, test } from 'bun:test'
import { createStore } from '../../src/stores/redis/connection.ts'
import { resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { startRedis } from '../support/redis.ts'
import { createRedisSessions } from '../support/redis-sessions.ts'

test('who waits for a node that does not hear what it is told is told so after ten rounds', async () => {
  const server = await startRedis()
  const store = createStore(server.url, () => {})
  let isDeaf = false
  let rounds = 0
  const node = createRedisSessions({
    ...{ url: server.url, node: 'one', windowMs, resumeWindowMs, heardMs: 20 },
    store: {
      ...store,
      async run(name, keys, args) {
        if (!isDeaf || name !== 'post') return store.run(name, keys, args)
        rounds++
        return []
      },
    },
    onError: (error) => console.error(error),
  })
  try {
    await node.start()
    await node.settled()
    isDeaf = true
    const failure = await node.settled().catch((error) => error)
    expect([String(failure), rounds]).toEqual([expect.stringContaining('what it was told'), 10])
  } finally {
    await node.close()
    await server.stop()
  }
})
