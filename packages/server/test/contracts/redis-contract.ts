import { afterAll, beforeAll } from 'bun:test'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'
import { type OpenSessions, resumeWindowMs, type SessionsHarness, windowMs } from './session-parts.ts'
import { registerSessionsContract } from './sessions.ts'
import { registerEmptiedRules } from './sessions-emptied.ts'

type Open = (server: RedisDatabases, windows: Parameters<OpenSessions>[0]) => Promise<SessionsHarness>

/** The contract of sessions on Redis, with nodes that are opened on it. */
export function registerRedisContract(name: string, open: Open): void {
  let server: RedisDatabases
  beforeAll(async () => {
    server = await openRedisDatabases()
  })
  afterAll(() => server.stop())
  registerSessionsContract(name, (windows) => open(server, windows))
  // Emptied for everybody: each test has a store of its own.
  registerEmptiedRules(name, () => open(server, { windowMs, resumeWindowMs }))
}
