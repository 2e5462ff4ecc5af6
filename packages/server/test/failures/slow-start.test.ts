import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { SQL } from 'bun'
import { type AnsweredCall, type Call, type Place, participantOf, type Side } from '../../src/call/call.ts'
import { created, event, ringing } from '../../src/ports/call-store.fixture.ts'
import { newNodeName } from '../../src/ports/node-name.ts'
import { newSessionId } from '../../src/ports/session-id.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { Postgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'

const many = 120
/** Each way: with this many calls a start takes several sweeps. */
const wayMs = 20

const vacantOf = (call: Call, side: Side, since: number): Place => {
  const sessionId = newSessionId(participantOf(call, side))
  return { state: 'vacant', sessionId, deviceId: null, node: 'before', settled: true, since }
}

/** A store that is slow, with calls of an hour ago. */
async function slowStore(count: number, delayMs: number) {
  const postgres = await Postgres.start()
  const url = await postgres.database()
  const before = await openPostgres({ url })
  const startedAt = Date.now() - 3_600_000
  const lostAt = startedAt + 9_000
  await Promise.all(
    Array.from({ length: count }, async () => {
      const call = ringing(undefined, undefined, { startedAt, ringExpiresAt: startedAt + 45_000 })
      await before.calls.transition(call, () => ({ steps: [created(call)] }))
      const { silenced: _, ...rest } = call
      const places = { callerPlace: vacantOf(call, 'caller', lostAt), calleePlace: vacantOf(call, 'callee', lostAt) }
      const next: AnsweredCall = {
        ...{ ...rest, ...places, status: 'accepted', version: 2, acceptedAt: startedAt + 5_000, connectedAt: null },
      }
      await before.calls.transition(call, () => ({ steps: [{ call: next, event: event('accepted', lostAt) }] }))
    }),
  )
  await before.close()
  const slow = new TcpProxy(url)
  slow.onLink = (link) => link.delay(delayMs)
  await slow.start()
  const through = new URL(url)
  through.port = String(slow.port)
  // The health check asks it again and again.
  const sql = new SQL({ url, max: 1 })
  return {
    url,
    through: through.href,
    ask: (statement: string) => sql.unsafe(statement),
    async stop() {
      await sql.close()
      await slow.stop()
      await postgres.dispose()
    },
  }
}

/** A service starts on it; answers what it left of the calls, once it listens. */
async function startSlowly(count: number, delayMs: number, env: Record<string, string> = {}) {
  const { through, ask, stop } = await slowStore(count, delayMs)
  const service = await new Service({ ...env, DATABASE_URL: through }).start()
  return {
    ask,
    left: await ask('SELECT status, count(*)::int AS n FROM calls GROUP BY status'),
    async stop() {
      await service.dispose()
      await stop()
    },
  }
}

test('[END3] [RES3] a service that was away for an hour starts on a slow store: no call ends before its people had their time', async () => {
  const { left, stop } = await startSlowly(many, wayMs)
  expect(left).toEqual([{ status: 'accepted', n: many }])
  await stop()
}, 240_000)

test('[END3] [RES3] a start that takes longer than a lost time: every call waits for its people from when they can come back', async () => {
  const [count, lostMs] = [300, 1_500]
  const { ask, stop } = await startSlowly(count, 2 * wayMs, { RINGWIRE_PEER_LOST_MS: String(lostMs) })
  await until('all are given up', async () => {
    const [{ n }] = (await ask('SELECT count(*)::int AS n FROM calls WHERE ended_at IS NOT NULL')) as [{ n: number }]
    return n === count
  })
  const [row] = await ask(`
    SELECT min(since)::float8 AS first, max(since)::float8 AS last, min(ended_at)::float8 AS ended
    FROM (SELECT ended_at, (caller_place::json->>'since')::float8 AS since FROM calls) AS calls`)
  const { first, last, ended } = row as { first: number; last: number; ended: number }
  // The first clock would have been over before the last call was taken over, and so before anybody was let in.
  expect(last - first).toBeGreaterThan(lostMs)
  expect(ended - last).toBeGreaterThanOrEqual(lostMs)
  await stop()
}, 240_000)

test('[END3] [RES3] of two nodes that start the later one is there first: to it, too, nobody could come back before', async () => {
  const lostMs = 3_000
  const [{ url, through, ask, stop }, redis] = await Promise.all([slowStore(300, 2 * wayMs), startRedis()])
  const env = {
    REDIS_URL: redis.url,
    RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}`,
    RINGWIRE_PEER_LOST_MS: String(lostMs),
  }
  // The node that had these calls was there for the last time an hour ago.
  await ask(`INSERT INTO nodes (name, beats, seen_at, ready_at)
    SELECT '${newNodeName('before', 0)}', 1, at, at FROM (SELECT now() - interval '1 hour' AS at) AS last`)
  const one = new Service({ ...env, DATABASE_URL: through, RINGWIRE_NODE_ID: 'one' })
  const two = new Service({ ...env, DATABASE_URL: url, RINGWIRE_NODE_ID: 'two' })
  const starting = one.start()
  // The clocks that the one took over first would have been over before the other one is there.
  await until(
    'they are over',
    async () => {
      const [{ at }] = (await ask(`
      SELECT min((caller_place::json->>'since')::float8) AS at FROM calls
      WHERE (caller_place::json->>'since')::float8 > extract(epoch FROM now() - interval '10 min') * 1000`)) as [
        { at: number | null },
      ]
      return at !== null && Date.now() - at > lostMs
    },
    30_000,
  )
  expect(one.url).toBe('')
  const startedAt = Date.now()
  await two.start()
  await until(
    'all are given up',
    async () => {
      const [{ n }] = (await ask('SELECT count(*)::int AS n FROM calls WHERE ended_at IS NULL')) as [{ n: number }]
      return n === 0
    },
    60_000,
  )
  const [{ ended }] = (await ask('SELECT min(ended_at)::float8 AS ended FROM calls')) as [{ ended: number }]
  expect(ended - startedAt).toBeGreaterThanOrEqual(lostMs)
  await starting
  await Promise.all([one.dispose(), two.dispose()])
  await Promise.all([stop(), redis.stop()])
}, 240_000)
