import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisCopies } from '../../src/stores/redis/copies.ts'
import { createRedisDirectory } from '../../src/stores/redis/directory.ts'
import { startRedis } from '../support/redis.ts'
import { registerCopiesContract } from './copies.ts'

registerCopiesContract('redis', async () => {
  const server = await startRedis()
  const store = createStore(server.url, () => {})
  await store.ready()
  return {
    of: (node) => ({ copies: createRedisCopies(store, node), directory: createRedisDirectory(store, node) }),
    async close() {
      store.close()
      await server.stop()
    },
  }
})
