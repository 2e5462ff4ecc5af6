import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import type { Call } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import { created, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { Postgres } from '../support/postgres.ts'
import { openHarness, type PostgresHarness } from './postgres-harness.ts'

/*
 * What happens to PostgreSQL happens to a real one here. Each worker drives one call, a step at a time, and asks again
 * after an error, as a client does. Every step has a name of its own: each has to be there once, whatever came between.
 */

const limitMs = 5000
/** The delay that a busy machine may add to a timer. */
const slackMs = 1500

let server: Postgres
let harness: PostgresHarness
beforeAll(async () => {
  server = await Postgres.start()
})
afterAll(() => server.dispose())
beforeEach(async () => {
  harness = await openHarness(server)
})
afterEach(() => harness.close())

/** A step that says who made it. */
function namedStep(call: Call, name: string): Step {
  const step = touched(call, name)
  return { ...step, event: { ...step.event, by: { userId: 'u', role: 'r', sessionId: name } } }
}

interface Work {
  acknowledged: number
  readonly failures: { unavailable: number; unknown: number }
  /** Longest time until an answer of any kind, in ms. */
  longest: number
  readonly calls: Call[]
  stop(): Promise<void>
}

function startWork(stores: readonly CallStore[], workers: number): Work {
  const work = { acknowledged: 0, failures: { unavailable: 0, unknown: 0 }, longest: 0, calls: [] as Call[] }
  let stopped = false
  async function attempt(store: CallStore, change: (store: CallStore) => unknown): Promise<boolean> {
    const startedAt = performance.now()
    try {
      await change(store)
      return true
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      work.failures[error.kind]++
      return false
    } finally {
      work.longest = Math.max(work.longest, performance.now() - startedAt)
    }
  }
  async function worker(index: number): Promise<void> {
    const call = ringing()
    work.calls.push(call)
    const store = (at: number) => stores[(index + at) % stores.length] as CallStore
    const create = (to: CallStore) =>
      to.transition(call, (now) => ({ steps: now === undefined ? [created(call)] : [] }))
    for (let at = 0; !(await attempt(store(at), create)); at++) await Bun.sleep(10)
    for (let step = 2; !stopped; step++) {
      const name = `${call.callUuid}/${step}`
      const change = (to: CallStore) =>
        to.transition(call, (now) => {
          const found = there(now)
          return { steps: found.callerPlace.sessionId === name ? [] : [namedStep(found, name)] }
        })
      for (let at = step; !(await attempt(store(at), change)); at++) await Bun.sleep(10)
      work.acknowledged++
    }
  }
  const running = Promise.all(Array.from({ length: workers }, (_, index) => worker(index)))
  return Object.assign(work, {
    async stop() {
      stopped = true
      await running
    },
  })
}

/** Every acknowledged step is there, none twice, and the row is that of the last one. */
async function check(work: Work): Promise<void> {
  const sql = new SQL({ url: harness.url, max: 1 })
  let written = 0
  for (const call of work.calls) {
    const rows: { version: number; name: string | null; stored: number }[] = await sql.unsafe(
      `SELECT call_events.version, by_session_id AS name, calls.version AS stored
       FROM calls JOIN call_events ON call_events.call_id = calls.id WHERE call_uuid = $1 ORDER BY 1`,
      [call.callUuid],
    )
    expect([...rows].map((row) => row.version)).toEqual(Array.from(rows, (_, index) => index + 1))
    expect([...rows].slice(1).map((row) => row.name)).toEqual(
      Array.from(rows, (_, index) => `${call.callUuid}/${index + 1}`).slice(1),
    )
    expect(rows.at(-1)?.stored).toBe(rows.length)
    written += rows.length - 1
  }
  await sql.close()
  expect(written).toBe(work.acknowledged)
}

describe('PostgreSQL and its faults', () => {
  test('connections are terminated again and again', async () => {
    const work = startWork([harness.store()], 64)
    let terminated = 0
    // As many as it takes, however long a busy machine needs for them.
    for (const least = performance.now() + 6000; terminated <= 100 || performance.now() < least; ) {
      await Bun.sleep(Math.random() * 60)
      terminated += await server.terminateBackends(harness.database)
    }
    await work.stop()
    await check(work)
    expect(work.failures.unknown).toBeGreaterThan(0)
    expect(work.longest).toBeLessThan(soon(limitMs + slackMs))
  }, 240_000)

  test('the server is killed and started again, three times', async () => {
    const work = startWork([harness.store()], 64)
    for (let round = 0; round < 3; round++) {
      await Bun.sleep(500)
      await server.kill()
      await Bun.sleep(300)
      await server.up()
    }
    const before = work.acknowledged
    await until('1,000 more are acknowledged', () => work.acknowledged >= before + 1000)
    await work.stop()
    await check(work)
    expect(work.longest).toBeLessThan(soon(limitMs + slackMs))
  }, 240_000)

  test('the server stands still for 20 s: nothing hangs, and then it goes on', async () => {
    const work = startWork([harness.store()], 32)
    await until('500 are acknowledged', () => work.acknowledged >= 500)
    server.freeze('SIGSTOP')
    const startedAt = performance.now()
    const nobody = { product: 'p', role: 'r', userId: 'u' }
    const reads = await Promise.allSettled([
      harness.store().tryWrite(),
      harness.store().load(ringing()),
      harness.store().history({ participant: nobody, limit: 1, after: undefined }),
      harness.stores().products.settings('p'),
    ])
    for (const read of reads) expect(read).toMatchObject({ status: 'rejected', reason: { kind: 'unavailable' } })
    expect(performance.now() - startedAt).toBeLessThan(soon(limitMs + slackMs))
    await Bun.sleep(20_000 - (performance.now() - startedAt))
    server.freeze('SIGCONT')
    const before = work.acknowledged
    await until('500 more are acknowledged', () => work.acknowledged >= before + 500)
    await work.stop()
    await check(work)
    expect(work.failures.unknown).toBeGreaterThan(0)
    expect(work.longest).toBeLessThan(soon(limitMs + slackMs))
  }, 240_000)

  test('the server has no connection left for it: refused within the limit, and then it goes on', async () => {
    await server.query('CREATE ROLE tenant LOGIN')
    await server.query('CREATE DATABASE tenant OWNER tenant')
    await harness.close()
    harness = await openHarness(server, { url: server.url('tenant').replace('ringwire@', 'tenant@') })
    const work = startWork([harness.store()], 8)
    await until('100 are acknowledged', () => work.acknowledged >= 100)
    await server.query('ALTER ROLE tenant CONNECTION LIMIT 0')
    await until('its connections are ended', async () => (await server.terminateBackends('tenant')) === 0)
    const { acknowledged } = work
    const error = await Promise.resolve(harness.store().tryWrite()).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ kind: 'unavailable' })
    expect(String(error)).toContain('53300')
    expect(work.acknowledged).toBe(acknowledged)
    await server.query('ALTER ROLE tenant CONNECTION LIMIT -1')
    await until('100 more are acknowledged', () => work.acknowledged >= acknowledged + 100)
    await work.stop()
    await check(work)
    expect(work.longest).toBeLessThan(soon(limitMs + slackMs))
  }, 240_000)

  test('[HEALTH1] a database that may only be read takes no write; one that may grows by none of them', async () => {
    const store = harness.store()
    for (let i = 0; i < 300; i++) await store.tryWrite()
    const [{ size }] = await server.query("SELECT pg_relation_size('readiness')::int AS size", harness.url)
    expect(size).toBeLessThanOrEqual(2 * 8192)
    const setReadOnly = async (value: string) => {
      await server.query(`ALTER DATABASE ${harness.database} SET default_transaction_read_only = ${value}`)
      await until('connections are ended', async () => (await server.terminateBackends(harness.database)) === 0)
    }
    await setReadOnly('on')
    const error = await store.tryWrite().catch((reason: unknown) => reason)
    expect(error).toMatchObject({ kind: 'unavailable' })
    expect(String(error)).toContain('25006')
    await setReadOnly('off')
    await store.tryWrite()
  })

  test('a commit that waits too long is of unknown outcome, and nothing of it is written', async () => {
    const store = harness.store()
    const call = ringing()
    await store.transition(call, () => ({ steps: [created(call)] }))
    const blocker = new SQL({ url: harness.url, max: 1 })
    const holding = blocker.begin(async (sql) => {
      await sql.unsafe(`SELECT FROM calls WHERE call_uuid = '${call.callUuid}' FOR UPDATE`)
      const startedAt = performance.now()
      const error = await Promise.resolve(
        store.transition(call, (now) => ({ steps: [touched(there(now), 'late')] })),
      ).catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(StoreError)
      expect(performance.now() - startedAt).toBeLessThan(soon(limitMs + slackMs))
    })
    await holding
    await blocker.close()
    expect(['session-1', 'late']).toContain(there(await store.load(call)).callerPlace.sessionId)
    await store.transition(call, (now) => ({ steps: [touched(there(now), 'again')] }))
    expect(there(await store.load(call)).callerPlace.sessionId).toBe('again')
  }, 240_000)

  test('a value that PostgreSQL refuses hurts its own transition alone', async () => {
    const store = harness.store()
    const [good, bad] = [ringing(), { ...ringing(), contextId: 'a\u0000b' }]
    const results = await Promise.allSettled(
      [...Array.from({ length: 20 }, () => ringing()), bad, good].map((call) =>
        store.transition(call, () => ({ steps: [created(call)] })),
      ),
    )
    expect(results.map(({ status }) => status)).toEqual([...Array(20).fill('fulfilled'), 'rejected', 'fulfilled'])
    const rejected = results[20] as PromiseRejectedResult
    expect(rejected.reason).not.toBeInstanceOf(StoreError)
    expect(String(rejected.reason)).not.toContain(bad.contextId)
  })
})
