import { afterAll, beforeAll } from 'bun:test'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'
import { openOne, openTwo } from './redis-harness.ts'
import { registerSessionsContract } from './sessions.ts'

let server: RedisDatabases
beforeAll(async () => {
  server = await openRedisDatabases()
})
afterAll(() => server.stop())

registerSessionsContract('redis', (windows) => openOne(server, windows))
registerSessionsContract('redis, two nodes', (windows) => openTwo(server, windows))
