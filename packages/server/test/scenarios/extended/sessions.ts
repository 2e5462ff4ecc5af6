import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { clockMs } from '../../support/clocks.ts'
import {
  about,
  answeredCall,
  candidatesOf,
  connectExtended,
  connectExtendedPair,
  connectedCall,
  ringingCall,
} from '../../support/extended-flows.ts'
import { claimsOf, signingKeyEnv, signToken } from '../../support/session-tokens.ts'
import { inviteOf } from '../../support/sessions.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

/** The messages of an extended session, and their form [EXT1, EXT2, EXT3, EXT5, WS5]. */
export function registerSessions(name: string, start: Start): void {
  describe(`extended sessions, ${name}`, () => {
    const service = serviceFor(start, signingKeyEnv)
    registerNumbers(service)
    registerReplies(service)
    registerMeaning(service)
    registerAlerting(service)
    registerRefresh(service)
  })
  describe(`ICE servers of extended sessions, ${name}`, () => {
    const turn = { RINGWIRE_TURN_URLS: 'turn:127.0.0.1:3478', RINGWIRE_TURN_SECRET: 'north', RINGWIRE_TURN_TTL_S: '4' }
    registerIceServers(serviceFor(start, { ...signingKeyEnv, ...turn, RINGWIRE_TOKEN_TTL_S: '60' }))
  })
}

const isoInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

function registerNumbers(service: () => Service): void {
  test('[EXT1] auth.ok says who, which session, which epoch, and what there is', async () => {
    const userId = someone('ann')
    const ann = await connectExtended(service(), { user_id: userId, role: 'customer', display_name: 'Ann' })
    expect(ann.all).toHaveLength(1)
    const { event, success, data, seq } = ann.hello as never as Record<string, never>
    expect([event, success, seq]).toEqual(['auth.ok', true, undefined] as never)
    expect(data).toEqual({
      user_id: userId,
      role: 'customer',
      display_name: 'Ann',
      socket_id: expect.stringMatching(/^[\w-]{25}$/),
      session_id: expect.stringMatching(/^[\w-]{25}$/),
      epoch: expect.stringMatching(/^[\w-]+$/),
      resume_window_ms: 120_000,
      server_time: expect.stringMatching(isoInstant),
      recovered: false,
      handled: 0,
      active_calls: [],
    } as never)
  })

  test('[EXT1] every push has the next seq, also of several calls; auth.ok and replies have none', async () => {
    const pair = await connectExtendedPair(service())
    for (let round = 0; round < 3; round++) {
      const callUuid = await connectedCall(pair)
      for (let n = 0; n < 5; n++) pair.caller.send('webrtc.ice_candidate', candidate(callUuid, n))
      await pair.caller.request('call.end', { call_uuid: callUuid })
      await pair.callee.next('call.ended', about(callUuid))
    }
    for (const { all, pushes } of [pair.caller, pair.callee]) {
      expect(pushes.map(({ seq }) => seq)).toEqual(pushes.map((_, index) => index + 1))
      for (const message of all) expect('seq' in message).toBe(message.request_id === undefined && !message.success)
    }
    expect(pair.callee.pushes).toHaveLength(3 * 7)
  })

  test('[EXT1] call events and the snapshot carry the version of the call, relays none', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await connectedCall(pair)
    await pair.callee.request('webrtc.ice_candidate', candidate(callUuid, 0))
    await pair.caller.next('webrtc.ice_candidate')
    await pair.caller.settle()
    const versions = pair.caller.pushes.map(({ event, version }) => [event, version])
    expect(versions).toEqual([
      ['call.accepted', 2],
      ['call.status', 3],
      ['webrtc.ice_candidate', undefined],
    ])
    const tab = await connectExtended(service(), { user_id: pair.callerId, role: 'customer' })
    expect(tab.hello?.data.active_calls).toEqual([
      {
        call_uuid: callUuid,
        status: 'connected',
        version: 3,
        direction: 'outgoing',
        peer: { user_id: pair.calleeId, role: 'agent', display_name: pair.calleeId },
        call_type: 'audio',
        context_type: 'order',
        context_id: 'order-1',
        started_at: expect.stringMatching(isoInstant),
        expires_at: expect.stringMatching(isoInstant),
        holds_place: false,
      },
    ])
  })

  test('[EXT1] a new session gets call.ringing of what rings, after auth.ok and under seq 1', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await ringingCall(pair)
    const phone = await connectExtended(service(), { user_id: pair.calleeId, role: 'agent', device_id: 'phone' })
    await phone.settle()
    expect(phone.all.slice(0, 2).map(({ event, seq }) => [event, seq])).toEqual([
      ['auth.ok', undefined],
      ['call.ringing', 1],
    ])
    expect(phone.pushes[0]?.data.call_uuid).toBe(callUuid)
    expect(phone.hello?.data.active_calls[0]).toMatchObject({ call_uuid: callUuid, status: 'ringing' })
  })
}

