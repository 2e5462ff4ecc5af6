import { expect, test } from 'bun:test'
import { acceptedCall, someone } from '@ringwire/testkit/flows'
import { connectExtended } from '../support/extended-flows.ts'
import { errorCode, recordOf } from '../support/sessions.ts'
import { flush } from './lost-keys.ts'
import { worldFor } from './world.ts'

/** Redis knows nothing any more of a socket that is there, and its node may not have noticed yet. */
const world = worldFor()

/** A call whose caller is on the first node. */
async function callOf(more: object) {
  const { one } = world()
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const asCaller = { user_id: callerId, role: 'customer', ...more }
  const [caller, callee] = await Promise.all([one.connect(asCaller), one.connect({ user_id: calleeId, role: 'agent' })])
  const call = await acceptedCall({ caller, callee, calleeId })
  return { asCaller, caller, callee, calleeId, call }
}

/** If its node has noticed, nobody can know for a moment: then nothing is done, and the test asks again. */
async function once(ask: () => Promise<string | undefined>): Promise<string | undefined> {
  let code = await ask()
  while (code === 'SERVICE_UNAVAILABLE') code = await ask()
  return code
}

test('[PLACE3] [PLACE4] Redis is emptied, and another session asks for the place: the node that the place names is asked', async () => {
  const { one, two, redis } = world()
  for (let round = 0; round < 5; round++) {
    const { asCaller, caller, callee, call } = await callOf({})
    const tab = await two.connect(asCaller)
    expect(await errorCode(tab, 'call.end', { call_uuid: call })).toBe('CALL_NOT_PARTICIPANT')
    await flush(redis)
    expect(await once(() => errorCode(tab, 'call.end', { call_uuid: call }))).toBe('CALL_NOT_PARTICIPANT')
    expect(await recordOf(one, asCaller, call)).toMatchObject({ status: 'accepted' })
    expect(await errorCode(caller, 'call.end', { call_uuid: call })).toBeUndefined()
    await Promise.all([caller, tab, callee].map((client) => client.die()))
  }
}, 240_000)

test('[PLACE3] [PLACE4] Redis is emptied, and a session of the same device arrives on the other node: the place stays', async () => {
  const { two, redis } = world()
  for (let round = 0; round < 5; round++) {
    const { asCaller, caller, callee, call } = await callOf({ device_id: 'phone' })
    await flush(redis)
    const second = await connectExtended(two, asCaller)
    await second.settle()
    expect(second.hello?.data.active_calls).toMatchObject([{ call_uuid: call, holds_place: false }])
    const ends = async () => (await second.request('call.end', { call_uuid: call })).error?.code
    expect(await once(ends)).toBe('CALL_NOT_PARTICIPANT')
    expect(await errorCode(caller, 'call.end', { call_uuid: call })).toBeUndefined()
    second.stop()
    await Promise.all([caller, callee].map((client) => client.die()))
  }
}, 240_000)
