import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { answeredCall, connectedCall } from '../support/extended-flows.ts'
import { flush } from './lost-keys.ts'
import { hangUp, pairOn, stopAll } from './people.ts'
import { toldOf, worldFor } from './world.ts'

const world = worldFor()

test('[WS4] [RES3] all nodes stop and Redis is emptied: who was away hears how the call ended, and the others go on', async () => {
  const { one, two, redis, postgres, databaseUrl } = world()
  const [ending, staying] = await Promise.all([pairOn(one, two), pairOn(two, one)])
  const [toEnd, kept] = [await answeredCall(ending), await connectedCall(staying)]
  await ending.callee.die()
  await ending.caller.request('call.end', { call_uuid: toEnd })
  // As far as anybody knows.
  await until('everybody was told', async () => {
    const [left] = await postgres.query('SELECT count(*)::int AS count FROM outbox', databaseUrl)
    return left?.count === 0
  })
  await Promise.all([one.terminate(), two.terminate()])
  await flush(redis)
  await one.start()
  await two.start()
  const everybody = [ending.caller, ending.callee, staying.caller, staying.callee]
  // Nobody can prove what its session has got.
  for (const client of everybody) expect((await client.connect()).data).toMatchObject({ recovered: false })
  const ended = await ending.callee.next('call.ended', ({ data }) => data.call_uuid === toEnd)
  expect(ended.data).toMatchObject({ status: 'ended' })
  await hangUp(one, staying, kept)
  expect(toldOf(ending.callee, 'call.ended', toEnd)).toBe(1)
  stopAll(ending, staying)
}, 240_000)