function registerReplies(service: () => Service): void {
  /** Replies to one request_id, in whatever events they came. */
  const repliesTo = (client: ExtendedClient, id: string) => client.all.filter(({ request_id }) => request_id === id)

  test('[EXT2] exactly one reply to every verb and relay', async () => {
    const pair = await connectExtendedPair(service())
    const { caller, callee, calleeId } = pair
    const callUuid = crypto.randomUUID()
    const data = { call_uuid: callUuid }
    const sdp = { type: 'offer', sdp: 'v=0' }
    const steps: [ExtendedClient, string, object, string][] = [
      [caller, 'call.invite', inviteOf(calleeId, data), 'call.invited'],
      [callee, 'call.alerting', data, 'ringing'],
      [caller, 'webrtc.offer', { ...data, sdp }, 'ringing'],
      [callee, 'call.accept', data, 'accepted'],
      [callee, 'webrtc.answer', { ...data, sdp: { ...sdp, type: 'answer' } }, 'accepted'],
      [caller, 'webrtc.ice_candidate', candidate(callUuid, 0), 'accepted'],
      [caller, 'webrtc.ice_candidate', { ...data, candidate: null }, 'accepted'],
      [caller, 'call.connected', data, 'connected'],
      [callee, 'call.connected', data, 'connected'],
      [callee, 'call.end', data, 'ended'],
      [caller, 'call.end', data, 'ended'],
      [caller, 'call.cancel', data, 'ended'],
      [callee, 'call.reject', data, 'ended'],
      [caller, 'webrtc.ice_candidate', candidate(callUuid, 1), 'ended'],
    ]
    for (const [index, [client, event, body, answer]] of steps.entries()) {
      const reply = await client.request(event, body, `r${index}`)
      if (answer === 'call.invited') expect(reply.event).toBe(answer)
      else expect([reply.event, reply.data]).toEqual(['call.ack', { call_uuid: callUuid, status: answer }])
    }
    for (const client of [caller, callee]) await client.settle()
    for (const [index, [client]] of steps.entries()) expect(repliesTo(client, `r${index}`)).toHaveLength(1)
  })

  test('[EXT2] an error is the one reply; a request without request_id gets only errors', async () => {
    const { caller, calleeId } = await connectExtendedPair(service())
    const data = { call_uuid: crypto.randomUUID() }
    expect((await caller.request('call.accept', data, 'bad')).error.code).toBe('CALL_NOT_FOUND')
    caller.send('call.invite', inviteOf(calleeId, data))
    caller.send('call.cancel', data)
    caller.send('call.accept', data)
    await caller.settle()
    expect(repliesTo(caller, 'bad')).toHaveLength(1)
    const unasked = caller.all.filter(({ request_id, success }) => request_id === undefined && !success)
    expect(unasked.map(({ event, error }) => [event, error?.code])).toEqual([['call.error', 'CALL_NOT_PARTICIPANT']])
  })
}

function registerMeaning(service: () => Service): void {
  test('[EXT3] a reply to a relay: it is in the log of a peer that has no socket, and comes with the resume', async () => {
    const pair = await connectExtendedPair(service())
    const callUuid = await answeredCall(pair)
    await pair.callee.die()
    for (let n = 0; n < 20; n++) {
      const { event } = await pair.caller.request('webrtc.ice_candidate', candidate(callUuid, n))
      expect(event).toBe('call.ack')
    }
    expect((await pair.callee.connect()).data.recovered).toBe(true)
    await pair.callee.settle()
    expect(candidatesOf(pair.callee, callUuid)).toEqual(Array.from({ length: 20 }, (_, n) => n))
  })
}

