import { describe, expect, test } from 'bun:test'
import type { Call } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { somebody } from '../ports/sessions.fixture.ts'
import { SessionMovedError, StoreError } from '../ports/store-error.ts'
import { answered, connectPeer, done, eventsOf, invited, openDomains, type Peer } from './domain.fixture.ts'

describe('a holder that goes while another session asks for its place', () => {
  const openDomain = openDomains()

  /** An answered call, and what is done at the next load of it. */
  async function setUpCall() {
    const atLoad: (() => Promise<void>)[] = []
    const domain = await openDomain({
      store: (real) => ({
        async load(ref) {
          await atLoad.shift()?.()
          return real.load(ref)
        },
      }),
    })
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const holder = await connectPeer(domain, somebody())
    const call = await answered(domain, caller, holder)
    /** The close of its socket is observed. */
    async function loseHolder(): Promise<void> {
      await domain.sessions.detach(holder.id, holder.socket, false, Date.now())
      await domain.calls.run(call, { type: 'lose', sessionId: holder.id, node: holder.actor.node })
    }
    const end = ({ actor }: Peer) => domain.calls.verb(actor, 'end', call.callUuid, null)
    const connect = (deviceId: string) => connectPeer(domain, holder.actor.participant, deviceId)
    return { domain, caller, holder, call, atLoad, loseHolder, end, connect }
  }

  test('[PLACE2] its place is taken by its device at once, and not by another one', async () => {
    for (const device of ['phone', 'tablet']) {
      const { caller, atLoad, loseHolder, end, connect } = await setUpCall()
      const other = await connect(device)
      // After it was refused, and before anybody looks why.
      atLoad.push(loseHolder)
      const ends = device === 'phone'
      expect(await end(other)).toMatchObject(
        ends
          ? { ok: true, value: { status: 'ended', endReason: 'hangup' } }
          : { ok: false, error: { code: 'CALL_NOT_PARTICIPANT' } },
      )
      expect(atLoad).toEqual([])
      expect(eventsOf(caller)).toEqual(['call.accepted', 'call.peer_away', ...(ends ? ['call.ended'] : [])])
    }
  })

  test('[PLACE2] [PLACE4] its place is taken where somebody else has noted the loss while it was pinged', async () => {
    const { domain, caller, holder, call, loseHolder, end, connect } = await setUpCall()
    const phone = await connect('phone')
    let seen: Call | undefined
    holder.socket.probe = async () => {
      await loseHolder()
      seen = await domain.store.load(call)
      return false
    }
    expect(await end(phone)).toMatchObject({ ok: true, value: { status: 'ended', endReason: 'hangup' } })
    expect(seen).toMatchObject({ status: 'accepted', calleePlace: { state: 'vacant', sessionId: holder.id } })
    expect(eventsOf(caller)).toEqual(['call.accepted', 'call.peer_away', 'call.ended'])
  })
})

describe('an invite that comes again on another socket of its phone, while the first one is still to be committed', () => {
  const openDomain = openDomains()

  async function setUpRepeat() {
    let first: (() => Promise<unknown>) | undefined
    const domain = await openDomain({
      store: (real) => ({
        async invite(...given) {
          const before = first
          first = undefined
          await before?.()
          return real.invite(...given)
        },
      }),
    })
    const lost = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const phone = await connectPeer(domain, lost.actor.participant)
    const { userId, role } = (await connectPeer(domain, somebody())).actor.participant
    const data = { callee_user_id: userId, callee_role: role, call_uuid: crypto.randomUUID() }
    first = () => domain.calls.invite(lost.actor, data)
    const repeat = () => domain.calls.invite(phone.actor, data)
    const ref = { product: lost.actor.participant.product, callUuid: data.call_uuid }
    return { domain, lost, phone, repeat, ref }
  }

  test('[INV3] [PLACE4] takes the call of a socket that is dead', async () => {
    const { domain, lost, phone, repeat, ref } = await setUpRepeat()
    lost.socket.probe = async () => false
    expect(await repeat()).toMatchObject({ ok: true, value: { call_uuid: ref.callUuid, status: 'ringing' } })
    expect(await domain.store.load(ref)).toMatchObject({ callerPlace: { state: 'held', sessionId: phone.id } })
  })

  test('[INV3] [PLACE4] says what became of a call that ended while its holder was asked', async () => {
    const { domain, lost, repeat, ref } = await setUpRepeat()
    lost.socket.probe = async () => {
      await domain.calls.verb(lost.actor, 'cancel', ref.callUuid, null)
      return false
    }
    expect(await repeat()).toMatchObject({ ok: true, value: { call_uuid: ref.callUuid, status: 'cancelled' } })
  })

  test('[INV3] [PLACE3] leaves the call to a socket that lives', async () => {
    const { domain, lost, repeat, ref } = await setUpRepeat()
    lost.socket.probe = async () => true
    expect(await repeat()).toMatchObject({ ok: true, value: { call_uuid: ref.callUuid, status: 'ringing' } })
    expect(await domain.store.load(ref)).toMatchObject({ version: 1, callerPlace: { sessionId: lost.id } })
  })
})

