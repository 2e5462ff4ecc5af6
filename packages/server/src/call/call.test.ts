import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  alice,
  aliceOne,
  answeredCall,
  bob,
  bobOne,
  durations,
  leftBy,
  overCall,
  ringingCall,
  ringMs,
  start,
} from './call.fixture.ts'
import {
  type Call,
  callKey,
  lostAt,
  nextDeadline,
  type Outage,
  otherSide,
  participantKey,
  participantOf,
  placeOf,
  type RingingCall,
  ringsAt,
  rungBy,
  sameParticipant,
  sideAbout,
  sideOf,
} from './call.ts'
import { calleeIdOf, ringsUntil, rungTo } from './effects.ts'
import { endOf } from './ending.ts'

test('[GROUP1] at whom a call rings, and who its callee is', () => {
  const carol = { ...bob, userId: 'carol' }
  const group = { name: 'all', members: ['bob', 'carol'], declined: ['carol'] }
  const ringing: Call = { ...ringingCall(), callee: { userId: '', role: bob.role, displayName: null }, group }
  const answered: Call = { ...answeredCall(), group }
  const over: Call = { ...overCall(), acceptedAt: null, callee: ringing.callee, group }
  expect([bob, carol, alice].map((one) => ringsAt(ringing, one))).toEqual([true, false, false])
  expect([bob, carol, alice].map((one) => ringsAt(ringingCall(), one))).toEqual([true, false, false])
  expect([answered, over, answeredCall()].map((call) => ringsAt(call, bob))).toEqual([false, false, false])
  expect([bob, carol, alice].map((one) => sideAbout(ringing, one))).toEqual(['callee', 'callee', 'caller'])
  expect(sideAbout(ringing, { ...carol, userId: 'dave' })).toBeUndefined()
  expect([rungBy(ringing), rungBy(answered), rungBy(ringingCall())]).toEqual([[bob], [bob], [bob]])
  expect(rungTo(ringing, { place: 'rung', except: [] })).toEqual([bob])
  expect(rungTo(ringing, { place: 'rung', except: [], member: 'carol' })).toEqual([carol])
  expect([ringing, over, answered, ringingCall()].map(calleeIdOf)).toEqual([null, null, 'bob', 'bob'])
  expect(calleeIdOf({ ...overCall(), acceptedAt: null })).toBe('bob')
})

test('[GROUP1] an answer that is told when the call is over goes to those at whom it rang', () => {
  const carol = { ...bob, userId: 'carol' }
  const group = { name: 'all', members: ['bob', 'carol', 'dave'], declined: ['dave'] }
  const answered = { ...answeredCall(), group }
  const end = { status: 'ended', reason: 'hangup' } as const
  const soon = endOf(answered, end, start + 6_000)
  const late = endOf(answered, end, answered.ringExpiresAt + 60_000)
  const all = { place: 'rung', except: [] } as const
  expect([rungTo(answered, all), rungTo(soon, all), rungTo(late, all)]).toEqual([[bob, carol], [bob, carol], [bob]])
  const dave = { ...bob, userId: 'dave' }
  expect([carol, dave, alice].map((one) => sideAbout(soon, one))).toEqual(['callee', 'callee', 'caller'])
  // The kept call names members who declined.
  expect([carol, dave, alice].map((one) => sideAbout(late, one))).toEqual([undefined, 'callee', 'caller'])
})

test('[GROUP1] in turn a call rings at one member, and time ends the turn before the call', () => {
  const carol = { ...bob, userId: 'carol' }
  const turns = {
    member: 'carol',
    until: start + 5_000,
    memberRingMs: 5_000,
    next: 2,
    count: 2,
    hasRung: true,
    rang: [],
  }
  const group = { name: 'all', members: ['bob', 'carol'], declined: [], turns }
  const ringing: RingingCall = { ...ringingCall(), callee: { userId: '', role: bob.role, displayName: null }, group }
  const between: RingingCall = { ...ringing, group: { ...group, turns: { ...turns, member: null } } }
  expect([bob, carol, alice].map((one) => ringsAt(ringing, one))).toEqual([false, true, false])
  expect(ringsAt(between, carol)).toBe(false)
  expect([rungBy(ringing), rungBy(between), rungBy({ ...answeredCall(), group })]).toEqual([[carol], [], [carol]])
  expect([ringing, between].map((call) => nextDeadline(call, durations))).toEqual([start + 5_000, start + 5_000])
  expect(nextDeadline({ ...ringing, ringExpiresAt: start + 4_000 }, durations)).toBe(start + 4_000)
  expect(nextDeadline({ ...answeredCall(), group }, durations)).toBe(nextDeadline(answeredCall(), durations))
  expect([ringsUntil(ringing), ringsUntil(ringingCall())]).toEqual([start + 5_000, start + ringMs])
})

test('[ID1] a participant is product, role and user_id, and nothing less', () => {
  const others = [
    { ...alice, userId: 'bob' },
    { ...alice, role: 'agent' },
    { ...alice, product: 'bank' },
  ]
  expect(sameParticipant(alice, { ...alice })).toBe(true)
  expect(others.map((other) => sameParticipant(alice, other))).toEqual([false, false, false])
  expect(new Set([alice, { ...alice }, ...others].map(participantKey)).size).toBe(4)
  const tricky = [
    { product: 'a', role: 'b","c', userId: 'd' },
    { product: 'a', role: 'b', userId: 'c","d' },
  ]
  expect(new Set(tricky.map(participantKey)).size).toBe(2)
})