function registerAlerting(service: () => Service): void {
  test('[EXT5] call.alerting of a phone that really rings is pushed to the caller, of every device', async () => {
    const pair = await connectExtendedPair(service())
    const phone = await connectExtended(service(), { user_id: pair.calleeId, role: 'agent', device_id: 'phone' })
    const callUuid = await ringingCall(pair)
    const by = { user_id: pair.calleeId, role: 'agent' }
    for (const client of [pair.callee, phone]) {
      await client.request('call.alerting', { call_uuid: callUuid })
      expect((await pair.caller.next('call.alerting')).data).toEqual({ call_uuid: callUuid, by })
    }
    // Neither the caller nor a stranger says that it rings.
    expect((await pair.caller.request('call.alerting', { call_uuid: callUuid })).error.code).toBe(
      'CALL_NOT_PARTICIPANT',
    )
    const { caller: stranger } = await connectExtendedPair(service())
    expect((await stranger.request('call.alerting', { call_uuid: callUuid })).error.code).toBe('CALL_NOT_FOUND')
  })

  test('[EXT5] a base caller never hears of it', async () => {
    const callerId = someone('base')
    const base = await service().connect({ user_id: callerId, role: 'customer' })
    const callee = await connectExtended(service(), { user_id: someone('callee'), role: 'agent' })
    base.send('call.invite', inviteOf(callee.hello?.data.user_id))
    const { call_uuid } = (await callee.next('call.ringing')).data
    await callee.request('call.alerting', { call_uuid })
    await callee.request('call.accept', { call_uuid })
    await base.next('call.accepted')
    await callee.request('call.connected', { call_uuid })
    await base.settle()
    const heard = base.all.filter(({ request_id: id }) => id === undefined).map(({ event }) => event)
    expect(heard).toEqual(['auth.ok', 'call.invited', 'call.accepted'])
  })
}

function registerRefresh(service: () => Service): void {
  test('[WS5] auth.refresh takes a token of the same participant and device, and no other', async () => {
    const userId = someone('ann')
    const wish = { user_id: userId, role: 'customer', device_id: 'phone' } as const
    const ann = await connectExtended(service(), wish)
    const good = await service().token(wish)
    const claims = claimsOf(good)
    const nowS = Math.floor(Date.now() / 1000)
    const bad = {
      'another device': await service().token({ ...wish, device_id: 'tablet' }),
      'no device': await service().token({ user_id: userId, role: 'customer' }),
      'another user': await service().token({ ...wish, user_id: someone('eve') }),
      'another role': await service().token({ ...wish, role: 'agent' }),
      expired: signToken({ ...claims, exp: nowS - 60 }),
      'another key': signToken(claims, { key: Buffer.alloc(32, 9) }),
      garbage: 'garbage',
    }
    for (const [what, token] of Object.entries(bad)) {
      const reply = await ann.request('auth.refresh', { token })
      expect([what, reply.error?.code]).toEqual([what, 'AUTH_TOKEN_INVALID'])
    }
    const { event, data } = await ann.request('auth.refresh', { token: good })
    expect(event).toBe('auth.refreshed')
    expect(data).toEqual({ expires_at: new Date(Number(claims.exp) * 1000).toISOString() })
  })

  test('[WS5] a session goes on with the rights of its new token, past the end of the first one', async () => {
    const pair = await connectExtendedPair(service())
    const base = claimsOf(await service().token({ user_id: pair.callerId, role: 'customer' }))
    const nowS = Math.floor(Date.now() / 1000)
    const exp = Math.ceil((Date.now() + 2_000) / 1000)
    await pair.caller.request('auth.refresh', { token: signToken({ ...base, exp }) })
    await Bun.sleep(exp * 1000 - Date.now() + clockMs)
    const refused = await pair.caller.request('call.invite', inviteOf(pair.calleeId))
    expect(refused.error.code).toBe('AUTH_TOKEN_INVALID')
    await pair.caller.request('auth.refresh', { token: signToken({ ...base, exp: nowS + 600 }) })
    expect((await pair.caller.request('call.invite', inviteOf(pair.calleeId))).event).toBe('call.invited')
    await pair.caller.request('auth.refresh', { token: signToken({ ...base, allowed_peer_roles: ['nobody'] }) })
    const role = await pair.caller.request('call.invite', inviteOf(pair.calleeId))
    expect(role.error.code).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
  })

  test('[WS5] past the end of its token a call neither rings at a session nor waits for it when another one is busy', async () => {
    const { caller, callee: expired, calleeId } = await connectExtendedPair(service())
    const good = await connectExtended(service(), { user_id: calleeId, role: 'agent' })
    const claims = claimsOf(await service().token({ user_id: calleeId, role: 'agent' }))
    const exp = Math.ceil((Date.now() + 2_000) / 1000)
    await expired.request('auth.refresh', { token: signToken({ ...claims, exp }) })
    await Bun.sleep(exp * 1000 - Date.now() + clockMs)
    const invited = await caller.request('call.invite', inviteOf(calleeId))
    expect(invited.data.delivered).toBe(true)
    const { call_uuid } = (await good.next('call.ringing')).data
    await good.request('call.reject', { call_uuid, reason: 'busy' })
    expect((await caller.next('call.rejected')).data.reason).toBe('busy')
    await expired.settle()
    expect(expired.pushes).toEqual([])
  })

  test('[EXT1] what is extended alone is unknown to a base session', async () => {
    const wish = { user_id: someone('base'), role: 'customer' }
    const base = await service().connect(wish)
    base.send('auth.refresh', { token: await service().token(wish) }, 'r')
    expect((await base.next('call.error')).error.code).toBe('UNKNOWN_EVENT')
  })
}

