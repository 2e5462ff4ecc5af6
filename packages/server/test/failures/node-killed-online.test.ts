import { afterAll, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { ask } from '../scenarios/backend/calls.ts'
import { presenceTypes, toldOf } from '../scenarios/backend/online.ts'
import { flush } from './lost-keys.ts'
import { worldFor } from './world.ts'

const world = worldFor({ env: { RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' } })
let receiver: Receiver
beforeAll(async () => {
  receiver = await openReceiver()
})
afterAll(() => receiver.close())

test('[HOOK2] kill -9 of a node: who was there alone is offline, once; who is elsewhere is not, nor by an emptied Redis', async () => {
  const { one, two, redis } = world()
  const [dies, stays, moves, both] = ['dies', 'stays', 'moves', 'both'].map(someone) as [string, string, string, string]
  const agent = (user_id: string) => ({ user_id, role: 'agent' })
  const isTold = (userId: string, ...states: boolean[]) =>
    until(`${userId} is told as ${states}`, () => toldOf(receiver, userId).join() === states.join(), 40_000)
  await ask(two, 'POST', 'webhooks', { url: receiver.url, events: presenceTypes })
  for (const userId of [dies, moves, both]) await one.connect(agent(userId))
  for (const userId of [stays, both]) await two.connect(agent(userId))
  await Promise.all([dies, stays, moves, both].map((userId) => isTold(userId, true)))

  await flush(redis)
  const marker = someone('marker')
  const passing = await two.connect(agent(marker))
  await isTold(marker, true)
  passing.close()
  // An offline event because of Redis' loss would have come by now.
  await isTold(marker, true, false)
  expect([dies, stays, moves, both].map((userId) => toldOf(receiver, userId))).toEqual([[true], [true], [true], [true]])

  await one.kill()
  await two.connect(agent(moves))
  await isTold(dies, true, false)
  expect([stays, moves, both].map((userId) => toldOf(receiver, userId))).toEqual([[true], [true], [true]])
  // It has a row of its own again.
  await one.start()
  await one.connect(agent(dies))
  await isTold(dies, true, false, true)
}, 240_000)
