import { expect, test } from 'bun:test'
import { hangUp, stopAll } from './people.ts'
import { registerOutage } from './redis-outage.ts'
import { appendOnlyWorld, callBehindLoss, restartTruncated } from './truncated.ts'

const world = appendOnlyWorld()

registerOutage('comes back from a file without its end', world, {
  begin: ({ redis }) => redis.kill(),
  end: ({ redis }) => restartTruncated(redis),
})

test('[RES1] who was away meanwhile missed nothing: its log is in the memory of its node', async () => {
  const { one } = world()
  const { pair, call, before } = await callBehindLoss(world(), false)
  const hello = await pair.callee.connect(before)
  expect(hello.data).toMatchObject({ recovered: true, active_calls: [{ call_uuid: call, holds_place: true }] })
  await hangUp(one, pair, call)
  stopAll(pair)
}, 240_000)

test('[RES2] where its node is gone, too, nobody claims that it missed nothing: its copy ends too early', async () => {
  const { one } = world()
  const { pair, call, before } = await callBehindLoss(world(), true)
  const hello = await pair.callee.connect(before)
  expect(hello.data).toMatchObject({ recovered: false, active_calls: [{ call_uuid: call, holds_place: true }] })
  expect(hello.data.epoch).not.toBe(before?.epoch)
  await hangUp(one, pair, call)
  stopAll(pair)
}, 240_000)
