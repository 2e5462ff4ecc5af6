import { expect, test } from 'bun:test'
import { createClient } from './client.ts'
import {
  active,
  agent,
  createFake,
  failure,
  fakeClient,
  onlineFake,
  rings,
  start,
  tokenFor,
  turn,
  uuid,
} from './environment.fixture.ts'
import { carryMutes, createTransfers, transferCapabilities } from './transfer.ts'
import type { Call } from './types.ts'

const [first, next] = [uuid(1), uuid(2)]
const eva = { user_id: 'eva', role: 'agent', display_name: null }
const ben = { user_id: 'ben', role: 'agent', display_name: 'Ben' }
const session = { can: transferCapabilities }

/** A client in an answered call, and everything that its transfers said. */
async function inCall() {
  const fake = await onlineFake(session)
  const transfers = createTransfers(fake.client)
  const call = fake.client.call(agent)
  fake.socket.replies('call.invited', { call_uuid: first, status: 'ringing', expires_at: '2030-01-01T00:00:45Z' })
  fake.socket.says({ event: 'call.accepted', data: { call_uuid: first, status: 'accepted' }, seq: 1 })
  const heard: string[] = []
  transfers.on('change', (changed) => heard.push(`${transfers.of(changed)?.name}`))
  transfers.on('moved', (move) => heard.push(`moved to ${move.call.callUuid.slice(-1)}, ${move.from.state.name}`))
  call.on('state', ({ name }) => heard.push(`first is ${name}`))
  let seq = 1
  const says = (event: string, data: object) => fake.socket.says({ event, data, seq: ++seq })
  return { ...fake, socket: fake.socket, fake, transfers, call, heard, says }
}

const transferring = (more: object = {}) => ({
  ...{ call_uuid: first, new_call_uuid: next, status: 'ringing', direction: 'outgoing', to: eva },
  ...more,
})
const ended = (call_uuid: string, reason: string, status = 'ended') => ({
  ...{ call_uuid, status, reason, by: null, ended_at: '2030-01-01T00:01:00Z' },
})
const failed = { call_uuid: first, new_call_uuid: next, status: 'rejected', end_reason: 'declined' }
const started = { call_uuid: first, new_call_uuid: next }

test('[XFER1] the side that transfers: asked, ringing, failed, and done with the end of its call', async () => {
  const { transfers, call, heard, says, socket } = await inCall()
  expect(transfers.of(call)).toBeUndefined()
  const asked = transfers.transfer(call, { userId: 'eva', role: 'agent', displayName: 'Eva', metadata: { order: 7 } })
  const target = { to_user_id: 'eva', to_role: 'agent', metadata: { order: 7 } }
  expect(socket.sent.at(-1)).toMatchObject({ event: 'call.transfer', data: { call_uuid: first, ...target } })
  expect((await failure(transfers.transfer(call, { userId: 'max', role: 'agent' }))).code).toBe('CALL_INVALID_STATE')
  socket.replies('call.transfer_started', started)
  await asked
  const to = { userId: 'eva', role: 'agent', displayName: 'Eva' }
  expect(transfers.of(call)).toMatchObject({ name: 'ringing', to, callUuid: next, call: undefined })
  says('call.transfer_failed', failed)
  expect(transfers.of(call)).toMatchObject({ name: 'failed', to, status: 'rejected', reason: 'declined' })
  void transfers.transfer(call, { userId: 'max', role: 'agent' })
  expect(transfers.of(call)).toMatchObject({ name: 'asked', to: { userId: 'max' }, status: undefined })
  socket.replies('call.transfer_started', { ...started, new_call_uuid: uuid(3) })
  says('call.ended', ended(first, 'transferred'))
  expect(heard).toEqual(['asked', 'ringing', 'failed', 'asked', 'ringing', 'first is over', 'done'])
})

test('[XFER1] what the service refuses is failed with its error, and an end before the answer as well', async () => {
  const { transfers, call, says, socket } = await inCall()
  const asked = transfers.transfer(call, { userId: 'eva', role: 'agent' })
  socket.fails('NOT_SUPPORTED_BY_PEER')
  expect((await failure(asked)).code).toBe('NOT_SUPPORTED_BY_PEER')
  expect(transfers.of(call)).toMatchObject({ name: 'failed', error: { code: 'NOT_SUPPORTED_BY_PEER' } })
  void transfers.transfer(call, { userId: 'eva', role: 'agent' })
  expect(transfers.of(call)?.error).toBeUndefined()
  socket.replies('call.transfer_started', started)
  says('call.ended', ended(first, 'hangup'))
  expect(transfers.of(call)).toMatchObject({ name: 'failed', reason: 'transfer_cancelled' })
})

