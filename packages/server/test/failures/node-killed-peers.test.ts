import { expect, test } from 'bun:test'
import { about, answeredCall } from '../support/extended-flows.ts'
import { pairOn, stopAll } from './people.ts'
import { becomesReady, worldFor } from './world.ts'

const world = worldFor()

test('[PEER1] [MEDIA1] a node is killed: its clients are away to who stays, and back on the other node, each told once', async () => {
  const { one, two } = world()
  const pair = await pairOn(one, two)
  const { caller, callee } = pair
  const call = await answeredCall(pair)
  await callee.request('call.media', { call_uuid: call, audio: true, video: false, screen: false })
  await caller.next('call.media', about(call))
  await one.kill()
  const { data } = await callee.next('call.peer_away', about(call))
  expect(Date.parse(data.ends_at) - Date.parse(data.since)).toBe(120_000)
  caller.url = two.url
  const hello = await caller.connect()
  expect(hello.data).toMatchObject({ recovered: true, active_calls: [{ call_uuid: call, holds_place: true }] })
  expect(hello.data.active_calls[0].peer.away).toBeUndefined()
  await callee.next('call.peer_back', about(call))
  await caller.next('call.media', about(call))
  await callee.settle()
  const heard = callee.events().filter((event) => event.startsWith('call.peer_'))
  expect(heard).toEqual(['call.peer_away', 'call.peer_back'])
  await one.start()
  await becomesReady(one)
  stopAll(pair)
}, 240_000)
