import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { assembleScripts, type Reply, type Store } from '../../src/adapters/redis/connection.ts'
import { openOne, openTwo } from '../contracts/redis-harness.ts'
import {
  numbersOf,
  type OpenSessions,
  openReady,
  pushes,
  resumeWindowMs,
  type SessionsHarness,
  windowMs,
} from '../contracts/session-parts.ts'
import { registerSessionsContract } from '../contracts/sessions.ts'
import { readFixture, recordings } from '../fixtures/load.ts'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'

/** Nodes of two versions on one Redis: each runs the scripts of its own over what the other has written. */
let server: RedisDatabases
beforeAll(async () => {
  server = await openRedisDatabases()
})
afterAll(() => server.stop())

/** The code of then gave `open` no expiry of the token [WS5] and no version of the client [SRV2]; what is new elsewhere comes last, and is not looked at. */
function argsOfThen(name: string, args: readonly (string | number)[]): readonly (string | number)[] {
  return name === 'open' ? args.toSpliced(12, 2) : args
}

/** They write nothing, and answer more than they did [SRV2]: what is read of an answer is of the same version as the script. */
const readers: readonly string[] = ['live']
/** Where the answer of a resume says which rings it proves, which that of then did not [TRACE1]. */
const ringsAt = 5

for (const version of recordings.redis) {
  const recorded: Record<string, string> = JSON.parse(readFixture(version, 'redis-scripts.json'))
  const scripts = assembleScripts((name) => recorded[name] ?? '')
  const ofThen = (store: Store): Store => ({
    ...store,
    async run(name, keys, args) {
      // What it did not have it does not run.
      if (recorded[name] === undefined || readers.includes(name)) return store.run(name, keys, args)
      const text = scripts.get(name) ?? ''
      const reply = (await store.client.eval(text, keys.length, ...keys, ...argsOfThen(name, args))) as Reply
      return name === 'resume' && reply[0] !== '' ? Object.assign([...reply], { [ringsAt]: [] }) : reply
    },
  })
  const open: OpenSessions = (windows) => openTwo(server, windows, ofThen)
  registerSessionsContract(`redis, a node of ${version} and one of this build`, open, true)

  describe(`what a node of ${version} and one of this build have taken of a session's requests`, () => {
    let isOfThen = true
    let harness: SessionsHarness
    beforeAll(async () => {
      // One after the other, on the same sessions.
      harness = await openOne(server, { windowMs, resumeWindowMs }, (store) => {
        const before = ofThen(store)
        return { ...store, run: (...command) => (isOfThen ? before : store).run(...command) }
      })
    })
    afterAll(() => harness.close())

    const requestOf = (n: number) => ({ ...pushes.relay('c', n), source: { sessionId: 'of-the-peer', n } })
    /** A session with a place, and what it is sent by a node of then or by one of this build. */
    async function begin(gate: boolean) {
      const { sessions, settled } = harness
      const { id, socket } = await openReady(sessions)
      await sessions.hold(id, 'c', true, gate, 2)
      return {
        async send(by: 'then' | 'now', ...ns: number[]) {
          isOfThen = by === 'then'
          for (const n of ns) await sessions.append(id, requestOf(n))
        },
        async open(by: 'then' | 'now', ...ns: number[]) {
          isOfThen = by === 'then'
          await sessions.openGate(id, 'c', ns.map(requestOf))
        },
        async heard() {
          await settled()
          return numbersOf(socket)
        },
      }
    }

    test('[EXT4] what was taken by one is not taken again by the other', async () => {
      const { send, heard } = await begin(false)
      await send('then', 1, 2, 4)
      await send('now', 2, 4, 7, 6)
      await send('then', 6, 7, 5, 9)
      // What it took alone, and what lies below that, counts as taken.
      await send('now', 9, 8, 7, 5, 4, 11, 10)
      await send('then', 10, 11)
      expect(await heard()).toEqual([1, 2, 4, 7, 6, 9, 11, 10])
    })

    test('[REL2] [EXT4] nor what went through a gate that one of them opened', async () => {
      for (const [first, second] of [
        ['then', 'now'],
        ['now', 'then'],
      ] as const) {
        const { send, open, heard } = await begin(true)
        await send(second, 5)
        await open(first, 1, 2)
        await open(second, 1, 2)
        await send(second, 1, 2, 5, 6)
        expect(await heard()).toEqual([1, 2, 5, 6])
      }
    })
  })
}