test('[XFER1] a reply that comes after its time still says what became of it', async () => {
  const { transfers, call, socket, fake } = await inCall()
  const asked = transfers.transfer(call, { userId: 'eva', role: 'agent' })
  const sent = socket.sent.at(-1)
  await fake.pass(5_000)
  fake.socket.says({ event: 'call.peer_back', data: { call_uuid: first }, seq: 2 })
  await fake.pass(5_000)
  expect((await failure(asked)).code).toBe('TIMEOUT')
  expect(transfers.of(call)).toMatchObject({ name: 'failed', error: { code: 'TIMEOUT' } })
  socket.says({ event: 'call.transfer_started', request_id: sent?.request_id, data: started })
  expect(transfers.of(call)).toMatchObject({ name: 'ringing', callUuid: next, error: undefined })
})

test('[XFER1] the side that is transferred goes on with the new call before the first one ends', async () => {
  const { client, transfers, call, heard, says } = await inCall()
  says('call.transferring', transferring())
  const mine = client.find(next) as Call
  expect(client.calls).toEqual([call, mine])
  expect(mine).toMatchObject({
    ...{ direction: 'outgoing', callType: call.callType, peer: { userId: 'eva', role: 'agent', displayName: null } },
    state: { name: 'ringing', direction: 'outgoing', invited: true, expiresAt: undefined },
  })
  expect(transfers.of(call)).toMatchObject({ name: 'ringing', callUuid: next, call: mine })
  expect(transfers.origin(mine)).toEqual({ callUuid: first, by: call.peer })
  says('call.accepted', { call_uuid: next, status: 'accepted', display_name: 'Eva' })
  says('call.ended', ended(first, 'transferred'))
  expect(heard).toEqual(['ringing', 'done', 'moved to 2, accepted', 'first is over'])
  expect(transfers.of(call)).toMatchObject({ name: 'done', to: { displayName: 'Eva' }, call: mine })
  expect(client.calls).toEqual([mine])
})

test('[XFER1] the backend transfers for this side, which did not ask: ringing, failed, and done', async () => {
  const { transfers, call, heard, says } = await inCall()
  says('call.transfer_started', started)
  expect(transfers.of(call)).toMatchObject({ name: 'ringing', to: undefined, callUuid: next, call: undefined })
  says('call.transfer_failed', failed)
  expect(transfers.of(call)).toMatchObject({ name: 'failed', status: 'rejected', reason: 'declined' })
  says('call.transfer_started', { ...started, new_call_uuid: uuid(3) })
  expect(transfers.of(call)).toMatchObject({ name: 'ringing', callUuid: uuid(3), status: undefined })
  says('call.transfer_started', { call_uuid: uuid(9), new_call_uuid: uuid(8) })
  says('call.ended', ended(first, 'transferred'))
  expect(heard).toEqual(['ringing', 'failed', 'ringing', 'first is over', 'done'])
})

test('[XFER1] [PEER1] the other side of the new call may be away, and comes back', async () => {
  const { client, says } = await inCall()
  const away = { since: '2030-01-01T00:00:00Z', ends_at: '2030-01-01T00:02:00Z' }
  says('call.transferring', transferring({ status: 'accepted', to: { ...ben, away } }))
  const mine = client.find(next) as Call
  expect(mine.peerState.away).toEqual({ since: start, endsAt: start + 120_000 })
  says('call.peer_back', { call_uuid: next })
  expect(mine.peerState.away).toBeNull()
})

test('[XFER1] the target declines: the first call goes on, with one word about it; or this side stays by itself', async () => {
  const { client, transfers, call, heard, says, socket } = await inCall()
  says('call.transferring', transferring())
  says('call.rejected', ended(next, 'declined', 'rejected'))
  says('call.transfer_failed', failed)
  expect(heard).toEqual(['ringing', 'failed'])
  expect(transfers.of(call)).toMatchObject({ name: 'failed', status: 'rejected', reason: 'declined' })
  expect(client.calls).toEqual([call])
  says('call.transferring', transferring({ new_call_uuid: uuid(3) }))
  await Promise.all([transfers.of(call)?.call?.cancel(), socket.replies('call.ack')])
  expect(socket.sent.at(-1)).toMatchObject({ event: 'call.cancel', data: { call_uuid: uuid(3) } })
  expect(transfers.of(call)).toMatchObject({ name: 'failed', reason: 'caller_cancelled' })
})

