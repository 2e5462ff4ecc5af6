import { expect, test } from 'bun:test'
import { connectedCall } from '../support/extended-flows.ts'
import { candidate } from '../support/flows.ts'
import { hangUp, pairOn, stopAll } from './people.ts'
import { registerOutage } from './redis-outage.ts'
import { appendOnly, restartTruncated } from './truncated.ts'
import { becomesReady, becomesUnready, worldFor } from './world.ts'

const world = worldFor({ redisArgs: appendOnly })

registerOutage('comes back from a file without its end', world, {
  begin: ({ redis }) => redis.kill(),
  end: ({ redis }) => restartTruncated(redis),
  losesLogs: true,
})

test('[RES2] who was away meanwhile is not told that it missed nothing: its log ends too early', async () => {
  const { one, two, redis } = world()
  const pair = await pairOn(one, two)
  const call = await connectedCall(pair)
  for (const client of [pair.caller, pair.callee]) {
    await client.request('webrtc.ice_candidate', candidate(call, 0))
  }
  for (let n = 1; n <= 30; n++) await pair.caller.request('webrtc.ice_candidate', candidate(call, n))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':30'))
  const before = pair.callee.point
  await pair.callee.die()
  await redis.kill()
  await becomesUnready('redis', one, two)
  await restartTruncated(redis)
  await becomesReady(one, two)
  const hello = await pair.callee.connect(before)
  expect(hello.data).toMatchObject({ recovered: false, active_calls: [{ call_uuid: call, holds_place: true }] })
  expect(hello.data.epoch).not.toBe(before?.epoch)
  await hangUp(one, pair, call)
  stopAll(pair)
}, 30_000)
