import { expect, test } from 'bun:test'
import { connectedCall } from '../support/extended-flows.ts'
import { candidate } from '../support/flows.ts'
import { hangUp, pairOn, stopAll } from './people.ts'
import { appendOnly, restartTruncated } from './truncated.ts'
import { becomesReady, becomesUnready, insist, worldFor } from './world.ts'

const world = worldFor({ redisArgs: appendOnly })

test('[RES2] who comes back as a new session, for its log was lost, gets what its peer on the other node says', async () => {
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
  await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 31))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':31'))
  await hangUp(one, pair, call)
  stopAll(pair)
}, 30_000)
