import { describe, expect, test } from 'bun:test'
import { connectPair, invite } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { errorCode, inviteOf, offer, quiet, received, recordOf, request } from '../../support/sessions.ts'
import { type Start, serviceFor } from './composition.ts'

type Pair = Awaited<ReturnType<typeof connectPair>>

/** Two invites that cross. `caller` and `callee` are two equal people here, who call each other. */
export function registerGlare(name: string, start: Start): void {
  describe(`glare, ${name}`, () => {
    const service = serviceFor(start)
    registerCrossing(service)
    registerWaiting(service)
    registerNoGlare(service)
  })
}

const backTo = (userId: string, more: object = {}) => ({ callee_user_id: userId, callee_role: 'customer', ...more })

function registerCrossing(service: () => Service): void {
  test('[INV6] 200 pairs whose invites cross: exactly one call a pair, and the second was rung before it was refused', async () => {
    const pairs = await Promise.all(Array.from({ length: 200 }, () => connectPair(service())))
    pairs.forEach((pair, index) => {
      const both = [
        () => pair.caller.send('call.invite', inviteOf(pair.calleeId), 'mine'),
        () => pair.callee.send('call.invite', backTo(pair.callerId), 'mine'),
      ]
      for (const send of index % 2 === 0 ? both : both.reverse()) send()
    })
    await quiet(...pairs.flatMap(({ caller, callee }) => [caller, callee]))
    for (const pair of pairs) expectOneCall(pair)
    await Promise.all(pairs.map((pair) => finishWaiting(pair, service())))
  })

  test('[INV6] [INV3] crossing invites under one and the same call_uuid are one call as well', async () => {
    for (let round = 0; round < 20; round++) {
      const pair = await connectPair(service())
      const callUuid = crypto.randomUUID()
      pair.caller.send('call.invite', inviteOf(pair.calleeId, { call_uuid: callUuid }), 'mine')
      pair.callee.send('call.invite', backTo(pair.callerId, { call_uuid: callUuid }), 'mine')
      await quiet(pair.caller, pair.callee)
      expect(expectOneCall(pair).callUuid).toBe(callUuid)
    }
  })
}

function expectOneCall({ caller, callee }: Pair) {
  const winner = received(caller)[1]?.event === 'call.invited' ? caller : callee
  const loser = winner === caller ? callee : caller
  expect(received(winner).map(({ event }) => event)).toEqual(['auth.ok', 'call.invited'])
  expect(received(loser).map(({ event }) => event)).toEqual(['auth.ok', 'call.ringing', 'call.error'])
  const callUuid: string = received(winner)[1]?.data.call_uuid
  expect(received(loser)[1]?.data.call_uuid).toBe(callUuid)
  expect(received(loser)[2]).toMatchObject({ request_id: 'mine', error: { code: 'CALL_GLARE', call_uuid: callUuid } })
  return { winner, loser, callUuid }
}

/** The call that waits is a call like any other. */
async function finishWaiting(pair: Pair, service: Service): Promise<void> {
  const { winner, loser, callUuid } = expectOneCall(pair)
  loser.send('call.accept', { call_uuid: callUuid })
  await winner.next('call.accepted')
  winner.send('call.end', { call_uuid: callUuid })
  await loser.next('call.ended')
  const history = await service.history(await service.token({ user_id: pair.callerId, role: 'customer' }))
  expect(history.data).toHaveLength(1)
  expect(history.data[0]).toMatchObject({ call_uuid: callUuid, status: 'ended' })
}

