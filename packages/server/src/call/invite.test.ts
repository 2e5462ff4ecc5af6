import { expect, test } from 'bun:test'
import {
  actorOf,
  alice,
  aliceOne,
  answeredCall,
  between,
  bob,
  bobOne,
  carol,
  dave,
  durations,
  heldBy,
  leftBy,
  onNode,
  overCall,
  ringingCall,
  start,
  uuidOf,
} from './call.fixture.ts'
import type { Call, LiveCall } from './call.ts'
import { byOf } from './command.ts'
import { decide } from './decide.ts'
import { hookEventsOf } from './hook.ts'
import { checkInvite, decideInvite, type InviteCommand, type InviteDecision } from './invite.ts'

const now = start + 10_000
const base: InviteCommand = {
  actor: aliceOne,
  callee: { userId: bob.userId, role: bob.role },
  callUuid: uuidOf(90),
  freshUuid: uuidOf(91),
  contextType: 'order',
  contextId: '42',
  callType: 'video',
  ringTimeoutMs: 45_000,
  metadata: null,
  rate: { ok: true },
  maxRinging: 5,
  busy: 'allow',
}
const invite = (live: readonly LiveCall[], changes: Partial<InviteCommand> = {}, sameUuid?: Call) =>
  decideInvite({ sameUuid, live }, { ...base, ...changes }, now)

const tablet = actorOf(alice, 'a-2', 'tablet')
const gone = leftBy(aliceOne, start)
const steps = (decision: InviteDecision) =>
  decision.steps.map(
    ({ call, event }) => `${call.callUuid.slice(-2)} ${event.type}${'endReason' in call ? ` ${call.endReason}` : ''}`,
  )

test('[INV1] call states: an invite rings, at every session of the callee', () => {
  const decision = invite([])
  expect(decision).toMatchObject({ ok: true, created: true, calleeBusy: false })
  expect(decision.ok && decision.call).toMatchObject({
    version: 1,
    status: 'ringing',
    callUuid: base.callUuid,
    callerPlace: heldBy(aliceOne),
    ringExpiresAt: now + 45_000,
  })
  const [notice] = decision.steps[0]?.event.notices ?? []
  expect(notice).toMatchObject({
    to: { place: 'rung', except: [] },
    event: 'call.ringing',
    data: { ring_timeout_ms: 45_000 },
  })
})

test('[RING2] call.ringing carries metadata only where there is some', () => {
  const data = (changes: Partial<InviteCommand>) => invite([], changes).steps[0]?.event.notices[0]?.data
  expect(data({})).not.toHaveProperty('metadata')
  expect(data({ metadata: { subject: 'x' } })).toMatchObject({ metadata: { subject: 'x' } })
})

test('[INV1] action, role, self and type are checked in this order', () => {
  const rights = { allowedActions: ['call.invite'], allowedPeerRoles: ['agent', 'customer'] }
  const code = (allowed: typeof rights, callee: typeof bob, type: unknown) =>
    checkInvite(allowed, alice, callee, type)?.code
  expect(code(rights, bob, undefined)).toBeUndefined()
  expect(code({ allowedActions: [], allowedPeerRoles: [] }, alice, '!')).toBe('ACTION_NOT_ALLOWED')
  expect(code({ ...rights, allowedPeerRoles: [] }, alice, '!')).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
  expect(code(rights, alice, '!')).toBe('CALL_TO_SELF')
  expect(code(rights, { ...alice, role: 'agent' }, '!')).toBe('CALL_TYPE_INVALID')
})

test('[INV1] who would call itself reads which participant is both sides', () => {
  const rights = { allowedActions: ['call.invite'], allowedPeerRoles: [alice.role] }
  expect(checkInvite(rights, alice, alice, undefined)?.details.message).toBe(
    `Both sides would be "${alice.userId}" (${alice.role}). Call another user_id or role.`,
  )
})

test('[INV3] the same call_uuid by the same caller gives the same call, and rings nobody twice', () => {
  const call = ringingCall()
  expect(invite([call], { callUuid: call.callUuid }, call)).toEqual({
    ok: true,
    call,
    steps: [],
    created: false,
    calleeBusy: false,
  })
  const over = overCall({ status: 'rejected' })
  expect(invite([], { callUuid: over.callUuid }, over)).toMatchObject({
    ok: true,
    created: false,
    call: { status: 'rejected' },
  })
})