test('[XFER1] a new call that this side has ended is not there again when the service tells of it late', async () => {
  const { client, transfers, call, says, socket } = await inCall()
  // The service named the call that rings for this side already [INV7].
  const own = client.call({ userId: 'eva', role: 'agent' })
  socket.replies('call.invited', { call_uuid: next, status: 'ringing', expires_at: '2030-01-01T00:00:45Z' })
  await Promise.all([own.cancel(), socket.replies('call.ack', { call_uuid: next, status: 'cancelled' })])
  says('call.transferring', transferring())
  expect(client.calls).toEqual([call])
  says('call.transfer_failed', { ...failed, status: 'cancelled', end_reason: 'caller_cancelled' })
  expect(transfers.of(call)).toMatchObject({ name: 'failed', status: 'cancelled' })
})

test('[XFER1] a new call that this side has ended is not there again in a new session that still lists it', async () => {
  const { client, call, fake, says } = await inCall()
  says('call.transferring', transferring())
  void client.find(next)?.cancel()
  fake.socket.ends(1006)
  await fake.pass(500)
  const listed = active(next, { status: 'ringing', transferred_from: first, transferred_by: ben })
  fake.socket.ok({ session_id: 's2', active_calls: [active(first, { transferring_to: next }), listed] })
  await turn()
  expect(client.calls).toEqual([call])
})

test('[XFER1] [HOLD1] a side that holds the first call holds the new one', async () => {
  const { client, call, says } = await inCall()
  void call.hold()
  says('call.transferring', transferring())
  says('call.accepted', { call_uuid: next, status: 'accepted' })
  expect(client.find(next)?.held).toBe(true)
})

test('[XFER1] after a consultation nobody rings: both sides go on at once, each in its direction', async () => {
  for (const direction of ['outgoing', 'incoming'] as const) {
    const { client, heard, says } = await inCall()
    says('call.transferring', transferring({ status: 'accepted', direction, to: { ...eva, display_name: 'Eva' } }))
    expect(client.find(next)).toMatchObject({ direction, state: { name: 'accepted' }, peer: { displayName: 'Eva' } })
    says('call.ended', ended(first, 'transferred'))
    expect(heard).toEqual(['ringing', 'done', 'moved to 2, accepted', 'first is over'])
  }
})

test('[XFER1] a transfer to another call names it, and is done when the service says so', async () => {
  const { client, transfers, call, socket } = await inCall()
  const second = client.call({ userId: 'eva', role: 'agent', displayName: 'Eva' })
  const asked = transfers.transfer(call, { to: second })
  expect(socket.sent.at(-1)?.data).toEqual({ call_uuid: first, to_call_uuid: second.callUuid })
  socket.replies('call.transfer_started', started)
  await asked
  expect(transfers.of(call)).toMatchObject({ name: 'done', to: { userId: 'eva' } })
})

test('[XFER1] the target knows who transferred, when the call rings and when it is found again', async () => {
  const fake = await onlineFake(session)
  const transfers = createTransfers(fake.client)
  const origin = { transferred_from: first, transferred_by: ben }
  const by = { userId: 'ben', role: 'agent', displayName: 'Ben' }
  const seen: unknown[] = []
  fake.client.on('incoming', (call) => seen.push(transfers.origin(call)))
  const { data, ...push } = rings(1, next)
  fake.socket.says({ ...push, data: { ...data, ...origin } })
  expect(seen).toEqual([{ callUuid: first, by }])
  fake.socket.says(rings(2, uuid(3), 'max'))
  expect(seen).toEqual([{ callUuid: first, by }, undefined])

  const again = fakeClient(session)
  const found = createTransfers(again.client)
  again.client.connect()
  await turn()
  again.socket.ok({ active_calls: [active(next, { direction: 'incoming', ...origin })] })
  expect(found.origin(again.client.find(next) as Call)).toEqual({ callUuid: first, by })
})

