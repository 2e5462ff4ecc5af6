import { describe, expect, test } from 'bun:test'
import { createClient } from './client.ts'
import {
  active,
  agent,
  createFake,
  type FakeSocket,
  failure,
  fakeClient,
  invited,
  onlineFake,
  rings,
  start,
  tokenFor,
  turn,
  uuid,
} from './environment.fixture.ts'
import type { RingwireError } from './error.ts'
import type { Call, PeerState } from './types.ts'

describe('a call', () => {
  test('[INV7] goes by the uuid that the service gives it', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    const chosen = call.callUuid
    fake.socket.replies('call.invited', { ...invited, call_uuid: uuid(7) })
    await call.invited
    expect(call.callUuid).toBe(uuid(7))
    expect([fake.client.find(uuid(7).toUpperCase()), fake.client.find(chosen)]).toEqual([call, undefined])
    fake.socket.says({ event: 'call.accepted', data: { call_uuid: uuid(7), status: 'accepted' }, seq: 1 })
    expect(call.state.name).toBe('accepted')
  })

  test('[INV7] that was taken back before it had that uuid is taken back by it, too', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    void call.cancel()
    fake.socket.replies('call.invited', { ...invited, call_uuid: uuid(7) }, 'call.invite')
    expect(fake.socket.sent.map(({ event, data }) => [event, data.call_uuid])).toEqual([
      ['call.invite', call.callUuid],
      ['call.cancel', call.callUuid],
      ['call.cancel', uuid(7)],
    ])
  })

  describe('that was hung up at once rings nobody', () => {
    const cancels = (fake: { socket: { sent: readonly { event: string }[] } }) =>
      fake.socket.sent.slice(1).map(({ event }) => event)

    for (const [code, details] of [
      ['SERVICE_UNAVAILABLE', { retryable: true }],
      ['AUTH_TOKEN_INVALID', {}],
    ] as const) {
      test(`an invite that fails with ${code} is not asked again`, async () => {
        const fake = await onlineFake()
        const call = fake.client.call(agent)
        const ended = call.end()
        fake.socket.fails(code, details, 'call.invite')
        fake.socket.fails('CALL_NOT_FOUND', {}, 'call.cancel')
        await ended
        await fake.pass(20_000)
        expect(cancels(fake).filter((event) => event !== 'auth.refresh')).toEqual(['call.cancel'])
      })
    }

    test('an invite that waits to be asked again is not, and what it may have done is cancelled', async () => {
      const fake = await onlineFake()
      const call = fake.client.call(agent)
      fake.socket.fails('SERVICE_UNAVAILABLE', { retryable: true })
      void call.end()
      await fake.pass(5_000)
      expect(cancels(fake)).toEqual(['call.cancel'])
    })

    test('[INV8] an invite over the limit never was', async () => {
      const fake = await onlineFake()
      const call = fake.client.call(agent)
      fake.socket.fails('RATE_LIMITED', { retryable: true, retry_after_ms: 1_000 })
      await call.end()
      await fake.pass(5_000)
      expect(cancels(fake)).toEqual([])
    })

    test('an invite that the service has after all is cancelled again', async () => {
      const fake = await onlineFake()
      const call = fake.client.call(agent)
      void call.end()
      fake.socket.fails('CALL_NOT_FOUND', {}, 'call.cancel')
      fake.socket.replies('call.invited', { ...invited, call_uuid: call.callUuid }, 'call.invite')
      expect(cancels(fake)).toEqual(['call.cancel', 'call.cancel'])
    })
  })

  test('whose invite is given up is cancelled: it may ring', async () => {
    const fake = await onlineFake({ requestTimeoutMs: 60_000 })
    const call = fake.client.call(agent)
    while (call.state.name !== 'over') {
      fake.socket.fails('SERVICE_UNAVAILABLE', { retryable: true, retry_after_ms: 10 })
      await fake.pass(10)
    }
    expect(call.state).toMatchObject({ reason: 'sdk.failed', error: { code: 'SERVICE_UNAVAILABLE' } })
    expect(fake.socket.events().slice(-2)).toEqual(['6 call.invite', '7 call.cancel'])
  })

  test('[INV3] whose invite is answered when all is over, is over', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    fake.socket.replies('call.invited', { ...invited, call_uuid: call.callUuid, status: 'rejected' })
    expect(call.state).toMatchObject({ name: 'over', status: 'rejected', reason: 'sdk.lost' })
  })

  test('that was rejected without a network does not ring again in the next session', async () => {
    const fake = await onlineFake()
    const incoming: Call[] = []
    fake.client.on('incoming', (call) => incoming.push(call))
    fake.socket.says(rings(1))
    fake.socket.ends(1006)
    void incoming[0]!.reject()
    await fake.pass(500)
    const ringing = active(uuid(1), { status: 'ringing', direction: 'incoming', holds_place: false })
    fake.socket.ok({ session_id: 's2', active_calls: [ringing] })
    fake.socket.says(rings(1))
    expect(incoming).toHaveLength(1)
    expect(fake.client.calls).toEqual([])
    expect(fake.socket.events()).toEqual(['1 call.reject'])
  })

  test('[INV6] of somebody whom this client invites at this moment is held back, and rings when it was no glare', async () => {
    const fake = await onlineFake()
    const incoming: Call[] = []
    fake.client.on('incoming', (call) => incoming.push(call))
    const call = fake.client.call(agent)
    fake.socket.says(rings(1))
    fake.socket.says(rings(2, uuid(2), 'somebody else'))
    expect(incoming.map(({ callUuid }) => callUuid)).toEqual([uuid(2)])
    expect(fake.client.calls.map(({ callUuid }) => callUuid)).toEqual([call.callUuid, uuid(2)])
    fake.socket.fails('CALLEE_BUSY', {}, 'call.invite')
    expect(call.state).toMatchObject({ name: 'over', reason: 'sdk.failed', error: { code: 'CALLEE_BUSY' } })
    expect(incoming.map(({ callUuid }) => callUuid)).toEqual([uuid(2), uuid(1)])
  })

  test('[INV6] the same where it is found after a gap: it is the call that is answered, and no second one', async () => {
    const fake = await onlineFake()
    const incoming: Call[] = []
    fake.client.on('incoming', (call) => incoming.push(call))
    const call = fake.client.call(agent)
    const calls = [active(uuid(1), { status: 'ringing', direction: 'incoming', holds_place: false })]
    fake.socket.says({ event: 'session.reset', data: { session_id: 's1', epoch: 'e2', active_calls: calls }, seq: 1 })
    expect([incoming, fake.client.calls]).toEqual([[], [call]])
    fake.socket.fails('CALL_GLARE', { call_uuid: uuid(1) }, 'call.invite')
    fake.socket.replies('call.ack', { call_uuid: uuid(1), status: 'accepted' }, 'call.accept')
    expect([incoming, fake.client.calls, call.callUuid]).toEqual([[], [call], uuid(1)])
    // If it was not glare, it rings.
    const other = fake.client.call({ userId: 'other', role: 'agent' })
    const theirs = active(uuid(2), {
      ...{ status: 'ringing', direction: 'incoming', holds_place: false },
      peer: { user_id: 'other', role: 'agent', display_name: 'Other' },
    })
    const active_calls = [active(uuid(1)), theirs]
    fake.socket.says({ event: 'session.reset', data: { session_id: 's1', epoch: 'e3', active_calls }, seq: 1 })
    expect(incoming).toEqual([])
    fake.socket.fails('CALLEE_BUSY', {}, 'call.invite')
    expect([other.state.name, incoming.map(({ callUuid }) => callUuid)]).toEqual(['over', [uuid(2)]])
  })

  test('[INV6] glare with a call that was not heard of is answered all the same', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    let glare: RingwireError | undefined
    call.on('glare', (error) => (glare = error as RingwireError))
    fake.socket.fails('CALL_GLARE', { call_uuid: uuid(9) })
    expect(glare).toMatchObject({ code: 'CALL_GLARE', callUuid: uuid(9) })
    expect(call).toMatchObject({ callUuid: uuid(9), direction: 'incoming' })
    expect(fake.socket.sent.at(-1)).toMatchObject({ event: 'call.accept', data: { call_uuid: uuid(9) } })
    fake.socket.replies('call.ack', { call_uuid: uuid(9), status: 'accepted' })
    await call.invited
    expect(call.state.name).toBe('accepted')
  })

  test('an accept that had no answer in time may still succeed', async () => {
    const fake = await onlineFake({ heartbeatTimeoutMs: 60_000 })
    fake.socket.says(rings(1))
    const [call] = fake.client.calls
    const asked = failure(call!.accept())
    expect(call!.state).toMatchObject({ answering: true })
    await fake.pass(10_000)
    expect((await asked).code).toBe('TIMEOUT')
    // A reply ends it, not a timer.
    expect(call!.state).toMatchObject({ name: 'ringing', answering: true })
    void call!.accept()
    expect(fake.socket.events()).toEqual(['1 call.accept', '2 call.accept'])
    fake.socket.replies('call.ack', { call_uuid: uuid(1), status: 'accepted' }, 'call.accept')
    expect(call!.state.name).toBe('accepted')
  })

  test('an accept without a network is asked until it has a reply, also in a new session', async () => {
    const fake = await onlineFake({ reconnectMaxMs: 500 })
    fake.socket.says(rings(1))
    const [call] = fake.client.calls
    fake.socket.ends(1006)
    const asked = failure(call!.accept())
    await fake.pass(20_000)
    expect((await asked).code).toBe('TIMEOUT')
    expect(call!.state).toMatchObject({ name: 'ringing', answering: true })
    const ringing = active(uuid(1), { status: 'ringing', direction: 'incoming', holds_place: false })
    fake.socket.ok({ session_id: 's2', active_calls: [ringing] })
    expect(fake.socket.events()).toEqual(['1 call.accept'])
    fake.socket.fails('ACTION_NOT_ALLOWED')
    expect(call!.state).toMatchObject({ name: 'ringing', answering: false })
  })

  test('that is declined while its accept waits for the network is not answered for a moment', async () => {
    const fake = await onlineFake({ reconnectMaxMs: 500 })
    fake.socket.says(rings(1))
    const [call] = fake.client.calls
    fake.socket.ends(1006)
    const asked = failure(call!.accept())
    void call!.reject()
    expect(['CONNECTION_CLOSED', 'UNKNOWN_OUTCOME']).toContain((await asked).code)
    await fake.pass(500)
    fake.socket.ok({ recovered: true })
    expect(fake.socket.events()).toEqual(['1 call.reject'])
  })

  test('a call before connect() is an error at once, one of a closed client is over at once', async () => {
    const fake = fakeClient()
    expect(() => fake.client.call(agent)).toThrow('Call connect() before call().')
    fake.client.connect()
    fake.client.close()
    const call = fake.client.call(agent)
    const states: unknown[] = []
    call.on('state', (state) => states.push(state))
    await turn()
    expect(states).toMatchObject([{ name: 'over', reason: 'sdk.failed', error: { code: 'CONNECTION_CLOSED' } }])
    expect((await failure(call.invited)).code).toBe('CONNECTION_CLOSED')
  })

  test('its signals are claimed by one at a time; it names its client, and can be printed', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    const release = call.claimSignals()
    expect(() => call.claimSignals()).toThrow('Something else negotiates')
    release()
    const again = call.claimSignals()
    release()
    expect(() => call.claimSignals()).toThrow('Something else negotiates')
    again()
    expect(call.client).toBe(fake.client)
    expect(JSON.parse(JSON.stringify(call))).toMatchObject({ callUuid: call.callUuid })
  })

  test('[END1] hanging up never fails: not even a call that never was', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    const cancelled = call.cancel()
    fake.socket.fails('CALL_PEER_ROLE_NOT_ALLOWED', {}, 'call.invite')
    fake.socket.fails('CALL_NOT_FOUND')
    await cancelled
    await call.end()
    expect(fake.socket.events()).toEqual(['1 call.invite', '2 call.cancel'])
  })

  test('that was ended without a network is not found again in the next session', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    fake.socket.replies('call.invited', { ...invited, call_uuid: call.callUuid, status: 'accepted' })
    fake.socket.ends(1006)
    void call.end()
    await fake.pass(500)
    const restored: Call[] = []
    fake.client.on('restored', (it) => restored.push(it))
    fake.socket.ok({ session_id: 's2', active_calls: [active(call.callUuid)] })
    expect([restored, fake.client.calls]).toEqual([[], []])
    expect(fake.socket.events()).toEqual(['1 call.end'])
  })

  test('[EXT1] that rings for a new session is announced by call.ringing, which has its metadata', async () => {
    const fake = await onlineFake()
    const metadata: unknown[] = []
    fake.client.on('incoming', (call) => metadata.push(call.metadata))
    fake.socket.ends(1006)
    await fake.pass(500)
    const ringing = active(uuid(1), { status: 'ringing', direction: 'incoming', holds_place: false })
    fake.socket.ok({ session_id: 's2', active_calls: [ringing] })
    const push = rings(1)
    fake.socket.says({ ...push, data: { ...push.data, metadata: { order: 7 } } })
    expect(metadata).toEqual([{ order: 7 }])
  })

  test('an accept that comes too late ends it', async () => {
    for (const [code, over] of [
      ['CALL_ALREADY_ANSWERED', { status: 'accepted', reason: 'answered_elsewhere' }],
      ['CALL_INVALID_STATE', { status: undefined, reason: 'sdk.lost' }],
      ['CALL_NOT_FOUND', { status: undefined, reason: 'sdk.lost' }],
    ] as const) {
      const fake = await onlineFake()
      fake.socket.says(rings(1))
      const [call] = fake.client.calls
      const asked = failure(call!.accept())
      fake.socket.fails(code)
      expect((await asked).code).toBe(code)
      expect(call!.state).toMatchObject({ name: 'over', ...over })
    }
  })

  test('[RES4] a log that was lost under the live socket: numbers begin again, media is told, requests stay', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    fake.socket.replies('call.invited', { ...invited, call_uuid: call.callUuid })
    fake.socket.says(rings(1))
    const [, gone] = fake.client.calls
    const heard: unknown[] = []
    call.on('resynced', (it) => heard.push(it))
    const asked = call.connected()
    const calls = [
      active(call.callUuid),
      active(uuid(3), { status: 'ringing', direction: 'incoming', holds_place: false }),
    ]
    fake.socket.says({ event: 'session.reset', data: { session_id: 's1', epoch: 'e2', active_calls: calls }, seq: 1 })
    expect(call.state.name).toBe('accepted')
    expect(heard).toEqual([{ restored: false }])
    expect(gone!.state).toMatchObject({ name: 'over', reason: 'sdk.lost' })
    expect(fake.client.calls.map(({ callUuid }) => callUuid)).toEqual([call.callUuid, uuid(3)])
    fake.socket.replies('call.ack', { call_uuid: call.callUuid, status: 'connected' })
    await asked
    fake.socket.says(rings(2, uuid(4)))
    expect(fake.client.calls).toHaveLength(3)
    fake.socket.ends(1006)
    await fake.pass(500)
    expect(fake.socket.url).toContain('epoch=e2&seq=2&n=2')
  })

  describe('whose place may be somebody else’s', () => {
    async function answeredFake() {
      const fake = await onlineFake()
      const call = fake.client.call(agent)
      fake.socket.replies('call.invited', { ...invited, call_uuid: call.callUuid, status: 'accepted' })
      return { fake, call, elsewhere: active(call.callUuid, { holds_place: false }) }
    }
    const elsewhereNow = { name: 'over', status: 'accepted', reason: 'sdk.elsewhere' }

    test('[PLACE3] is over when a request of its holder is refused', async () => {
      for (const ask of [
        (call: Call) => call.connected(),
        (call: Call) => call.sendOffer({ type: 'offer', sdp: '' }),
      ]) {
        const { fake, call } = await answeredFake()
        const asked = failure(ask(call))
        fake.socket.fails('CALL_NOT_PARTICIPANT')
        expect(call.state).toMatchObject({ ...elsewhereNow, error: { code: 'CALL_NOT_PARTICIPANT' } })
        expect((await asked).code).toBe('CALL_NOT_PARTICIPANT')
      }
    })

    test('goes on where the wrong side asked', async () => {
      const { fake, call } = await answeredFake()
      void call.accept()
      fake.socket.fails('CALL_NOT_PARTICIPANT')
      void call.alerting()
      fake.socket.fails('CALL_NOT_PARTICIPANT')
      expect(call.state.name).toBe('accepted')
    })

    test('[PLACE4] is asked for after every gap: by a candidate that is none, so that the peer hears nothing', async () => {
      const gaps: ((fake: Awaited<ReturnType<typeof onlineFake>>, calls: readonly object[]) => Promise<void>)[] = [
        async (fake, active_calls) => {
          fake.socket.ends(1006)
          await fake.pass(500)
          fake.socket.ok({ recovered: true, handled: 1, active_calls })
        },
        async (fake, active_calls) => {
          fake.socket.ends(1006)
          await fake.pass(500)
          fake.socket.ok({ session_id: 's2', active_calls })
        },
        async (fake, active_calls) => {
          fake.socket.says({ event: 'session.reset', data: { session_id: 's1', epoch: 'e2', active_calls }, seq: 1 })
        },
      ]
      for (const gap of gaps) {
        const { fake, call, elsewhere } = await answeredFake()
        await gap(fake, [elsewhere])
        expect(fake.socket.sent.at(-1)).toMatchObject({
          event: 'webrtc.ice_candidate',
          data: { call_uuid: call.callUuid, candidate: null },
        })
        expect(call.state.name).toBe('accepted')
        fake.socket.fails('CALL_NOT_PARTICIPANT')
        expect(call.state).toMatchObject(elsewhereNow)
      }
    })

    test('[PLACE5] of which call.accepted comes again has somebody new at the other end: it is signalled anew', async () => {
      const { fake, call } = await answeredFake()
      const resynced: object[] = []
      call.on('resynced', (how) => resynced.push(how))
      fake.socket.says({ event: 'call.accepted', data: { call_uuid: call.callUuid, status: 'accepted' }, seq: 1 })
      expect(resynced).toEqual([{ restored: false }])
      expect(call.state.name).toBe('accepted')
    })

    test('goes on where the place is its own after all', async () => {
      const { fake, call, elsewhere } = await answeredFake()
      fake.socket.ends(1006)
      await fake.pass(500)
      fake.socket.ok({ recovered: true, handled: 1, active_calls: [elsewhere] })
      fake.socket.replies('call.ack', { call_uuid: call.callUuid, status: 'accepted' })
      expect(call.state.name).toBe('accepted')
      expect(fake.socket.events()).toEqual(['2 webrtc.ice_candidate'])
    })

    test('[END4] is asked for in a new session that does not show it: its notice comes first, if there is one', async () => {
      const { fake, call } = await answeredFake()
      fake.socket.ends(1006)
      await fake.pass(500)
      fake.socket.ok({ recovered: false, active_calls: [] })
      expect(call.state.name).toBe('accepted')
      expect(fake.socket.sent).toMatchObject([{ event: 'webrtc.ice_candidate', data: { candidate: null } }])
      const ended = { call_uuid: call.callUuid, status: 'ended', reason: 'hangup', by: null, ended_at: '' }
      fake.socket.says({ event: 'call.ended', data: ended, seq: 1 })
      expect(call.state).toMatchObject({ name: 'over', status: 'ended', reason: 'hangup' })
    })

    test('is not asked for where the service shows that it is its own, nor by whom it only rings', async () => {
      const { fake, call } = await answeredFake()
      fake.socket.says(rings(1, uuid(5), 'somebody else'))
      fake.socket.ends(1006)
      await fake.pass(500)
      fake.socket.ok({ recovered: true, handled: 1, active_calls: [active(call.callUuid)] })
      expect(fake.socket.sent).toEqual([])
      expect(fake.client.calls).toHaveLength(2)
    })

    test('that ended there, or here while nobody heard, is over; its notice knows more, if it comes', async () => {
      for (const [tell, over] of [
        [(it: FakeSocket) => it.replies('call.ack', { status: 'ended' }), { status: 'ended', reason: 'sdk.lost' }],
        [
          (it: FakeSocket) => it.fails('CALL_INVALID_STATE', { status: 'ended' }),
          { status: 'ended', reason: 'sdk.lost' },
        ],
        [(it: FakeSocket) => it.fails('CALL_NOT_FOUND'), { status: undefined, reason: 'sdk.lost' }],
      ] as const) {
        const { fake, call } = await answeredFake()
        fake.socket.ends(1006)
        await fake.pass(500)
        fake.socket.ok({ recovered: true, handled: 1 })
        expect(call.state.name).toBe('accepted')
        tell(fake.socket)
        expect(call.state).toMatchObject({ name: 'over', ...over })
      }
      const { fake, call } = await answeredFake()
      fake.socket.ends(1006)
      await fake.pass(500)
      fake.socket.ok({ recovered: true, handled: 1 })
      const ended = { call_uuid: call.callUuid, status: 'ended', reason: 'hangup', by: null, ended_at: '' }
      fake.socket.says({ event: 'call.ended', data: ended, seq: 1 })
      fake.socket.replies('call.ack', { call_uuid: call.callUuid, status: 'ended' })
      expect(call.state).toMatchObject({ name: 'over', reason: 'hangup' })
    })

    test('is asked for again in each session, until there is an answer', async () => {
      const { fake, call, elsewhere } = await answeredFake()
      for (const recovered of [true, false]) {
        fake.socket.ends(1006)
        await fake.pass(2_000)
        fake.socket.ok({ recovered, session_id: 's1', handled: 1, active_calls: [elsewhere] })
        expect(fake.socket.events()).toEqual([`${recovered ? 2 : 1} webrtc.ice_candidate`])
      }
      fake.socket.fails('SERVICE_UNAVAILABLE', { retryable: true, retry_after_ms: 20_000 })
      await fake.pass(20_000)
      fake.socket.fails('CALL_NOT_PARTICIPANT')
      expect(call.state).toMatchObject(elsewhereNow)
    })

    test('[PLACE4] an accept that was on its way says itself what became of it', async () => {
      const fake = await onlineFake()
      fake.socket.says(rings(1))
      const [call] = fake.client.calls
      void call!.accept()
      fake.socket.ends(1006)
      await fake.pass(500)
      fake.socket.ok({
        session_id: 's2',
        active_calls: [active(uuid(1), { direction: 'incoming', holds_place: false })],
      })
      expect(call!.state).toMatchObject({ name: 'ringing', answering: true })
      fake.socket.fails('CALL_ALREADY_ANSWERED')
      expect(call!.state).toMatchObject({ name: 'over', reason: 'answered_elsewhere' })
    })
  })

  test('[RES2] answered elsewhere while this client was away', async () => {
    const fake = await onlineFake()
    fake.socket.says(rings(1))
    const [call] = fake.client.calls
    fake.socket.ends(1006)
    await fake.pass(500)
    fake.socket.ok({ session_id: 's2', active_calls: [active(uuid(1), { direction: 'incoming', holds_place: false })] })
    expect(call!.state).toMatchObject({ name: 'over', status: 'accepted', reason: 'answered_elsewhere' })
  })
})