test('[INV3] [PLACE2] a repeated invite takes the place that its session lost, also after the answer', () => {
  for (const call of [ringingCall({ callerPlace: gone }), answeredCall({ callerPlace: gone })]) {
    const decision = invite([call], { actor: tablet, callUuid: call.callUuid }, call)
    expect(steps(decision)).toEqual(['01 place_taken'])
    expect(decision.ok && decision.call).toMatchObject({ status: call.status, callerPlace: heldBy(tablet) })
    expect(decision.steps[0]?.event.moved).toEqual([{ side: 'caller', from: 'a-1', lost: true, leftDevice: 'phone' }])
  }
})

test('[INV3] [INV7] an invite repeated from another node brings its place there, and nothing passes on', () => {
  const call = ringingCall()
  const there = onNode(aliceOne, 'elsewhere')
  for (const same of [call, undefined]) {
    const decision = invite([call], { actor: there, ...(same !== undefined && { callUuid: same.callUuid }) }, same)
    expect(decision).toMatchObject({ ok: true, created: false, call: { callUuid: call.callUuid } })
    expect(decision.ok && decision.call.callerPlace).toEqual(heldBy(there))
    expect(decision.steps[0]?.event).not.toHaveProperty('moved')
  }
})

test('[UUID1] [ENV5] a call_uuid is in conflict only with the own call to another callee', () => {
  const own = between(ringingCall(), alice, carol, 2)
  expect(invite([own], { callUuid: own.callUuid }, own)).toMatchObject({
    ok: false,
    code: 'CALL_ID_CONFLICT',
    steps: [],
  })
  const foreign = between(ringingCall(), dave, carol, 3)
  expect(invite([], { callUuid: foreign.callUuid }, foreign)).toMatchObject({
    ok: true,
    call: { callUuid: base.freshUuid },
  })
  const asCallee = between(overCall(), bob, alice, 4)
  expect(invite([], { callUuid: asCallee.callUuid }, asCallee)).toMatchObject({
    ok: true,
    call: { callUuid: base.freshUuid },
  })
})

test('[UUID1] [INV3] an invite with the uuid of an own call repeats it, until 120 s after its end', () => {
  const own = { ...overCall(), endedAt: now - 120_000 }
  const again = (call: Call) => invite([], { callUuid: call.callUuid }, call)
  expect(again(own)).toMatchObject({ ok: true, created: false, call: own, steps: [] })
  for (const status of ['ended', 'missed', 'busy'] as const) {
    const old = { ...own, status, endedAt: now - 120_001 } as Call
    expect(again(old)).toEqual({ ok: false, code: 'CALL_ID_CONFLICT', details: { status }, steps: [] })
  }
  // A call that lasts is no call that is over.
  expect(again({ ...answeredCall(), startedAt: now - 3_600_000 } as Call)).toMatchObject({ ok: true, created: false })
})

test('[INV5] busy: allowed by default, refused with a record where the product wants it', () => {
  const talk = between(answeredCall(), bob, dave, 2)
  expect(invite([talk])).toMatchObject({ ok: true, created: true, calleeBusy: true })
  const refused = invite([talk], { busy: 'reject' })
  expect(refused).toMatchObject({ ok: false, code: 'CALLEE_BUSY' })
  expect(steps(refused)).toEqual(['90 busy busy'])
  expect(refused.steps[0]?.call).toMatchObject({ status: 'busy', endedAt: now, endReason: 'busy' })
  expect(refused.steps[0]?.event.notices).toEqual([])
})

test('[INV5] busy is who talks or calls, not who is called, and never by the same peer', () => {
  const busy = (call: LiveCall) => !invite([call], { busy: 'reject' }).ok
  expect(busy(between(ringingCall(), bob, dave, 2))).toBe(true)
  expect(busy(between(ringingCall(), dave, bob, 2))).toBe(false)
  expect(busy(between(answeredCall(), bob, alice, 2))).toBe(false)
  expect(busy(between(answeredCall(), alice, carol, 2))).toBe(false)
})