test('[ID1] a side is found by all three parts', () => {
  const call = answeredCall()
  expect(sideOf(call, alice)).toBe('caller')
  expect(sideOf(call, bob)).toBe('callee')
  expect(sideOf(call, { ...alice, product: 'bank' })).toBeUndefined()
  expect(sideOf(call, { ...alice, role: bob.role })).toBeUndefined()
  expect(sideOf(call, { ...bob, userId: alice.userId })).toBeUndefined()
  expect(participantOf(call, 'caller')).toEqual(alice)
  expect(participantOf(call, otherSide('caller'))).toEqual(bob)
})

test('[UUID1] a call is named by its product and its uuid', () => {
  const { product, callUuid } = ringingCall()
  expect(callKey({ product, callUuid })).not.toBe(callKey({ product: 'bank', callUuid }))
})

test('[PLACE1] the callee has no place while the call rings', () => {
  expect(placeOf(ringingCall(), 'callee')).toBeNull()
  expect(placeOf(ringingCall(), 'caller')?.sessionId).toBe('a-1')
  expect(placeOf(answeredCall(), 'callee')?.sessionId).toBe('b-1')
  expect(placeOf(overCall(), 'callee')).toBeNull()
})

test('[SRV2] who was erased has no place in what is kept of a call', () => {
  const call = answeredCall()
  const erased = { ...call, caller: { ...call.caller, userId: '' } }
  expect(placeOf(erased, 'caller')).toBeNull()
  expect(placeOf(erased, 'callee')).toEqual(call.calleePlace)
})

test('[RING1] [END3] the next deadline is the earliest of those that run', () => {
  const gone = leftBy(aliceOne, start + 1_000)
  expect(nextDeadline(ringingCall(), durations)).toBe(start + ringMs)
  expect(nextDeadline(ringingCall({ callerPlace: gone }), durations)).toBe(start + 21_000)
  expect(nextDeadline(ringingCall({ callerPlace: leftBy(aliceOne, start + 40_000) }), durations)).toBe(start + ringMs)
  expect(nextDeadline(answeredCall(), durations)).toBe(start + 5_000 + durations.maxDurationMs)
  expect(nextDeadline(answeredCall({ callerPlace: gone }), durations)).toBe(start + 121_000)
  const both = answeredCall({ callerPlace: gone, calleePlace: leftBy(bobOne, start + 500) })
  expect(nextDeadline(both, durations)).toBe(start + 120_500)
  expect(nextDeadline(overCall({ callerPlace: gone }), durations)).toBeUndefined()
})

test('[PEER1] the other side is told of an absence before the call ends for it, where it is not told at once', () => {
  const awaited = leftBy(aliceOne, start + 6_000, true, false, 1_100)
  expect(nextDeadline(ringingCall({ callerPlace: awaited }), durations)).toBe(start + 7_100)
  expect(nextDeadline(answeredCall({ callerPlace: awaited }), durations)).toBe(start + 7_100)
  const both = answeredCall({ callerPlace: awaited, calleePlace: leftBy(bobOne, start + 5_500, true, false, 1_200) })
  expect(nextDeadline(both, durations)).toBe(start + 6_700)
  const outages = [{ from: start + 6_500, to: start + 9_000 }]
  expect(nextDeadline(answeredCall({ callerPlace: awaited }), { ...durations, outages })).toBe(start + 10_100)
})

test('[END3] a lost clock stands still in an outage: after the first it has its whole time, after later ones what remained', () => {
  const lost = 100
  expect(lostAt(1_000, lost, [])).toBe(1_100)
  // Over before the loss, and begun when the clock had run out.
  expect(lostAt(1_000, lost, [{ from: 900, to: 1_000 }])).toBe(1_100)
  expect(lostAt(1_000, lost, [{ from: 1_100, to: 1_200 }])).toBe(1_100)
  // The loss was in it, or before it.
  expect(lostAt(1_000, lost, [{ from: 950, to: 1_050 }])).toBe(1_150)
  expect(lostAt(1_000, lost, [{ from: 1_090, to: 1_500 }])).toBe(1_600)
  expect(lostAt(1_000, lost, [{ from: 1_090, to: Number.POSITIVE_INFINITY }])).toBe(Number.POSITIVE_INFINITY)
  const both = [
    { from: 1_090, to: 1_500 },
    { from: 1_510, to: 2_000 },
  ]
  expect(lostAt(1_000, lost, both)).toBe(2_090)
})

test('[END3] however often a store comes and goes, a lost clock runs out in twice its time of service at the most, and in its whole time at the least', () => {
  const spans = fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 60 })), { maxLength: 60 })
  fc.assert(
    fc.property(spans, fc.integer({ min: 0, max: 500 }), fc.integer({ min: 1, max: 300 }), (gaps, since, lost) => {
      const outages: Outage[] = []
      for (const [up, away] of gaps) {
        const from = (outages.at(-1)?.to ?? 0) + up
        outages.push({ from, to: from + away })
      }
      const due = lostAt(since, lost, outages)
      const away = outages.reduce((ms, { from, to }) => ms + Math.max(0, Math.min(to, due) - Math.max(from, since)), 0)
      const served = due - since - away
      expect(served).toBeGreaterThanOrEqual(lost)
      expect(served).toBeLessThanOrEqual(2 * lost)
    }),
  )
})