function registerIceServers(service: () => Service): void {
  const usernames = (servers: { username?: string }[]) => servers.flatMap(({ username }) => username ?? [])

  test('[EXT5] fresh TURN credentials are pushed before the old ones run out, again and again', async () => {
    const ann = await connectExtended(service(), { user_id: someone('ann'), role: 'customer' })
    const seen = new Set<string>()
    for (let push = 0; push < 2; push++) {
      const { data, seq } = await ann.next('ice.servers')
      expect(seq).toBe(push + 1)
      const [username] = usernames(data.ice_servers)
      const expiresAt = Number(username?.split(':')[0])
      expect(Date.parse(data.expires_at)).toBe(expiresAt * 1000)
      expect(expiresAt * 1000).toBeGreaterThan(Date.now())
      seen.add(username ?? '')
    }
    expect(seen.size).toBe(2)
  })

  test('[WS5] [EXT5] past the end of its token nothing new comes to a session; auth.refresh makes it whole, and what rings then rings there', async () => {
    const { caller, callee, calleeId } = await connectExtendedPair(service())
    const claims = claimsOf(await service().token({ user_id: calleeId, role: 'agent' }))
    const exp = Math.ceil((Date.now() + 2_000) / 1000)
    await callee.request('auth.refresh', { token: signToken({ ...claims, exp }) })
    await Bun.sleep(exp * 1000 - Date.now() + clockMs)
    const invited = await caller.request('call.invite', inviteOf(calleeId))
    expect(invited.data.delivered).toBe(false)
    const { call_uuid } = invited.data
    expect((await callee.request('call.accept', { call_uuid })).error.code).toBe('AUTH_TOKEN_INVALID')
    const heard = (name: string) => callee.all.filter(({ event }) => event === name).length
    const before = heard('ice.servers')
    // Of the same age, and due at the same time.
    const other = await connectExtended(service(), { user_id: someone('other'), role: 'agent' })
    for (let push = 0; push < 2; push++) await other.next('ice.servers')
    expect([heard('ice.servers'), heard('call.ringing')]).toEqual([before, 0])

    await callee.request('auth.refresh', { token: signToken({ ...claims, exp: exp + 600 }) })
    expect((await callee.next('call.ringing')).data.call_uuid).toBe(call_uuid)
    await callee.next('ice.servers')
    expect((await callee.request('call.accept', { call_uuid })).event).toBe('call.ack')
  })

  test('[EXT5] POST /v1/call/ice-servers gives them for a session token', async () => {
    const token = await service().token({ user_id: someone('ann'), role: 'customer' })
    const ask = (headers: Record<string, string>) =>
      fetch(`${service().url}/v1/call/ice-servers`, { method: 'POST', headers })
    const answer = await ask({ Authorization: `Bearer ${token}` })
    expect(answer.status).toBe(200)
    const body = (await answer.json()) as { ice_servers: { username?: string }[]; expires_at: string }
    expect(usernames(body.ice_servers)).toHaveLength(1)
    expect(Date.parse(body.expires_at)).toBeGreaterThan(Date.now())
    for (const [headers, code] of [
      [{}, 'AUTH_TOKEN_REQUIRED'],
      [{ Authorization: 'Bearer garbage' }, 'AUTH_TOKEN_INVALID'],
    ] as [Record<string, string>, string][]) {
      const refused = await ask(headers)
      expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([401, code])
    }
  })
}
