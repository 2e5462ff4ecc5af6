import { afterAll, beforeAll } from 'bun:test'
import { assembleScripts, type Store } from '../../src/adapters/redis/connection.ts'
import { openTwo } from '../contracts/redis-harness.ts'
import type { OpenSessions } from '../contracts/session-parts.ts'
import { registerSessionsContract } from '../contracts/sessions.ts'
import { readFixture, recordings } from '../fixtures/load.ts'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'

/** Nodes of two versions on one Redis: each runs the scripts of its own over what the other has written. */
let server: RedisDatabases
beforeAll(async () => {
  server = await openRedisDatabases()
})
afterAll(() => server.stop())

/** The code of then gave `open` no expiry of the token [WS5]; what is new elsewhere comes last, and is not looked at. */
function argsOfThen(name: string, args: readonly (string | number)[]): readonly (string | number)[] {
  return name === 'open' ? args.toSpliced(12, 1) : args
}

/** They write nothing, and answer more than they did [SRV2]: what is read of an answer is of the same version as the script. */
const readers: readonly string[] = ['live']

for (const version of recordings.redis) {
  const recorded: Record<string, string> = JSON.parse(readFixture(version, 'redis-scripts.json'))
  const scripts = assembleScripts((name) => recorded[name] ?? '')
  const ofThen = (store: Store): Store => ({
    ...store,
    run: (name, keys, args) =>
      // What it did not have it does not run.
      recorded[name] === undefined || readers.includes(name)
        ? store.run(name, keys, args)
        : (store.client.eval(scripts.get(name) ?? '', keys.length, ...keys, ...argsOfThen(name, args)) as ReturnType<
            Store['run']
          >),
  })
  const open: OpenSessions = (windows) => openTwo(server, windows, ofThen)
  registerSessionsContract(`redis, a node of ${version} and one of this build`, open, true)
}