describe('[PLACE2] what a client sent before its socket closed, and is done after that', () => {
  const openDomain = openDomains()

  async function setUpGone() {
    const domain = await openDomain()
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const callee = await connectPeer(domain, somebody())
    const call = await answered(domain, caller, callee)
    await domain.sessions.detach(caller.id, caller.socket, true, Date.now())
    await domain.calls.run(call, { type: 'lose', sessionId: caller.id, node: caller.actor.node })
    const stored = async () => (await domain.store.load(call)) as Call
    async function sendAll(): Promise<void> {
      for (let n = 0; n < 5; n++) {
        const data = { call_uuid: call.callUuid, candidate: `candidate:${n}` }
        expect(await domain.relay.relay(caller.actor, 'webrtc.ice_candidate', data, undefined)).toBe('accepted')
      }
    }
    const heard = () => eventsOf(callee).filter((event) => event === 'webrtc.ice_candidate').length
    return { domain, caller, call, stored, sendAll, heard }
  }

  test('reaches the peer, and its place stays as it was left', async () => {
    const { stored, sendAll, heard } = await setUpGone()
    const before = await stored()
    await sendAll()
    expect(heard()).toBe(5)
    expect(await stored()).toEqual(before)
    expect(before.callerPlace.state).toBe('vacant')
  })

  test('reaches the peer, and takes no place from a session in which its device has come back', async () => {
    const { domain, caller, call, stored, sendAll, heard } = await setUpGone()
    const back = await connectPeer(domain, caller.actor.participant)
    await domain.calls.run(call, { type: 'arrive', actor: back.actor })
    await sendAll()
    expect(heard()).toBe(5)
    expect((await stored()).callerPlace).toMatchObject({ state: 'held', sessionId: back.id })
  })
})

describe('[STAT1] the end of an answered call, of which its caller has reported', () => {
  const openDomain = openDomains()
  const reported = { caller: { reports: 1, rtt_ms: { min: 40, avg: 40, max: 40 } }, callee: null }

  /** `ends`: of what was committed, how the media was in each end. */
  async function setUpReported() {
    const ends: Step['event']['quality'][] = []
    const note = ({ steps }: { steps: readonly Step[] }) =>
      void ends.push(...steps.flatMap(({ event }) => (event.type === 'ended' ? [event.quality] : [])))
    const domain = await openDomain({
      store: (real) => ({
        async transition(ref, decide) {
          const decision = await real.transition(ref, decide)
          note(decision)
          return decision
        },
        async invite(...given) {
          const decision = await real.invite(...given)
          note(decision)
          return decision
        },
      }),
    })
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const callee = await connectPeer(domain, somebody())
    const call = await answered(domain, caller, callee)
    const stats = { call_uuid: call.callUuid, stats: { rtt_ms: 40 } }
    expect(await domain.quality.report(caller.actor, stats)).toBe('accepted')
    return { domain, caller, callee, call, ends }
  }

  test('by a backend, at a node that was told nothing of the call', async () => {
    const { domain, call, ends } = await setUpReported()
    for (let n = 0; n < 2; n++) domain.delivery.sweep(Date.now(), new Set())
    expect(domain.delivery.known.size).toBe(0)
    await domain.calls.run(call, { type: 'stop', note: null })
    expect(ends).toEqual([reported])
  })

  test('by an invite that takes its place', async () => {
    const { domain, caller, callee, call, ends } = await setUpReported()
    await domain.sessions.detach(caller.id, caller.socket, false, Date.now())
    await domain.calls.run(call, { type: 'lose', sessionId: caller.id, node: caller.actor.node })
    const again = await invited(domain, await connectPeer(domain, caller.actor.participant, 'tablet'), callee)
    expect(await domain.store.load(call)).toMatchObject({ status: 'ended', endReason: 'superseded' })
    expect(await domain.store.load({ ...call, callUuid: again })).toMatchObject({ status: 'ringing' })
    expect(ends).toEqual([reported])
  })

  test('by a reject or a cancel that met an answered call', async () => {
    for (const verb of ['reject', 'cancel'] as const) {
      const { domain, caller, callee, call, ends } = await setUpReported()
      await domain.calls.verb(caller.actor, 'connected', call.callUuid, null)
      const { actor } = verb === 'cancel' ? caller : callee
      await domain.calls.verb(actor, verb, call.callUuid, null)
      expect(ends).toEqual([reported])
    }
  })
})