test('[INV6] glare: the second of two crossing invites is told of the first', () => {
  const crossing = between(ringingCall({ callerPlace: heldBy(bobOne) }), bob, alice, 2)
  expect(invite([crossing])).toEqual({
    ok: false,
    code: 'CALL_GLARE',
    details: { call_uuid: crossing.callUuid },
    steps: [],
  })
})

test('[INV6] glare counts only while the place of the caller is held: else that call ends and the new one rings', () => {
  const crossing = between(ringingCall({ callerPlace: leftBy(bobOne, start) }), bob, alice, 2)
  const decision = invite([crossing])
  expect(steps(decision)).toEqual(['02 cancelled caller_lost', '90 invited'])
  expect(decision.steps[0]?.event.by).toBeNull()
  expect(decision.steps[0]?.event.notices.map(({ to, event }) => [to.place, event])).toEqual([
    ['caller', 'call.cancelled'],
    ['rung', 'call.cancelled'],
  ])
})

test('[INV7] an invite takes the call that rings already and that its session left', () => {
  const decision = invite([ringingCall({ callerPlace: gone })], { actor: tablet })
  expect(steps(decision)).toEqual(['01 place_taken'])
  expect(decision).toMatchObject({ ok: true, created: false, call: { callerPlace: heldBy(tablet) } })
})

test('[INV7] the same session gets the same reply, another one supersedes', () => {
  const call = ringingCall()
  expect(invite([call])).toMatchObject({ ok: true, created: false, call: { callUuid: call.callUuid }, steps: [] })
  const decision = invite([call], { actor: tablet })
  expect(steps(decision)).toEqual(['01 cancelled superseded', '90 invited'])
  expect(decision.steps[0]?.event.notices.map(({ to }) => to.place)).toEqual(['caller', 'rung'])
})

test('[INV7] an answered call ends first where the place of the inviter is vacant, on either side', () => {
  const called = answeredCall({ callerPlace: gone })
  expect(steps(invite([called], { actor: tablet }))).toEqual(['01 ended superseded', '90 invited'])
  const wasCalled = between(answeredCall({ callerPlace: heldBy(bobOne), calleePlace: gone }), bob, alice, 2)
  expect(steps(invite([wasCalled], { actor: tablet }))).toEqual(['02 ended superseded', '90 invited'])
  // One who came back with the same device has said nothing of it yet: both hear that it is over, she herself, too.
  const cameBack = invite([answeredCall({ callerPlace: heldBy(aliceOne, false) })])
  expect(steps(cameBack)).toEqual(['01 ended superseded', '90 invited'])
  expect(cameBack.steps[0]?.event.notices.map(({ to }) => to.place)).toEqual(['caller', 'callee'])
  const peerLeft = answeredCall({ calleePlace: leftBy(bobOne, start) })
  expect(steps(invite([peerLeft]))).toEqual(['90 invited'])
})

test('[INV8] five ringing calls at most; what the invite supersedes does not count', () => {
  const calls = [1, 2, 3, 4, 5].map((n) =>
    between(ringingCall({ ringExpiresAt: now + 1_000 * n }), alice, { ...carol, userId: `agent-${n}` }, n),
  )
  expect(invite(calls)).toMatchObject({
    code: 'RATE_LIMITED',
    details: { retry_after_ms: 1_000, limit: 'ringing' },
    steps: [],
  })
  expect(invite(calls.slice(1)).ok).toBe(true)
  const mine = between(ringingCall(), alice, bob, 9)
  expect(steps(invite([...calls.slice(1), mine], { actor: tablet }))).toEqual(['09 cancelled superseded', '90 invited'])
})

test('[INV8] the rate limit says when to come again, counts no repeat, and comes before glare and busy', () => {
  const rate = { ok: false, limit: 'pair_invites', retryAfterMs: 700 } as const
  const crossing = between(ringingCall({ callerPlace: heldBy(bobOne) }), bob, alice, 2)
  const talk = between(answeredCall(), bob, dave, 3)
  const refused = invite([crossing, talk], { rate, busy: 'reject' })
  const details = { retry_after_ms: 700, limit: 'pair_invites' } as const
  expect(refused).toEqual({ ok: false, code: 'RATE_LIMITED', details, steps: [] })
  expect(invite([ringingCall()], { rate }).ok).toBe(true)
  const over = overCall()
  expect(invite([], { rate, callUuid: over.callUuid }, over).ok).toBe(true)
})