describe('what is known of the other side', () => {
  const uuid1 = uuid(1)
  const absence = { since: new Date(start - 5_000).toISOString(), ends_at: new Date(start + 115_000).toISOString() }
  const away = { since: start - 5_000, endsAt: start + 115_000 }
  const about = (seq: number, event: string, data: object = {}) => ({ event, seq, data: { call_uuid: uuid1, ...data } })

  async function answered() {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    fake.socket.replies('call.invited', { ...invited, call_uuid: uuid1 })
    fake.socket.says(about(1, 'call.accepted', { status: 'accepted', display_name: 'Ben' }))
    const heard: PeerState[] = []
    call.on('peer', (state) => heard.push(state))
    return { fake, call, heard }
  }

  test('[MEDIA1] [PEER1] its name, what it sends and that it is away, as immutable snapshots', async () => {
    const { fake, call, heard } = await answered()
    expect(call.peer).toEqual({ ...agent, displayName: 'Ben' })
    const first = call.peerState
    expect(first).toEqual({ away: null, media: null, held: false })
    const media = { audio: false, video: true, screen: false }
    const origin = { from_user_id: 'agent', from_role: 'agent' }
    fake.socket.says(about(2, 'call.media', { ...media, ...origin }))
    fake.socket.says(about(3, 'call.peer_away', absence))
    fake.socket.says(about(4, 'call.peer_back'))
    // It went past the log, while the store of the logs was away [EXT3].
    fake.socket.says({ event: 'call.media', data: { call_uuid: uuid1, ...media, audio: true, ...origin } })
    expect(heard).toEqual([
      { away: null, media, held: false },
      { away, media, held: false },
      { away: null, media, held: false },
      { away: null, media: { ...media, audio: true }, held: false },
    ])
    expect(call.peerState).toBe(heard.at(-1)!)
    expect(first).toEqual({ away: null, media: null, held: false })
  })

  test('[MEDIA1] [PLACE5] what a session sent is not known of the one that takes its place', async () => {
    const { fake, call, heard } = await answered()
    const media = { audio: true, video: false, screen: false }
    fake.socket.says(about(2, 'call.media', { ...media, from_user_id: 'agent', from_role: 'agent' }))
    for (const seq of [3, 4]) fake.socket.says(about(seq, 'call.accepted', { status: 'accepted' }))
    expect(call.peerState).toEqual({ away: null, media: null, held: false })
    expect(heard.map((state) => state.media)).toEqual([media, null])
  })

  test('[HOLD1] that it holds the call, until it goes on, or another session takes its place', async () => {
    const { fake, call, heard } = await answered()
    const media = { audio: false, video: false, screen: false, from_user_id: 'agent', from_role: 'agent' }
    for (const [seq, held] of [true, false, undefined, true].entries())
      fake.socket.says(about(seq + 2, 'call.media', { ...media, ...(held !== undefined && { held }) }))
    expect(heard.map(({ held }) => held)).toEqual([true, false, false, true])
    expect(call.peerState.media).not.toHaveProperty('held')
    fake.socket.says(about(6, 'call.accepted', { status: 'accepted' }))
    expect(call.peerState).toEqual({ away: null, media: null, held: false })
  })

  test('[HOLD1] a hold is told once, with what is sent then; so is the end of it', async () => {
    const { fake, call } = await answered()
    const changes: boolean[] = []
    call.on('held', (held) => changes.push(held))
    const flags = { audio: true, video: false, screen: false }
    const silent = { audio: false, video: false, screen: false }
    void call.sendMedia(flags)
    const told = () => fake.socket.sent.filter(({ event }) => event === 'call.media').map(({ data }) => ({ ...data }))
    expect(told()).toEqual([{ call_uuid: uuid1, ...flags }])
    const held = call.hold()
    await call.hold()
    expect([call.held, ...changes]).toEqual([true, true])
    const [, reply] = fake.socket.sent.map(({ request_id }) => request_id)
    expect(reply).toBeString()
    fake.socket.replies('call.ack', { call_uuid: uuid1, status: 'accepted' })
    await held
    void call.resume()
    expect([call.held, ...changes]).toEqual([false, true, false])
    expect(told().slice(1)).toEqual([
      { call_uuid: uuid1, ...silent, held: true },
      { call_uuid: uuid1, ...flags, held: false },
    ])
  })

  test('[HOLD1] whoever listens says what is sent while the call is on hold, and it is told once', async () => {
    const { fake, call } = await answered()
    call.on('held', (held) => void call.sendMedia({ audio: held, video: false, screen: false }))
    void call.hold()
    const told = fake.socket.sent.filter(({ event }) => event === 'call.media')
    expect(told.map(({ data }) => data)).toEqual([
      { call_uuid: uuid1, audio: true, video: false, screen: false, held: true },
    ])
  })

  test('[HOLD1] a hold is told again where it may have been lost', async () => {
    const { fake, call } = await answered()
    void call.hold()
    fake.socket.ends(1006)
    await fake.pass(500)
    fake.socket.ok({ session_id: 's2', active_calls: [active(uuid1)] })
    expect(fake.socket.sent.at(-1)).toMatchObject({ event: 'call.media', data: { call_uuid: uuid1, held: true } })
    fake.socket.says(about(1, 'call.accepted', { status: 'accepted' }))
    expect(fake.socket.sent.at(-1)).toMatchObject({ event: 'call.media', data: { held: true } })
    expect(call.held).toBe(true)
  })

  test('[HOLD1] a call that rings, or is over, cannot be put on hold', async () => {
    const fake = await onlineFake()
    const call = fake.client.call(agent)
    expect(await call.hold().catch(({ code }) => code)).toBe('CALL_INVALID_STATE')
    await call.resume()
    void call.end()
    for (const change of [call.hold, call.resume]) expect(await change().catch(({ code }) => code)).toBe('CALL_OVER')
    expect([call.held, fake.socket.sent.some(({ event }) => event === 'call.media')]).toEqual([false, false])
  })

  test('[PEER1] the snapshot of a connection says it, too, and that it is over', async () => {
    const { fake, heard } = await answered()
    for (const more of [{ away: absence }, {}, {}]) {
      fake.socket.ends(1006)
      await fake.pass(500)
      const peer = { user_id: 'agent', role: 'agent', display_name: 'Ben', ...more }
      const server_time = new Date(fake.env.now()).toISOString()
      fake.socket.ok({ recovered: true, server_time, active_calls: [active(uuid1, { peer })] })
    }
    expect(heard.map((state) => state.away)).toEqual([away, null])
  })

  test('[MEDIA1] a mute while the service cannot be reached is told when it can, however late', async () => {
    const { fake, call } = await answered()
    fake.socket.ends(1006)
    const flags = { audio: false, video: true, screen: false }
    const told = call.sendMedia(flags).catch(({ code }) => code)
    await fake.pass(60_000)
    expect(await told).toBe('TIMEOUT')
    fake.client.wake()
    await fake.pass(0)
    fake.socket.ok({ recovered: true, active_calls: [active(uuid1)] })
    expect(fake.socket.sent).toMatchObject([{ event: 'call.media', data: { call_uuid: uuid1, ...flags } }])
  })

  test('[MEDIA1] of two mutes the newer one counts, also where the older one has to be told again', async () => {
    const { fake, call } = await answered()
    const flags = { audio: true, video: true, screen: false }
    void call.sendMedia({ ...flags, audio: false })
    fake.socket.fails('SERVICE_UNAVAILABLE', { retryable: true, retry_after_ms: 1_000 })
    void call.sendMedia(flags)
    fake.socket.replies('call.ack', { call_uuid: uuid1, status: 'accepted' })
    await fake.pass(1_000)
    expect(fake.socket.sent.slice(-3).map(({ data }) => data.audio)).toEqual([false, true, true])
  })

  test('[STAT1] how the media is here is told, also when the call is over', async () => {
    const { fake, call } = await answered()
    const stats = { rtt_ms: 40, codec: 'audio/opus' }
    void call.sendStats(stats)
    expect(fake.socket.sent.at(-1)).toMatchObject({ event: 'call.stats', data: { call_uuid: uuid1, stats } })
    void call.end()
    void call.sendStats({ rtt_ms: 80 })
    const told = { event: 'call.stats', data: { call_uuid: uuid1, stats: { rtt_ms: 80 } } }
    expect(fake.socket.sent.at(-1)).toMatchObject(told)
  })

  test('[MEDIA1] what this side sends is told, and told again where it may have been lost', async () => {
    const { fake, call } = await answered()
    const flags = { audio: true, video: false, screen: false }
    const done = call.sendMedia({ ...flags, more: 1 } as never)
    expect(fake.socket.sent.at(-1)).toMatchObject({ event: 'call.media', data: { call_uuid: uuid1, ...flags } })
    expect(fake.socket.sent.at(-1)?.data).not.toHaveProperty('more')
    fake.socket.replies('call.ack', { call_uuid: uuid1, status: 'accepted' })
    await done
    fake.socket.ends(1006)
    await fake.pass(500)
    fake.socket.ok({ session_id: 's2', active_calls: [active(uuid1)] })
    expect(fake.socket.sent.map(({ event }) => event)).toEqual(['call.media'])
  })
})