function registerWaiting(service: () => Service): void {
  test('[INV6] any session of the callee that calls back is named the waiting call', async () => {
    const pair = await connectPair(service())
    const tab = await service().connect({ user_id: pair.calleeId, role: 'agent' })
    const callUuid = await invite(pair.caller, pair.calleeId)
    for (const client of [pair.callee, tab]) {
      const reply = await request(client, 'call.invite', backTo(pair.callerId))
      expect(reply?.error).toMatchObject({ code: 'CALL_GLARE', call_uuid: callUuid })
      expect(client.events()).toEqual(['auth.ok', 'call.ringing', 'call.error'])
    }
    await quiet(pair.caller)
    expect(pair.caller.events()).toEqual(['auth.ok', 'call.invited'])
  })

  test('[INV6] a call whose caller is gone does not count: it ends as caller_lost, and the new one goes on', async () => {
    const pair = await connectPair(service())
    const tab = await service().connect({ user_id: pair.callerId, role: 'customer' })
    const lost = await invite(pair.caller, pair.calleeId)
    await pair.callee.next('call.ringing')
    await pair.caller.die()
    // A verb that asks for the place: refused with the state as soon as the place is vacant [PLACE4].
    expect(await errorCode(tab, 'call.connected', { call_uuid: lost })).toBe('CALL_INVALID_STATE')

    const reply = await request(pair.callee, 'call.invite', backTo(pair.callerId))
    expect(reply).toMatchObject({ event: 'call.invited', data: { status: 'ringing', delivered: true } })
    expect(pair.callee.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled', 'call.invited'])
    expect((await pair.callee.next('call.cancelled')).data).toMatchObject({
      call_uuid: lost,
      status: 'cancelled',
      reason: 'caller_lost',
      by: null,
    })
    const ringing = await tab.next('call.ringing')
    expect(ringing.data.call_uuid).toBe(reply?.data.call_uuid)
    tab.send('call.accept', { call_uuid: ringing.data.call_uuid })
    await pair.callee.next('call.accepted')
    const record = await recordOf(service(), { user_id: pair.callerId, role: 'customer' }, lost)
    expect(record).toMatchObject({ status: 'cancelled', end_reason: 'caller_lost' })
  })
}

function registerNoGlare(service: () => Service): void {
  test('[INV6] once the waiting call is over there is no glare', async () => {
    const pair = await connectPair(service())
    const callUuid = await invite(pair.caller, pair.calleeId)
    pair.callee.send('call.reject', { call_uuid: callUuid })
    const reply = await request(pair.callee, 'call.invite', backTo(pair.callerId))
    expect(reply?.event).toBe('call.invited')
    expect((await pair.caller.next('call.ringing')).data.call_uuid).toBe(reply?.data.call_uuid)
  })

  test('[INV6] three people who call in a circle at once: three calls', async () => {
    const as = async (role: string, allowed: string) => {
      const userId = `${role}-${crypto.randomUUID()}`
      return {
        userId,
        client: await service().connect({ user_id: userId, role, allowed_peer_role: allowed }),
      }
    }
    const ring = [await as('red', 'green'), await as('green', 'blue'), await as('blue', 'red')] as const
    const roles = ['red', 'green', 'blue'] as const
    ring.forEach(({ client }, index) => {
      const next = (index + 1) % 3
      client.send('call.invite', { callee_user_id: ring[next]?.userId, callee_role: roles[next] })
    })
    await quiet(...ring.map(({ client }) => client))
    for (const { client } of ring) {
      expect(client.events().sort()).toEqual(['auth.ok', 'call.invited', 'call.ringing'])
    }
  })

  test('[INV6] calls of other pairs do not cross', async () => {
    const [one, two] = [await connectPair(service()), await connectPair(service())]
    await invite(one.caller, one.calleeId)
    await invite(two.caller, one.calleeId)
    const reply = await request(one.callee, 'call.invite', backTo(two.callerId))
    expect(reply?.error?.code).toBe('CALL_GLARE')
    const free = await connectPair(service())
    expect((await request(one.callee, 'call.invite', backTo(free.callerId)))?.event).toBe('call.invited')
  })

  test('[INV6] an answered call between the two is no glare: the new one rings', async () => {
    const pair = await connectPair(service())
    const callUuid = await invite(pair.caller, pair.calleeId)
    pair.callee.send('call.accept', { call_uuid: callUuid })
    await pair.caller.next('call.accepted')
    const reply = await request(pair.callee, 'call.invite', backTo(pair.callerId))
    expect(reply?.event).toBe('call.invited')
    await pair.caller.next('call.ringing')
    pair.caller.send('webrtc.offer', offer(callUuid))
    await pair.callee.next('webrtc.offer')
  })
}
