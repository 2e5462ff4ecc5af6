import { expect, test } from 'bun:test'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { openPostgres } from '../../src/adapters/postgres/open.ts'
import type { AnsweredCall, Place } from '../../src/call/call.ts'
import { created, event, ringing } from '../contracts/calls.ts'
import { Postgres } from '../support/postgres.ts'

const many = 120
/** Each way: with so many calls a start takes several sweeps. */
const wayMs = 20

const vacant = (since: number): Place => {
  const sessionId = crypto.randomUUID()
  return { state: 'vacant', sessionId, deviceId: null, node: 'before', settled: true, since }
}

test('[END3] [RES3] a service that was away for an hour starts on a slow store: no call ends before its people had their time', async () => {
  const postgres = await Postgres.start()
  const url = await postgres.database()
  const before = await openPostgres({ url })
  const startedAt = Date.now() - 3_600_000
  const lostAt = startedAt + 9_000
  await Promise.all(
    Array.from({ length: many }, async () => {
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
  slow.onLink = (link) => link.delay(wayMs)
  await slow.start()
  const through = new URL(url)
  through.port = String(slow.port)
  const service = await new Service({ DATABASE_URL: through.href }).start()
  const rows = await postgres.query('SELECT status, count(*)::int AS n FROM calls GROUP BY status', url)
  expect(rows).toEqual([{ status: 'accepted', n: many }])
  await service.dispose()
  await slow.stop()
  await postgres.dispose()
}, 240_000)
