import { afterAll, beforeAll } from 'bun:test'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { openOne, openTwo } from './redis-harness.ts'
import { registerSessionsContract } from './sessions.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis(['--databases', '64'])
})
afterAll(() => server.stop())

registerSessionsContract('redis', (windows) => openOne(server, windows))
registerSessionsContract('redis, two nodes', (windows) => openTwo(server, windows))