describe('who names a call that is over', () => {
  const openDomain = openDomains()

  test('[END4] [ORD3] hears of the end after what led to it, also where nobody could tell of that for a while', async () => {
    let isAway = false
    const domain = await openDomain({ isAway: () => isAway })
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const callee = await connectPeer(domain, somebody())
    const call = await answered(domain, caller, callee)
    const before = eventsOf(callee)
    isAway = true
    await domain.calls.verb(caller.actor, 'connected', call.callUuid, null)
    await domain.calls.verb(caller.actor, 'end', call.callUuid, null)
    const named = domain.calls.verb(callee.actor, 'end', call.callUuid, null)
    expect(await named.catch((error) => error)).toBeInstanceOf(StoreError)
    expect(eventsOf(callee)).toEqual(before)
    isAway = false
    expect(await domain.calls.verb(callee.actor, 'end', call.callUuid, null)).toMatchObject({ ok: true })
    expect(eventsOf(callee).slice(before.length)).toEqual(['call.status', 'call.ended'])
  })

  for (const side of ['caller', 'callee'] as const) {
    test(`[TAKE1] and had the place of the ${side} before it was taken hears so, also where nobody could tell of it before the end`, async () => {
      let isAway = false
      const domain = await openDomain({ isAway: () => isAway })
      const participants = { caller: { ...somebody(), role: 'customer' }, callee: somebody() }
      const caller = await connectPeer(domain, participants.caller)
      const callee = await connectPeer(domain, participants.callee)
      const [former, other] = side === 'caller' ? [caller, callee] : [callee, caller]
      const tablet = await connectPeer(domain, participants[side], 'tablet')
      const call = await answered(domain, caller, callee)
      const [before, heard] = [former.socket.told.length, eventsOf(other).length]
      isAway = true
      done(await domain.calls.take(tablet.actor, call.callUuid))
      done(await domain.calls.verb(other.actor, 'end', call.callUuid, null))
      isAway = false
      expect(await domain.delivery.catchUp((await domain.store.load(call)) as Call)).toBe('done')
      expect(former.socket.told.slice(before)).toMatchObject([
        { event: 'call.cancelled', data: { reason: 'taken_elsewhere', ended_at: null } },
      ])
      expect(eventsOf(tablet).at(-1)).toBe('call.ended')
      expect(eventsOf(other).slice(heard)).toEqual(side === 'callee' ? ['call.accepted'] : [])
    })
  }

  test('[END4] [ORD3] hears of it in the same request while a session of the call moves to another node', async () => {
    let isAway = false
    let moves = 0
    const domain = await openDomain({
      isAway: () => isAway,
      sessions: (real) => ({
        apply(...how) {
          if (moves > 0) {
            moves--
            throw new SessionMovedError('the session that has the place is gone')
          }
          return real.apply(...how)
        },
      }),
    })
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const callee = await connectPeer(domain, somebody())
    const call = await answered(domain, caller, callee)
    const before = eventsOf(callee)
    isAway = true
    await domain.calls.verb(caller.actor, 'end', call.callUuid, null)
    isAway = false
    moves = 3
    expect(await domain.calls.verb(callee.actor, 'end', call.callUuid, null)).toMatchObject({ ok: true })
    expect(moves).toBe(0)
    expect(eventsOf(callee).slice(before.length)).toEqual(['call.ended'])
  })
})
