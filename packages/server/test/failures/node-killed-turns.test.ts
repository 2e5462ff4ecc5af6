import { expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import { ask } from '../scenarios/backend/calls.ts'
import { clockMs } from '../support/clocks.ts'
import { connectExtended } from '../support/extended-flows.ts'
import { worldFor } from './world.ts'

const world = worldFor()

const turnMs = 5_000

test('[GROUP1] [RES3] a node that began a turn is killed: the turn ends in time all the same, and the next member is rung', async () => {
  const { one, two } = world()
  const [callerId, annId, benId, name] = ['caller', 'ann', 'ben', 'group'].map(someone) as [
    string,
    string,
    string,
    string,
  ]
  const group = { members: [annId, benId], strategy: 'in_turn', member_ring_ms: turnMs }
  expect((await ask(two, 'PUT', `groups/agent/${name}`, group)).status).toBe(200)
  const [ann, ben] = await Promise.all([annId, benId].map((user_id) => two.connect({ user_id, role: 'agent' })))
  const wish = { user_id: callerId, role: 'customer' }
  const caller = await connectExtended(one, wish)
  const began = performance.now()
  const invited = await caller.request('call.invite', { callee_role: 'agent', callee_group: name })
  const { call_uuid } = invited.data
  await ann?.next('call.ringing')
  await one.kill()
  expect((await ann?.next('call.cancelled'))?.data).toMatchObject({
    ...{ call_uuid, reason: 'next_member', status: 'ringing', ended_at: null },
  })
  await ben?.next('call.ringing')
  // The other node looks at all live calls.
  const lasted = performance.now() - began
  expect(lasted).toBeGreaterThan(turnMs - clockMs)
  expect(lasted).toBeLessThan(turnMs + soon(3_000))
  caller.url = two.url
  expect((await caller.connect()).data).toMatchObject({ recovered: true })
  ben?.send('call.accept', { call_uuid })
  await caller.next('call.accepted')
  caller.stop()
  await one.start()
}, 240_000)
