import { afterAll, beforeAll } from 'bun:test'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'
import type { OpenSessions, SessionsHarness } from './session-parts.ts'
import { registerSessionsContract } from './sessions.ts'

type Open = (server: RedisDatabases, windows: Parameters<OpenSessions>[0]) => Promise<SessionsHarness>

/** The contract of sessions on Redis, with nodes that are opened on it. */
export function registerRedisContract(name: string, open: Open): void {
  let server: RedisDatabases
  beforeAll(async () => {
    server = await openRedisDatabases()
  })
  afterAll(() => server.stop())
  registerSessionsContract(name, (windows) => open(server, windows))
}