test('[INV8] a refused invite ends nothing', () => {
  const rate = { ok: false, limit: 'pair_invites', retryAfterMs: 700 } as const
  expect(invite([ringingCall()], { actor: tablet, rate }).steps).toEqual([])
})

test('[HOOK5] what the backend refuses is a call that was over from the start, by nobody, and ends nothing', () => {
  const verdict = { is: 'refused', reason: 'blocked' } as const
  const decision = invite([ringingCall()], { actor: tablet, verdict })
  expect(decision).toMatchObject({ ok: false, code: 'CALL_REFUSED', details: { reason: 'blocked' } })
  expect(steps(decision)).toEqual(['90 rejected blocked'])
  const [step] = decision.steps
  expect(step?.call).toMatchObject({ version: 1, status: 'rejected', endedAt: now, acceptedAt: null })
  expect(step?.event).toMatchObject({ by: null, notices: [] })
  expect(step && hookEventsOf(step)).toEqual([{ type: 'call.rejected' }])
})

test('[HOOK5] an invite that its caller gave up is a cancelled call, which nobody hears of', () => {
  const decision = invite([], { verdict: { is: 'withdrawn' } })
  expect(steps(decision)).toEqual(['90 cancelled caller_cancelled'])
  expect(decision).toMatchObject({ ok: true, created: true, call: { status: 'cancelled' } })
  expect(decision.steps[0]?.event).toMatchObject({ by: byOf(aliceOne), notices: [] })
})

test('[HOOK5] the verdict comes after repeats and limits, and before glare and busy', () => {
  const verdict = { is: 'refused', reason: 'blocked' } as const
  const crossing = between(ringingCall({ callerPlace: heldBy(bobOne) }), bob, alice, 2)
  expect(invite([crossing], { verdict })).toMatchObject({ code: 'CALL_REFUSED' })
  const talk = between(answeredCall(), bob, dave, 3)
  expect(invite([talk], { verdict, busy: 'reject' })).toMatchObject({ code: 'CALL_REFUSED' })
  const rate = { ok: false, limit: 'invites', retryAfterMs: 1 } as const
  expect(invite([], { verdict, rate })).toMatchObject({ code: 'RATE_LIMITED' })
  const over = overCall()
  expect(invite([], { verdict, callUuid: over.callUuid }, over)).toMatchObject({ ok: true, created: false })
  expect(invite([ringingCall()], { verdict })).toMatchObject({ ok: true, created: false })
})

test('[HOOK5] nothing rings that nobody was asked about', () => {
  expect(invite([], { verdict: { is: 'unasked' } })).toMatchObject({ code: 'RATE_LIMITED', steps: [] })
})

test('[HOOK5] a repeat finds the call that was redirected, by whom its client called', () => {
  const verdict = { is: 'allowed' } as const
  const to = { userId: dave.userId, role: dave.role }
  const decision = invite([], { callee: to, verdict, askedFor: 'bob', redirectedFrom: 'bob' })
  const call = decision.ok ? decision.call : undefined
  expect(call).toMatchObject({ callee: to, redirectedFrom: 'bob' })
  expect(invite([], { askedFor: 'bob' }, call)).toMatchObject({ ok: true, created: false })
  for (const askedFor of ['carol', undefined]) {
    expect(invite([], { ...(askedFor && { askedFor }) }, call)).toMatchObject({ code: 'CALL_ID_CONFLICT' })
  }
  // Without a redirection nothing of it is kept.
  const plain = invite([], { verdict, askedFor: 'bob' })
  expect(plain.ok && plain.call.redirectedFrom).toBeUndefined()
})

test('[UUID1] a redirected call that is over still finds its repeat', () => {
  const redirected = { ...ringingCall(), redirectedFrom: 'dave' }
  const ended = decide(redirected, { type: 'cancel', actor: aliceOne, reason: null }, start + 1_000, durations)
  const call = ended.ok ? ended.call : undefined
  expect(call).toMatchObject({ status: 'cancelled', redirectedFrom: 'dave' })
  const to = { userId: dave.userId, role: dave.role }
  const asked = { callee: to, askedFor: 'dave', callUuid: redirected.callUuid }
  expect(invite([], asked, call)).toMatchObject({ ok: true, created: false })
})
