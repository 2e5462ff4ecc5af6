import { expect, test } from 'bun:test'
import { inviteOf } from '../support/sessions.ts'
import { pairOn, stopAll } from './people.ts'
import { becomesUnready, insist, toldOf, worldFor } from './world.ts'

const world = worldFor()

test('[INV4] Redis comes back empty: whoever is invited the moment that a node has it again is rung, on whichever node', async () => {
  const { one, two, redis } = world()
  const pairs = await Promise.all(
    Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? pairOn(one, two) : pairOn(two, one))),
  )
  await Promise.all(pairs.flatMap(({ caller, callee }) => [caller.settle(), callee.settle()]))
  await redis.kill()
  await becomesUnready('redis', one, two)
  await redis.restart()
  const calls = await Promise.all(
    pairs.map(async ({ caller, calleeId }) => {
      const call = crypto.randomUUID()
      await insist(caller, 'call.invite', inviteOf(calleeId, { call_uuid: call }))
      return call
    }),
  )
  await Promise.all(
    pairs.map(({ callee }, i) => callee.next('call.ringing', ({ data }) => data.call_uuid === calls[i])),
  )
  for (const [i, { callee }] of pairs.entries()) expect(toldOf(callee, 'call.ringing', calls[i] ?? '')).toBe(1)
  stopAll(...pairs)
}, 240_000)
