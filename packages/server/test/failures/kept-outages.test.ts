import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { type AnsweredCall, type Call, type Place, participantOf, type Side } from '../../src/call/call.ts'
import { created, event, ringing } from '../../src/ports/call-store.fixture.ts'
import { newSessionId } from '../../src/ports/session-id.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { finish } from '../scenarios/calls/composition.ts'
import { Postgres } from '../support/postgres.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

const secondMs = 1_000
const hourMs = 3_600 * secondMs

let postgres: Postgres
let redis: RedisServer
beforeAll(async () => {
  ;[postgres, redis] = await Promise.all([Postgres.start(), startRedis()])
})
afterAll(() => Promise.all([postgres.dispose(), redis.stop()]))

test('[END3] a call that may last for days: an outage of more than a day ago still counts, and nobody is given up too soon', async () => {
  const url = await postgres.database()
  const service = await new Service({
    DATABASE_URL: url,
    REDIS_URL: redis.url,
    RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}`,
    RINGWIRE_MAX_CALL_MS: String(72 * hourMs),
  }).start()
  const { calls, close } = await openPostgres({ url })
  const now = Date.now()
  const since = now - 30 * hourMs
  const outages = [
    [since + 30 * secondMs, since + 600 * secondMs],
    [since + 630 * secondMs, now],
  ]
  const values = outages.map(([from = 0, to = 0]) => `(to_timestamp(${from / 1_000}), to_timestamp(${to / 1_000}))`)
  // A node that runs has read what was before: it does not ask for that again.
  await service.kill()
  await postgres.query(`INSERT INTO outages (began_at, ended_at) VALUES ${values.join()}`, url)
  await service.start()
  // Whose people had a minute of the service in these 30 hours, and whose had more than their two.
  const [waits, over] = [await lostSince(since), await lostSince(since - 10 * 60 * secondMs)]
  async function lostSince(at: number): Promise<Call> {
    const startedAt = at - hourMs
    const call = ringing(undefined, undefined, { startedAt, ringExpiresAt: startedAt + 45 * secondMs })
    await calls.transition(call, () => ({ steps: [created(call)] }))
    const { silenced: _, ...rest } = call
    const vacantOf = (side: Side): Place => {
      const sessionId = newSessionId(participantOf(call, side))
      return { state: 'vacant', sessionId, deviceId: null, node: 'before', settled: true, since: at }
    }
    const places = { callerPlace: vacantOf('caller'), calleePlace: vacantOf('callee') }
    const answered = {
      status: 'accepted',
      version: 2,
      acceptedAt: startedAt + 5 * secondMs,
      connectedAt: null,
    } as const
    const next: AnsweredCall = { ...rest, ...places, ...answered }
    await calls.transition(call, () => ({ steps: [{ call: next, event: event('accepted', at) }] }))
    return call
  }
  const statusOf = async ({ callUuid }: Call) => {
    const [row] = await postgres.query(`SELECT status FROM calls WHERE call_uuid = '${callUuid}'`, url)
    return row.status
  }
  await until('the one that is over ends', async () => (await statusOf(over)) === 'ended')
  expect(await statusOf(waits)).toBe('accepted')
  await close()
  await finish(service)
}, 240_000)
