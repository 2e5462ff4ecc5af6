import { expect, test } from 'bun:test'
import { active, invited, onlineFake, rings, turn, uuid } from './environment.fixture.ts'
import type { Call } from './types.ts'

const support = { group: 'support', role: 'agent' }
const elsewhere = (seq: number, reason: string, status: string) => ({
  event: 'call.cancelled',
  data: { call_uuid: uuid(1), status, reason, by: null, ended_at: null },
  seq,
})
const ringsFor = (seq: number) => {
  const { data, ...push } = rings(seq)
  return { ...push, data: { ...data, callee_group: 'support' } }
}

/** A member of the group, and what rang there. */
async function member() {
  const fake = await onlineFake({ can: ['group'] })
  const incoming: Call[] = []
  fake.client.on('incoming', (call) => incoming.push(call))
  return { ...fake, fake, incoming }
}

test('[GROUP1] a group is called by its name, and its member is known from the accept on', async () => {
  const { client, socket } = await onlineFake()
  const call = client.call({ ...support, displayName: 'Support' })
  expect(socket.sent.at(-1)?.data).toMatchObject({ callee_role: 'agent', callee_group: 'support' })
  expect(socket.sent.at(-1)?.data).not.toHaveProperty('callee_user_id')
  expect(call).toMatchObject({ group: 'support', peer: { userId: null, role: 'agent', displayName: 'Support' } })
  // Called twice, it is one call.
  expect(client.call(support)).toBe(call)
  socket.replies('call.invited', { ...invited, call_uuid: call.callUuid })
  expect(client.call({ userId: 'support', role: 'agent' })).not.toBe(call)
  expect(client.call({ group: 'support', role: 'doctor' })).not.toBe(call)
  const data = { call_uuid: call.callUuid, status: 'accepted', display_name: 'Ben', callee_user_id: 'ben' }
  socket.says({ event: 'call.accepted', data, seq: 1 })
  expect(call).toMatchObject({ group: 'support', peer: { userId: 'ben', role: 'agent', displayName: 'Ben' } })
})

test('[GROUP1] exactly one of a person and a group is called', async () => {
  const { client } = await onlineFake()
  for (const wish of [{ role: 'agent' }, { ...support, userId: 'ben' }, { group: 'support' }, { userId: 'ben' }])
    expect(() => client.call(wish as never)).toThrow('must be given')
})

test('[GROUP1] it stops at a member when another one is next, and rings there again when its turn comes again', async () => {
  const { socket, incoming, client } = await member()
  socket.says(ringsFor(1))
  expect(incoming[0]).toMatchObject({ group: 'support', peer: { userId: 'agent' } })
  socket.says(elsewhere(2, 'next_member', 'ringing'))
  expect(incoming[0]?.state).toMatchObject({ name: 'over', status: 'ringing', reason: 'next_member' })
  expect(client.calls).toEqual([])
  socket.says(ringsFor(3))
  expect(client.calls).toEqual([incoming[1] as Call])
  socket.says(elsewhere(4, 'answered_elsewhere', 'accepted'))
  expect(incoming[1]?.state).toMatchObject({ name: 'over', status: 'accepted', reason: 'answered_elsewhere' })
  socket.says(ringsFor(5))
  expect(incoming.length).toBe(2)
})

test('[GROUP1] a member that was away while its turn passed rings again at the next one', async () => {
  const { fake, incoming } = await member()
  fake.socket.says(ringsFor(1))
  fake.socket.ends(1006)
  await fake.pass(500)
  fake.socket.ok({ session_id: 's2' })
  expect(incoming[0]?.state).toMatchObject({ name: 'over', reason: 'sdk.lost' })
  fake.socket.says(ringsFor(1))
  expect(incoming[1]?.state.name).toBe('ringing')
})

test('[GROUP1] an accept that comes to the service in the next turn answers what rings then', async () => {
  const { fake, incoming, client } = await member()
  fake.socket.says(ringsFor(1))
  const accepted = incoming[0]!.accept()
  fake.socket.says(elsewhere(2, 'next_member', 'ringing'))
  fake.socket.says(ringsFor(3))
  expect(incoming.map(({ state }) => state.name)).toEqual(['over', 'ringing'])
  fake.socket.replies('call.ack', { call_uuid: uuid(1), status: 'accepted' }, 'call.accept')
  await accepted
  expect(incoming.map(({ state }) => state.name)).toEqual(['over', 'accepted'])
  expect(client.calls).toEqual([incoming[1]!])
})

test('[GROUP1] an accept that came too late for its turn leaves the next one alone', async () => {
  const { fake, incoming } = await member()
  fake.socket.says(ringsFor(1))
  const accepted = incoming[0]!.accept()
  fake.socket.says(elsewhere(2, 'next_member', 'ringing'))
  fake.socket.says(ringsFor(3))
  fake.socket.fails('CALL_INVALID_STATE', { status: 'ringing' }, 'call.accept')
  await expect(accepted).rejects.toMatchObject({ code: 'CALL_INVALID_STATE' })
  expect(incoming[1]!.state).toMatchObject({ name: 'ringing', answering: false })
})

test('[GROUP1] whoever declined does not hear the ring of a turn that comes before the decline does', async () => {
  const { fake, incoming } = await member()
  fake.socket.says(ringsFor(1))
  void incoming[0]!.reject()
  fake.socket.says(elsewhere(2, 'next_member', 'ringing'))
  fake.socket.says(ringsFor(3))
  fake.socket.replies('call.ack', { call_uuid: uuid(1), status: 'ringing' }, 'call.reject')
  expect(incoming).toHaveLength(1)
})

test('[GROUP1] after a lost session the caller knows who answered, and keeps its own name for a group that rings', async () => {
  const fake = await onlineFake()
  const call = fake.client.call({ ...support, displayName: 'Support' })
  fake.socket.replies('call.invited', { ...invited, call_uuid: call.callUuid })
  const lost = async (more: object) => {
    fake.socket.ends(1006)
    await fake.pass(500)
    fake.socket.ok({ session_id: `s${fake.sockets.length}`, active_calls: [active(call.callUuid, more)] })
    await turn()
  }
  const peer = { user_id: null, role: 'agent', group: 'support', display_name: null }
  await lost({ status: 'ringing', peer })
  expect(call.peer).toEqual({ userId: null, role: 'agent', displayName: 'Support' })
  await lost({ status: 'accepted', peer: { ...peer, user_id: 'ben', display_name: 'Ben' } })
  expect(call).toMatchObject({ state: { name: 'accepted' }, peer: { userId: 'ben', displayName: 'Ben' } })
})
