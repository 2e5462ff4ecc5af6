// What the jobs of one run share, so that each does not start its own: a PostgreSQL, a Redis, a browser, and the files
// that a PostgreSQL of one's own begins with.
import { rmSync } from 'node:fs'
import { Postgres } from '../../packages/server/test/support/postgres.ts'
import { startSharedRedis } from '../../packages/server/test/support/redis.ts'
import { startSharedBrowser } from '../browser.mjs'
import { cpuSecondsOf } from './cpu-time.ts'

export interface SharedServers {
  /** The environment in which the jobs find them. */
  readonly env: Readonly<Record<string, string>>
  /** What the browsers have used until now. */
  browserCpuS(): number
  stop(): Promise<void>
}

/** `bothBrowsers`: the full one as well as the headless shell. */
export async function startSharedServers({ bothBrowsers = false } = {}): Promise<SharedServers> {
  const files = Postgres.makeTemplate()
  process.env.RINGWIRE_TEST_POSTGRES_FILES = files
  // Tests of what survives a crash have servers of their own.
  const [postgres, redis, browser, fullBrowser] = await Promise.all([
    Postgres.start({ fsync: 'off', max_connections: '500' }),
    startSharedRedis(),
    startSharedBrowser(),
    bothBrowsers ? startSharedBrowser('full') : undefined,
  ])
  return {
    env: {
      ...browser.env,
      ...fullBrowser?.env,
      RINGWIRE_TEST_POSTGRES: postgres.address,
      RINGWIRE_TEST_REDIS: redis.url,
      RINGWIRE_TEST_POSTGRES_FILES: files,
    },
    browserCpuS: () =>
      [browser, fullBrowser].reduce(
        (sum, each) => sum + (each?.pid === undefined ? 0 : (cpuSecondsOf(each.pid) ?? 0)),
        0,
      ),
    async stop() {
      await Promise.all([postgres.dispose(), redis.stop(), browser.stop(), fullBrowser?.stop()])
      rmSync(files, { recursive: true, force: true })
    },
  }
}