describe('a call that this page did not know', () => {
  const opened = async (visit: 'reload' | 'return' | 'copy', calls: object[]) => {
    const fake = createFake()
    const client = createClient(
      { getToken: async () => tokenFor(fake, 3_600_000) },
      { ...fake.env, visit: () => visit },
    )
    const heard: string[] = []
    client.on('restored', () => heard.push('restored'))
    client.on('restorable', (list) => heard.push(`restorable ${list.length}`))
    client.on('calls', (list) => heard.push(`calls ${list.length}`))
    client.connect()
    await turn()
    fake.socket.ok({ active_calls: calls })
    return { fake, client, heard }
  }

  test('goes on by itself after a reload, and waits for a gesture anywhere else', async () => {
    for (const visit of ['reload', 'return', 'copy'] as const) {
      const { client, heard } = await opened(visit, [active(uuid(1))])
      expect(heard).toEqual(visit === 'reload' ? ['calls 1', 'restored'] : ['restorable 1'])
      expect([client.calls.length, client.restorable.length]).toEqual(visit === 'reload' ? [1, 0] : [0, 1])
    }
  })

  test('a reload is the first session of a page, no later one', async () => {
    const { fake, client, heard } = await opened('reload', [])
    fake.socket.ends(1006)
    await fake.pass(500)
    fake.socket.ok({ session_id: 's2', active_calls: [active(uuid(1))] })
    expect([heard, client.restorable.map(({ callUuid }) => callUuid)]).toEqual([['restorable 1'], [uuid(1)]])
  })

  test('resume goes on with it, and its media begins anew', async () => {
    const { client, heard } = await opened('return', [active(uuid(1))])
    const [waiting] = client.restorable
    expect(waiting).toMatchObject({ callUuid: uuid(1), callType: 'video', direction: 'outgoing', startedAt: start })
    expect(waiting?.peer).toEqual({ userId: 'agent', role: 'agent', displayName: 'Agent' })
    const call = waiting!.resume()
    const resynced: object[] = []
    call.on('resynced', (how) => resynced.push(how))
    await turn()
    expect(waiting!.resume()).toBe(call)
    await turn()
    expect(resynced).toEqual([{ restored: true }])
    expect([client.calls, client.restorable]).toEqual([[call], []])
    expect(heard).toEqual(['restorable 1', 'restorable 0', 'calls 1'])
  })

  test('it waits no longer when it is ended here, or over', async () => {
    for (const isHere of [true, false]) {
      const { fake, client, heard } = await opened('return', [active(uuid(1))])
      if (isHere) void client.restorable[0]!.end()
      else {
        const data = { call_uuid: uuid(1), status: 'ended', reason: 'hangup', by: null, ended_at: 'now' }
        fake.socket.says({ event: 'call.ended', seq: 1, data })
      }
      expect(heard).toEqual(['restorable 1', 'restorable 0'])
      expect([client.calls, client.restorable]).toEqual([[], []])
      expect(fake.socket.events()).toEqual(isHere ? ['1 call.end'] : [])
    }
  })
})
