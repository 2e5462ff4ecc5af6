import { expect, test } from 'bun:test'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { openPostgres } from '../../src/adapters/postgres/open.ts'
import type { AnsweredCall, Place } from '../../src/call/call.ts'
import { created, event, ringing } from '../contracts/calls.ts'
import { Postgres } from '../support/postgres.ts'
import { until } from './world.ts'

const many = 120
/** Each way: with so many calls a start takes several sweeps. */
const wayMs = 20

const vacant = (since: number): Place => {
  const sessionId = crypto.randomUUID()
  return { state: 'vacant', sessionId, deviceId: null, node: 'before', settled: true, since }
}

/** A service starts on a slow store with calls of an hour ago; answers what it left of them, once it listens. */
async function startSlowly(count: number, delayMs: number, env: Record<string, string> = {}) {
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
      const places = { callerPlace: vacant(lostAt), calleePlace: vacant(lostAt) }
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
  const service = await new Service({ ...env, DATABASE_URL: through.href }).start()
  const ask = (sql: string) => postgres.query(sql, url)
  return {
    ask,
    left: await ask('SELECT status, count(*)::int AS n FROM calls GROUP BY status'),
    async stop() {
      await service.dispose()
      await slow.stop()
      await postgres.dispose()
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
