import { expect, test } from 'bun:test'
import { candidate } from '@ringwire/testkit/flows'
import { hangUp, stopAll } from './people.ts'
import { appendOnlyWorld, callBehindLoss } from './truncated.ts'
import { insist } from './world.ts'

const world = appendOnlyWorld()

test('[RES2] who comes back as a new session, for its log was lost, gets what its peer on the other node says', async () => {
  const { one } = world()
  const { pair, call, before } = await callBehindLoss(world(), true)
  const hello = await pair.callee.connect(before)
  expect(hello.data).toMatchObject({ recovered: false, active_calls: [{ call_uuid: call, holds_place: true }] })
  expect(hello.data.epoch).not.toBe(before?.epoch)
  await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 31))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':31'))
  await hangUp(one, pair, call)
  stopAll(pair)
}, 240_000)
