import { expect, test } from 'bun:test'
import type { CallEvent } from './effects.ts'
import { effectsWithout, effectsWithoutOutsider, hookBodyWithout } from './erase.ts'

const ben = { userId: 'ben', role: 'agent' }
const eva = { userId: 'eva', role: 'agent' }
const named = ({ userId, role }: typeof ben, display_name: string | null) => ({ user_id: userId, role, display_name })
const blank = { user_id: '', role: 'agent', display_name: null }

/** What the first step of a call says that Ben transferred to Eva. */
const effects = {
  notices: [
    {
      to: { place: 'rung', except: [] },
      event: 'call.ringing',
      data: { caller_user_id: 'ann', display_name: 'Ann', transferred_by: named(ben, 'Ben'), metadata: { a: 1 } },
    },
  ],
  peers: [
    {
      ...{ to: 'caller', event: 'call.transferring', needs: 'transfer' },
      data: { call_uuid: 'a', new_call_uuid: 'b', to: named(eva, null) },
    },
    { to: 'caller', event: 'call.peer_back', data: { call_uuid: 'a' } },
  ],
} as unknown as Pick<CallEvent, 'notices' | 'peers'>

test('[XFER1] [SRV2] who transferred a call, and to whom, is not told any more once it is erased', () => {
  const ofBen = effectsWithout(effects, 'callee', ben)
  expect(ofBen.notices[0]?.data).toMatchObject({ transferred_by: blank, display_name: 'Ann' })
  expect(ofBen.peers).toEqual(effects.peers ?? [])
  const ofOutsider = effectsWithoutOutsider(effects, ben)
  expect(ofOutsider.notices[0]?.data as unknown).toEqual({
    caller_user_id: 'ann',
    display_name: 'Ann',
    transferred_by: blank,
  })
  expect(ofOutsider.peers).toEqual(effects.peers ?? [])
  expect(effectsWithoutOutsider(effects, eva)).toEqual(effects)
  const ofEva = effectsWithout(effects, 'callee', eva)
  expect(ofEva.notices[0]?.data).toMatchObject({ transferred_by: named(ben, 'Ben') })
  expect(ofEva.peers?.map(({ data }) => data)).toMatchObject([{ to: blank }, { call_uuid: 'a' }])
})

test('[XFER1] [SRV2] a kept webhook names who transferred the call no more', () => {
  const data = {
    ...{ caller: { user_id: 'ann', role: 'customer' }, callee: named(eva, 'Eva'), by: null },
    ...{ transferred_by: named(ben, 'Ben'), metadata: { a: 1 }, quality: { caller: {}, callee: {} } },
  }
  const body = JSON.stringify({ type: 'call.ringing', data })
  expect(JSON.parse(hookBodyWithout(body, ben) ?? '{}').data).toEqual({
    ...data,
    transferred_by: blank,
    metadata: null,
  })
  expect(JSON.parse(hookBodyWithout(body, eva) ?? '{}').data).toMatchObject({
    callee: blank,
    transferred_by: named(ben, 'Ben'),
    quality: { caller: {}, callee: null },
  })
  expect(hookBodyWithout(body, { userId: 'eva', role: 'customer' })).toBeUndefined()
})

test('[GROUP1] [SRV2] a kept webhook names a member who was woken no more', () => {
  const { display_name: _, ...member } = named(ben, null)
  const data = {
    ...{ caller: { user_id: 'ann', role: 'customer' }, callee: { user_id: null, role: 'agent' }, by: null },
    ...{ member, metadata: { a: 1 } },
  }
  const body = JSON.stringify({ type: 'call.wake', data })
  const erased = JSON.parse(hookBodyWithout(body, ben) ?? '{}').data
  expect(erased).toEqual({ ...data, member: { user_id: '', role: 'agent' } })
  expect(hookBodyWithout(body, eva)).toBeUndefined()
})