test('[XFER1] a page that was loaded again goes on: with the new call, and with what it transfers', async () => {
  const fake = fakeClient(session)
  const transfers = createTransfers(fake.client)
  const moved: string[] = []
  transfers.on('moved', ({ from, call }) => moved.push(`${from.callUuid} ${call.callUuid}`))
  fake.client.connect()
  await turn()
  const mine = active(first, { transferring_to: next })
  const theirs = active(next, { status: 'ringing', transferred_from: first, transferred_by: ben })
  const other = active(uuid(5), { transferring_to: uuid(6) })
  fake.socket.ok({ active_calls: [mine, theirs, other] })
  await turn()
  const [a, b, c] = fake.client.calls as [Call, Call, Call]
  expect([a, b, c].map(({ callUuid }) => callUuid)).toEqual([first, next, uuid(5)])
  expect(transfers.of(a)).toMatchObject({ name: 'ringing', call: b })
  expect(transfers.of(c)).toMatchObject({ name: 'ringing', callUuid: uuid(6), call: undefined, to: undefined })
  fake.socket.says({ event: 'call.accepted', data: { call_uuid: next, status: 'accepted' }, seq: 1 })
  expect(moved).toEqual([`${first} ${next}`])
  fake.socket.says({ event: 'call.ended', data: ended(uuid(5), 'transferred'), seq: 2 })
  expect(transfers.of(c)?.name).toBe('done')
})

test('[XFER1] a page that waits for a gesture goes on with the new call only after that', async () => {
  const fake = createFake()
  const options = { ...session, getToken: async () => tokenFor(fake, 3_600_000) }
  const client = createClient(options, { ...fake.env, visit: () => 'return' })
  const transfers = createTransfers(client)
  const moved: string[] = []
  transfers.on('moved', ({ call }) => moved.push(call.callUuid))
  client.connect()
  await turn()
  const theirs = active(next, { status: 'ringing', transferred_from: first, transferred_by: ben })
  fake.socket.ok({ active_calls: [active(first, { transferring_to: next }), theirs] })
  await turn()
  expect(client.calls).toEqual([])
  fake.socket.says({ event: 'call.accepted', data: { call_uuid: next, status: 'accepted' }, seq: 1 })
  expect(moved).toEqual([])
  client.restorable[0]?.resume()
  expect(moved).toEqual([next])
  expect(client.restorable).toEqual([])
})

test('[XFER1] a session that was lost: the new call is followed, a transfer that is no more has failed', async () => {
  const { client, heard, fake } = await inCall()
  fake.socket.ends(1006)
  await fake.pass(500)
  const theirs = active(next, { status: 'accepted', transferred_from: first, transferred_by: ben })
  fake.socket.ok({ session_id: 's2', active_calls: [theirs] })
  await turn()
  expect(client.restorable).toEqual([])
  expect(heard).toEqual(['ringing', 'done', 'moved to 2, accepted'])
  // It asks what became of the first one.
  fake.socket.says({ event: 'call.ended', data: ended(first, 'transferred'), seq: 1 })
  expect(client.calls.map(({ callUuid }) => callUuid)).toEqual([next])

  const other = await inCall()
  void other.transfers.transfer(other.call, { userId: 'eva', role: 'agent' })
  other.socket.replies('call.transfer_started', started)
  other.fake.socket.ends(1006)
  await other.fake.pass(500)
  other.fake.socket.ok({ session_id: 's2', active_calls: [active(first)] })
  await turn()
  expect(other.transfers.of(other.call)).toMatchObject({ name: 'failed', to: { userId: 'eva' }, status: undefined })
})

test('[XFER1] a request that is repeated in a new session meets the transfer that it began', async () => {
  const { transfers, call, fake } = await inCall()
  const asked = transfers.transfer(call, { userId: 'eva', role: 'agent' })
  fake.socket.ends(1006)
  await fake.pass(500)
  fake.socket.ok({ session_id: 's2', active_calls: [active(first, { transferring_to: next })] })
  await turn()
  fake.socket.fails('CALL_INVALID_STATE', { status: 'accepted' }, 'call.transfer')
  await asked
  expect(transfers.of(call)).toMatchObject({ name: 'ringing', to: { userId: 'eva' }, callUuid: next })
})

test('[XFER1] closed, it follows nothing', async () => {
  const { client, transfers, call, says } = await inCall()
  transfers.close()
  says('call.transferring', transferring())
  expect([client.calls, transfers.of(call)]).toEqual([[call], undefined])
})

test('what was muted in the first call is muted in the new one', () => {
  const muted: string[] = []
  const to = { setMuted: async (kind: string, on: boolean) => void muted.push(`${kind} ${on}`) }
  for (const [audio, video] of [
    [true, false],
    [false, true],
  ])
    carryMutes({ state: { muted: { audio, video } } } as never, to)
  expect(muted).toEqual(['audio true', 'video true'])
})
