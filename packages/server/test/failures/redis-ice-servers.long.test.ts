import { expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { soon, until } from '@ringwire/testkit/patience'
import { connectExtended } from '../support/extended-flows.ts'
import { becomesReady, worldFor } from './world.ts'

/** TURN credentials that run out while Redis is away. */
const world = worldFor({
  env: { RINGWIRE_TURN_URLS: 'turn:127.0.0.1:3478', RINGWIRE_TURN_SECRET: 'north', RINGWIRE_TURN_TTL_S: '10' },
})

test('[EXT5] credentials that could not be pushed when they were due are pushed soon after Redis is back', async () => {
  const { one, two, redis } = world()
  const ann = await connectExtended(one, { user_id: someone('ann'), role: 'customer' })
  // From now on it is in, and it has heard of its call.
  await ann.request('test.unknown', {})
  // Eight of ten seconds after the token; what fails before is something else.
  const due = Date.now() + 7_500
  const hasFailed = (line: string) => line.includes('"a connection failed"') && Date.parse(JSON.parse(line).time) > due
  await redis.kill()
  // A line of a kind is written once in 10 s, and what failed before may have had it [LOG2].
  await until('they were due', () => one.log.split('\n').some(hasFailed), 30_000)
  const since = performance.now()
  await redis.restart()
  await ann.next('ice.servers')
  // Not when the next ones are due, 8 s later.
  expect(performance.now() - since).toBeLessThan(soon(7_000))
  await becomesReady(one, two)
  ann.stop()
}, 240_000)
