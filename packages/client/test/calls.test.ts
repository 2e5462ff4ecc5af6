import { afterAll, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { next, online, type Person, person, ringing, stateOf, talk, until } from './support/people.ts'
import { failure } from './support/stage.ts'

/** The SDK against the service as its own process: calls. */
let service: Service
const everybody: Person[] = []

beforeAll(async () => {
  service = await new Service().start()
})
afterAll(async () => {
  for (const { client } of everybody) client.close()
  await service.dispose()
})

function add(...args: Parameters<typeof person> extends [unknown, ...infer Rest] ? Rest : never): Person {
  const it = person(service, ...args)
  everybody.push(it)
  return it
}

async function two(): Promise<{ caller: Person; callee: Person }> {
  const caller = add(someone('caller'), 'customer')
  const callee = add(someone('callee'), 'agent')
  await Promise.all([online(caller), online(callee)])
  return { caller, callee }
}

test('a call from the invite to the end', async () => {
  const { caller, callee } = await two()
  const out = caller.client.call({
    userId: callee.userId,
    role: 'agent',
    callType: 'video',
    metadata: { order: 7 },
    ringTimeoutMs: 20_000,
  })
  expect(out.state).toMatchObject({ name: 'ringing', direction: 'outgoing', invited: false })
  expect(caller.client.calls).toEqual([out])
  await out.invited
  expect(out.state).toMatchObject({ invited: true, delivered: true })

  const incoming = await ringing(callee)
  expect(incoming).toMatchObject({ callUuid: out.callUuid, direction: 'incoming', callType: 'video' })
  expect(incoming.metadata).toEqual({ order: 7 })
  expect(incoming.peer).toEqual({ userId: caller.userId, role: 'customer', displayName: caller.userId })
  expect(incoming.contextType).toBe('order')
  const alerting = next(out, 'alerting')
  await incoming.alerting()
  expect(await alerting).toEqual({ userId: callee.userId, role: 'agent' })
  expect(out.state).toMatchObject({ alerting: true })

  await incoming.accept()
  expect(incoming.state.name).toBe('accepted')
  await stateOf(out, 'accepted')

  const status = next(incoming, 'status')
  await out.connected()
  expect(out.state.name).toBe('connected')
  expect(await status).toEqual({ status: 'connected', by: { userId: caller.userId, role: 'customer' } })
  expect(incoming.state.name).toBe('connected')

  const ended = out.end()
  expect(out.state).toMatchObject({ name: 'over', status: 'ended', reason: 'hangup' })
  expect(caller.client.calls).toEqual([])
  await ended
  expect(await stateOf(incoming, 'over')).toMatchObject({
    status: 'ended',
    reason: 'hangup',
    by: { userId: caller.userId, role: 'customer' },
  })
  expect(callee.client.calls).toEqual([])
})

test('[REL3] offer, answer and candidates go to the peer, in order, also before somebody listens', async () => {
  const { caller, callee } = await two()
  const calls = await talk(caller, callee)
  await calls.out.sendOffer({ type: 'offer', sdp: 'v=0 offer' })
  const candidates = ['one', 'two', 'three'].map((candidate) => ({ candidate, sdpMid: '0', sdpMLineIndex: 0 }))
  await Promise.all(candidates.map((it) => calls.out.sendCandidate(it)))
  await calls.out.sendCandidate(null)
  // The callee had its accept answered long ago, and nobody listens yet.
  await callee.client.call({ userId: someone('nobody'), role: 'customer' }).cancel()

  const heard: string[] = []
  const done = Promise.withResolvers<void>()
  calls.in.on('candidate', (it) => {
    heard.push(it.candidate)
    if (it.candidate === 'three') done.resolve()
  })
  calls.in.on('offer', (it) => heard.push(it.sdp))
  await done.promise
  expect(heard).toEqual(['v=0 offer', 'one', 'two', 'three'])

  const answer = next(calls.out, 'answer')
  await calls.in.sendAnswer({ type: 'answer', sdp: 'v=0 answer' })
  expect(await answer).toMatchObject({ type: 'answer', sdp: 'v=0 answer' })
})

test('reject, with a reason', async () => {
  const { caller, callee } = await two()
  const out = caller.client.call({ userId: callee.userId, role: 'agent' })
  await (await ringing(callee)).reject('no_time')
  expect(await stateOf(out, 'over')).toMatchObject({
    status: 'rejected',
    reason: 'no_time',
    by: { userId: callee.userId, role: 'agent' },
  })
})

test('cancel while it rings; a call that is over answers no more requests', async () => {
  const { caller, callee } = await two()
  const out = caller.client.call({ userId: callee.userId, role: 'agent' })
  const incoming = await ringing(callee)
  await out.cancel()
  expect(await stateOf(incoming, 'over')).toMatchObject({ status: 'cancelled', reason: 'caller_cancelled' })
  expect(await failure(incoming.accept())).toMatchObject({ name: 'RingwireError', code: 'CALL_OVER' })
  await incoming.end()
  await out.cancel()
})

test('cancel before the service has answered the invite', async () => {
  const { caller, callee } = await two()
  const out = caller.client.call({ userId: callee.userId, role: 'agent' })
  await out.cancel()
  expect(out.state).toMatchObject({ name: 'over', status: 'cancelled' })
  expect(await failure(out.invited)).toMatchObject({ code: 'CALL_OVER' })
  const { data } = await service.history(await service.token({ user_id: caller.userId, role: 'customer' }))
  expect(data[0]).toMatchObject({ call_uuid: out.callUuid, status: 'cancelled' })
})

test('nobody answers: both are told', async () => {
  const { caller, callee } = await two()
  const out = caller.client.call({ userId: callee.userId, role: 'agent', ringTimeoutMs: 300 })
  const incoming = await ringing(callee)
  const over = { name: 'over', status: 'missed', reason: 'no_answer', by: null }
  expect(await stateOf(out, 'over')).toMatchObject(over)
  expect(await stateOf(incoming, 'over')).toMatchObject(over)
})

test('[ENV5] a refused invite ends the call with its error', async () => {
  const { caller } = await two()
  const out = caller.client.call({ userId: someone('colleague'), role: 'customer' })
  const error = await failure(out.invited)
  expect(error).toMatchObject({ code: 'CALL_PEER_ROLE_NOT_ALLOWED', retryable: false, retryAfterMs: undefined })
  expect(out.state).toMatchObject({ name: 'over', reason: 'sdk.failed', status: undefined })
  expect(out.state.name === 'over' && out.state.error === error).toBe(true)
  expect(caller.client.calls).toEqual([])
})

test('[WS6] what is over 64 KiB is refused here: it would close the socket again and again', async () => {
  const { caller, callee } = await two()
  const { out } = await talk(caller, callee)
  const error = await failure(out.sendOffer({ type: 'offer', sdp: 'ä'.repeat(40_000) }))
  expect(error.code).toBe('PAYLOAD_TOO_LARGE')
  await out.connected()
})

test('[INV8] a limit says how long to wait', async () => {
  const limited = await new Service({ RINGWIRE_PAIR_INVITE_RATE: '1/60' }).start()
  const caller = person(limited, someone('caller'), 'customer')
  await online(caller)
  const agent = { userId: someone('callee'), role: 'agent' }
  await caller.client.call(agent).cancel()
  const error = await failure(caller.client.call(agent).invited)
  expect(error).toMatchObject({ code: 'RATE_LIMITED', retryable: true, limit: 'pair_invites' })
  expect(error.retryAfterMs).toBeGreaterThan(10_000)
  caller.client.close()
  await limited.dispose()
})

test('two devices ring; the one that answers has the call, the other is told', async () => {
  const { caller, callee } = await two()
  const tablet = add(callee.userId, 'agent')
  await online(tablet)
  const out = caller.client.call({ userId: callee.userId, role: 'agent' })
  const [onPhone, onTablet] = await Promise.all([ringing(callee), ringing(tablet)])
  await onTablet.accept()
  expect(await stateOf(onPhone, 'over')).toMatchObject({ status: 'accepted', reason: 'answered_elsewhere' })
  await stateOf(out, 'accepted')
  const offer = next(onTablet, 'offer')
  await out.sendOffer({ type: 'offer', sdp: 'v=0' })
  await offer
  await onTablet.end()
  await stateOf(out, 'over')
})

test('two devices answer at once: one has the call, the other gets CALL_ALREADY_ANSWERED', async () => {
  const { caller, callee } = await two()
  const tablet = add(callee.userId, 'agent')
  await online(tablet)
  caller.client.call({ userId: callee.userId, role: 'agent' })
  const rung = await Promise.all([ringing(callee), ringing(tablet)])
  const results = await Promise.allSettled(rung.map((call) => call.accept()))
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const loser = rung[results.findIndex(({ status }) => status === 'rejected')]!
  expect(await stateOf(loser, 'over')).toMatchObject({ status: 'accepted', reason: 'answered_elsewhere' })
})

test('[INV6] glare: both call each other, and both are in the same call', async () => {
  const { caller, callee } = await two()
  const one = caller.client.call({ userId: callee.userId, role: 'agent' })
  const other = callee.client.call({ userId: caller.userId, role: 'customer' })
  await Promise.all([stateOf(one, 'accepted'), stateOf(other, 'accepted')])
  expect(one.callUuid).toBe(other.callUuid)
  expect([one.direction, other.direction].sort()).toEqual(['incoming', 'outgoing'])
  expect(caller.client.calls).toEqual([one])
  expect(callee.client.calls).toEqual([other])
  expect([...caller.incoming, ...callee.incoming]).toEqual([])
  await Promise.all([one.invited, other.invited])
  const [second, first] = one.direction === 'incoming' ? [one, other] : [other, one]
  const offer = next(second, 'offer')
  await first.sendOffer({ type: 'offer', sdp: 'v=0' })
  await offer
  await second.end()
  await stateOf(first, 'over')
})

test('[INV6] glare that is left to the application: a typed error that names the call, and the call rings', async () => {
  const { caller, callee } = await two()
  const options = { onGlare: 'error' } as const
  const one = caller.client.call({ userId: callee.userId, role: 'agent', ...options })
  const other = callee.client.call({ userId: caller.userId, role: 'customer', ...options })
  const settled = await Promise.allSettled([one.invited, other.invited])
  const failed = settled.findIndex(({ status }) => status === 'rejected')
  const [loser, winner, client] = failed === 0 ? [one, other, caller.client] : ([other, one, callee.client] as const)
  expect(loser.state).toMatchObject({ name: 'over', reason: 'sdk.glare' })
  const error = await failure(loser.invited)
  expect(error).toMatchObject({ code: 'CALL_GLARE', callUuid: winner.callUuid })
  const waiting = await until('the waiting call', client, () => client.find(winner.callUuid))
  await waiting.accept()
  await stateOf(winner, 'accepted')
})

test('to call somebody who rings here is to answer', async () => {
  const { caller, callee } = await two()
  const out = caller.client.call({ userId: callee.userId, role: 'agent' })
  const incoming = await ringing(callee)
  expect(callee.client.call({ userId: caller.userId, role: 'customer' })).toBe(incoming)
  await stateOf(out, 'accepted')
})

test('[INV7] calling somebody twice is one call; from another tab it is a new one', async () => {
  const { caller, callee } = await two()
  const out = caller.client.call({ userId: callee.userId, role: 'agent' })
  expect(caller.client.call({ userId: callee.userId, role: 'agent' })).toBe(out)
  await ringing(callee, out.callUuid)
  const tab = add(caller.userId, 'customer')
  await online(tab)
  const again = tab.client.call({ userId: callee.userId, role: 'agent' })
  expect(await stateOf(out, 'over')).toMatchObject({ status: 'cancelled', reason: 'superseded' })
  await ringing(callee, again.callUuid)
})

test('close hangs up what this session holds, and says goodbye', async () => {
  const { caller, callee } = await two()
  const calls = await talk(caller, callee)
  caller.client.close()
  expect(caller.client.state).toMatchObject({ name: 'closed', why: { code: 'client_closed' } })
  expect(calls.out.state).toMatchObject({ name: 'over', reason: 'hangup' })
  expect(await stateOf(calls.in, 'over')).toMatchObject({ status: 'ended', reason: 'hangup' })
  expect(await failure(calls.out.connected())).toMatchObject({ code: 'CALL_OVER' })
})

test('close leaves a call that rings here to the other devices', async () => {
  const { caller, callee } = await two()
  const tablet = add(callee.userId, 'agent')
  await online(tablet)
  const out = caller.client.call({ userId: callee.userId, role: 'agent' })
  const [onPhone, onTablet] = await Promise.all([ringing(callee), ringing(tablet)])
  callee.client.close()
  expect(onPhone.state).toMatchObject({ name: 'over', reason: 'sdk.closed' })
  await onTablet.accept()
  await stateOf(out, 'accepted')
})

test('a base client and the SDK in one call', async () => {
  const callee = add(someone('callee'), 'agent')
  await online(callee)
  const base = await service.connect({ user_id: someone('caller'), role: 'customer' })
  base.send('call.invite', { callee_user_id: callee.userId, callee_role: 'agent' }, 'r1')
  const { data } = await base.next('call.invited')
  const incoming = await ringing(callee, data.call_uuid)
  await incoming.accept()
  await base.next('call.accepted')
  const offer = next(incoming, 'offer')
  base.send('webrtc.offer', { call_uuid: data.call_uuid, sdp: { type: 'offer', sdp: 'v=0' } })
  expect(await offer).toEqual({ type: 'offer', sdp: 'v=0' })
  base.send('call.end', { call_uuid: data.call_uuid })
  expect(await stateOf(incoming, 'over')).toMatchObject({ status: 'ended', reason: 'hangup' })
  await base.close()
})
