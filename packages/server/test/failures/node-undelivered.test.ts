import { expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { answeredCall, ringingCall } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { hangUp, pairOn, stopAll } from './people.ts'
import { toldOf, worldWithGate } from './world.ts'

const { world, gate } = worldWithGate()

const aboutCall =
  (callUuid: string) =>
  ({ data }: { data: { call_uuid?: string } }) =>
    data?.call_uuid === callUuid

test('[EXT3] a node is killed between the commit and the news of it: the other one tells', async () => {
  const { one, two, postgres, databaseUrl } = world()
  const [ending, accepting, rejecting, inviting] = await Promise.all([
    pairOn(one, two),
    pairOn(two, one),
    pairOn(two, one),
    pairOn(one, two),
  ])
  const toEnd = await answeredCall(ending)
  const [toAccept, toReject] = await Promise.all([ringingCall(accepting), ringingCall(rejecting)])
  gate().stall()
  for (const [client, event, call_uuid] of [
    [ending.caller, 'call.end', toEnd],
    [accepting.callee, 'call.accept', toAccept],
    [rejecting.callee, 'call.reject', toReject],
  ] as const) {
    client.send(event, { call_uuid })
  }
  const statusOf = async (call: string) => {
    const [row] = await postgres.query(`SELECT status FROM calls WHERE call_uuid = '${call}'`, databaseUrl)
    return row?.status as string
  }
  await until('all is committed', async () => {
    const statuses = await Promise.all([toEnd, toAccept, toReject].map(statusOf))
    return statuses.join() === 'ended,accepted,rejected'
  })
  await one.kill()
  // Its connections end with it; what was held back is lost.
  gate().cut()
  const killedAt = performance.now()
  const told = [
    [ending.callee, 'call.ended', toEnd],
    [accepting.caller, 'call.accepted', toAccept],
    [rejecting.caller, 'call.rejected', toReject],
  ] as const
  await Promise.all(told.map(([client, event, call]) => client.next(event, aboutCall(call))))
  expect(performance.now() - killedAt).toBeLessThan(soon(8_000))
  // The one that answered comes back, and the call goes on.
  accepting.callee.url = two.url
  await accepting.callee.die()
  await accepting.callee.connect()
  await hangUp(two, accepting, toAccept)
  // A step that was not written is nobody's news.
  const late = crypto.randomUUID()
  inviting.caller.url = two.url
  await inviting.caller.die()
  await inviting.caller.connect()
  await inviting.caller.request('call.invite', inviteOf(inviting.calleeId, { call_uuid: late }))
  await inviting.callee.next('call.ringing', aboutCall(late))
  for (const [client, event, call] of told) expect([event, toldOf(client, event, call)]).toEqual([event, 1])
  stopAll(ending, accepting, rejecting, inviting)
}, 240_000)
