import { expect, test } from 'bun:test'
import { becomesReady, becomesUnready, inTime, worldFor } from './world.ts'

const world = worldFor()

test('[LOG1] the history cannot be read while PostgreSQL is away: 500 in time, and no line of level error', async () => {
  const { one, two, postgres } = world()
  const token = await one.token({ user_id: 'somebody' })
  // The service closes a connection that was idle for 10 s, perhaps just when it is used again.
  const asked = { headers: { Authorization: `Bearer ${token}` }, keepalive: false }
  await postgres.kill()
  await becomesUnready('database', one, two)
  const response = await inTime(fetch(`${one.url}/v1/calls/history`, asked))
  expect(response.status).toBe(500)
  expect(await response.json()).toMatchObject({ success: false, error: { code: 'CALL_HISTORY_FAILED' } })
  expect(one.log).not.toContain('"level":"error"')
  await postgres.up()
  await becomesReady(one, two)
  expect((await fetch(`${one.url}/v1/calls/history`, asked)).status).toBe(200)
}, 240_000)
