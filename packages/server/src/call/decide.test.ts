import { expect, test } from 'bun:test'
import {
  actorOf,
  aliceOne,
  answeredCall,
  bob,
  bobOne,
  carol,
  durations,
  heldBy,
  leftBy,
  overCall,
  ringingCall,
  ringMs,
  start,
} from './call.fixture.ts'
import type { Call } from './call.ts'
import type { Actor, CallCommand, Decision } from './command.ts'
import { decide } from './decide.ts'

const now = start + 10_000
const ask = (call: Call | undefined, command: CallCommand, at = now) => decide(call, command, at, durations)
const verb = (type: 'accept' | 'connected' | 'relay', actor: Actor): CallCommand => ({ type, actor })
const end = (actor: Actor, reason: string | null = null): CallCommand => ({ type: 'end', actor, reason })
const cancel = (actor: Actor): CallCommand => ({ type: 'cancel', actor, reason: null })
const reject = (actor: Actor, reason: string | null = null, rung: readonly string[] = []): CallCommand => ({
  type: 'reject',
  actor,
  reason,
  rung,
})

const bobMobile = actorOf(bob, 'b-2', 'mobile')

/** The state of the call, and the receivers of each notice, in one line each. */
function outcome(decision: Decision) {
  if (!decision.ok) return decision.code
  const { call, steps } = decision
  const reason = 'endReason' in call ? ` ${call.endReason}` : ''
  const told = steps.flatMap(({ event }) =>
    event.notices.map(({ to, event: name, data }) => {
      const except = to.place === 'rung' && to.except.length > 0 ? ` but ${[...new Set(to.except)]}` : ''
      return `${name}${'reason' in data ? ` ${data.reason}` : ''} to ${to.place}${except}`
    }),
  )
  return [`${call.status}${reason}`, ...told]
}

test('[ENV5] no call, and a call of others, are the same: CALL_NOT_FOUND', () => {
  expect(outcome(ask(undefined, end(aliceOne)))).toBe('CALL_NOT_FOUND')
  expect(outcome(ask(ringingCall(), end(actorOf(carol, 'c-1'))))).toBe('CALL_NOT_FOUND')
  expect(outcome(ask(ringingCall(), verb('accept', actorOf({ ...bob, product: 'bank' }, 'b-1'))))).toBe(
    'CALL_NOT_FOUND',
  )
})

test('[PLACE1] call states: ringing, accept by the first → accepted', () => {
  const decision = ask(ringingCall(), verb('accept', bobMobile))
  expect(outcome(decision)).toEqual([
    'accepted',
    'call.accepted to caller',
    'call.cancelled answered_elsewhere to rung but b-2',
  ])
  expect(decision.ok && decision.call).toMatchObject({
    version: 8,
    acceptedAt: now,
    connectedAt: null,
    callee: { displayName: 'BOB' },
    calleePlace: heldBy(bobMobile),
  })
})

test('[END1] call states: the second accept comes too late, the winner may repeat its own', () => {
  const call = answeredCall()
  expect(outcome(ask(call, verb('accept', bobMobile)))).toBe('CALL_ALREADY_ANSWERED')
  expect(ask(call, verb('accept', bobOne)).steps).toEqual([])
})

test('[END2] call states: ringing, call.reject → rejected, with the reason of the client or declined', () => {
  expect(outcome(ask(ringingCall(), reject(bobMobile)))).toEqual([
    'rejected declined',
    'call.rejected declined to caller',
    'call.cancelled rejected_elsewhere to rung but b-2',
  ])
  expect(outcome(ask(ringingCall(), reject(bobMobile, 'in_a_meeting')))).toContain(
    'call.rejected in_a_meeting to caller',
  )
})

test('[END2] call states: ringing, busy rejects silence their sessions, the last one rejects the call', () => {
  const rung = ['b-1', 'b-2', 'b-3']
  const first = ask(ringingCall(), reject(bobOne, 'busy', rung))
  expect(outcome(first)).toEqual(['ringing'])
  const again = ask(first.ok ? first.call : undefined, reject(bobOne, 'busy', rung))
  expect(again.steps).toEqual([])
  const second = ask(first.ok ? first.call : undefined, reject(bobMobile, 'busy', rung))
  expect(outcome(second)).toEqual(['ringing'])
  const third = ask(second.ok ? second.call : undefined, reject(actorOf(bob, 'b-3'), 'busy', rung))
  expect(outcome(third)).toEqual([
    'rejected busy',
    'call.rejected busy to caller',
    'call.cancelled rejected_elsewhere to rung but b-1,b-2,b-3',
  ])
})

test('[END2] call states: who says busy, goes and comes back again and again does not make the row of the call grow', () => {
  let call: Call = ringingCall()
  const say = (session: string, rung: readonly string[]) => {
    const decision = ask(call, reject(actorOf(bob, session), 'busy', rung))
    if (!decision.ok || decision.call.status !== 'ringing') throw new Error('it rings no more')
    call = decision.call
    return decision.call.silenced
  }
  say('b-4', ['b-2', 'b-4'])
  for (let i = 0; i < 1_000; i++) {
    const session = `gone-${i}`
    const silenced = say(session, ['b-2', 'b-4', session])
    expect(silenced.length).toBeLessThanOrEqual(32)
    // A connected session stays busy.
    expect(silenced).toContainValues(['b-4', session])
  }
  expect(outcome(ask(call, reject(bobMobile, 'busy', ['b-2', 'b-4'])))).toContain('rejected busy')
})

test('[WS5] a session whose token is over enters no call that began later, and goes on with those that began before', () => {
  const over = (actor: Actor, ms: number): Actor => ({ ...actor, expiresAt: start + ms })
  for (const ms of [0, -1]) {
    expect(outcome(ask(ringingCall(), verb('accept', over(bobOne, ms))))).toBe('AUTH_TOKEN_INVALID')
    const vacant = answeredCall({ calleePlace: leftBy(bobOne, start) })
    for (const type of ['accept', 'relay', 'connected'] as const) {
      expect(outcome(ask(vacant, verb(type, over(bobMobile, ms))))).toBe('AUTH_TOKEN_INVALID')
      expect(ask(vacant, verb(type, over(bobOne, ms))).ok).toBe(true)
    }
    // To hang up is nobody's entry.
    expect(ask(ringingCall(), reject(over(bobOne, ms))).ok).toBe(true)
    expect(ask(vacant, end(over(bobMobile, ms))).ok).toBe(true)
  }
  expect(ask(ringingCall(), verb('accept', over(bobOne, 1))).ok).toBe(true)
})

test('[PLACE1] a silenced session hears of the call no more, and may still accept it', () => {
  const call = ringingCall({ silenced: ['b-1'] })
  expect(outcome(ask(call, verb('accept', bobMobile)))).toContain(
    'call.cancelled answered_elsewhere to rung but b-1,b-2',
  )
  expect(outcome(ask(call, cancel(aliceOne)))).toEqual([
    'cancelled caller_cancelled',
    'call.cancelled caller_cancelled to rung but b-1',
  ])
  expect(outcome(ask(call, verb('accept', bobOne)))).toContain('call.accepted to caller')
})

test('[END1] call states: ringing or accepted, call.cancel by the caller → cancelled', () => {
  expect(outcome(ask(ringingCall(), cancel(aliceOne)))).toEqual([
    'cancelled caller_cancelled',
    'call.cancelled caller_cancelled to rung',
  ])
  expect(outcome(ask(answeredCall(), cancel(aliceOne)))).toEqual([
    'cancelled caller_cancelled',
    'call.cancelled caller_cancelled to caller',
    'call.cancelled caller_cancelled to callee',
  ])
})

test('[END1] call states: accepted or connected, call.end by either → ended, and the other is told', () => {
  for (const status of ['accepted', 'connected'] as const) {
    const call = answeredCall({ status })
    expect(outcome(ask(call, end(aliceOne)))).toEqual(['ended hangup', 'call.ended hangup to callee'])
    expect(outcome(ask(call, end(bobOne, 'lunch')))).toEqual(['ended lunch', 'call.ended lunch to caller'])
  }
})

test('[END1] [EXT5] call states: accepted, call.connected by either → connected, once, and the other is told', () => {
  for (const [actor, other] of [
    [aliceOne, 'callee'],
    [bobOne, 'caller'],
  ] as const) {
    const decision = ask(answeredCall(), verb('connected', actor))
    expect(outcome(decision)).toEqual(['connected', `call.status to ${other}`])
    expect(decision.ok && decision.call).toMatchObject({ connectedAt: now, acceptedAt: start + 5_000 })
  }
  const connected = answeredCall({ status: 'connected' })
  expect(ask(connected, verb('connected', bobOne))).toEqual({ ok: true, call: connected, steps: [] })
  expect(outcome(ask(ringingCall(), verb('connected', aliceOne)))).toBe('CALL_INVALID_STATE')
})

test('[RING1] call states: ring timeout → missed, and both peers are told', () => {
  const call = ringingCall()
  expect(ask(call, { type: 'time' }, start + ringMs - 1).steps).toEqual([])
  expect(outcome(ask(call, { type: 'time' }, start + ringMs))).toEqual([
    'missed no_answer',
    'call.missed no_answer to caller',
    'call.missed no_answer to rung',
  ])
})

test('[END3] call states: ringing, the caller away for 20 s → cancelled', () => {
  const call = ringingCall({ callerPlace: leftBy(aliceOne, start + 3_000) })
  expect(ask(call, { type: 'time' }, start + 22_999).steps).toEqual([])
  expect(outcome(ask(call, { type: 'time' }, start + 23_000))).toContain('call.cancelled caller_lost to rung')
})

test('[END3] call states: answered, one place vacant for 120 s → ended', () => {
  const call = answeredCall({ status: 'connected', calleePlace: leftBy(bobOne, start + 60_000) })
  expect(ask(call, { type: 'time' }, start + 179_999).steps).toEqual([])
  expect(outcome(ask(call, { type: 'time' }, start + 180_000))).toContain('call.ended peer_lost to caller')
})

test('[END2] call states: answered for 12 h → ended, and both are told', () => {
  expect(outcome(ask(answeredCall(), { type: 'time' }, start + 5_000 + durations.maxDurationMs))).toEqual([
    'ended max_duration',
    'call.ended max_duration to caller',
    'call.ended max_duration to callee',
  ])
})

test('[END1] while it rings, call.end acts as cancel or reject', () => {
  expect(outcome(ask(ringingCall(), end(aliceOne)))).toContain('cancelled caller_cancelled')
  expect(outcome(ask(ringingCall(), end(bobMobile)))).toContain('rejected declined')
})

test('[END1] [END4] cancel and reject on a call past their state act as end, and their author is told, too', () => {
  const connected = answeredCall({ status: 'connected' })
  const told = ['ended hangup', 'call.ended hangup to caller', 'call.ended hangup to callee']
  expect(outcome(ask(connected, cancel(aliceOne)))).toEqual(told)
  expect(outcome(ask(answeredCall(), reject(bobOne)))).toEqual(told)
})

test('[END1] wrong sides: CALL_NOT_PARTICIPANT', () => {
  for (const call of [ringingCall(), answeredCall()]) {
    expect(outcome(ask(call, verb('accept', aliceOne)))).toBe('CALL_NOT_PARTICIPANT')
    expect(outcome(ask(call, reject(aliceOne)))).toBe('CALL_NOT_PARTICIPANT')
    expect(outcome(ask(call, cancel(bobOne)))).toBe('CALL_NOT_PARTICIPANT')
  }
})

test('[END1] on a call that is over only accept fails, and relays for a minute', () => {
  const call = overCall({ status: 'ended' })
  for (const command of [end(aliceOne), cancel(bobOne), reject(aliceOne), verb('connected', bobMobile)]) {
    expect(ask(call, command)).toEqual({ ok: true, call, steps: [] })
  }
  expect(ask(call, verb('accept', bobOne))).toMatchObject({ code: 'CALL_INVALID_STATE', details: { status: 'ended' } })
  const over = start + ringMs
  expect(ask(call, verb('relay', aliceOne), over + 59_999).ok).toBe(true)
  expect(outcome(ask(call, verb('relay', aliceOne), over + 60_000))).toBe('CALL_INVALID_STATE')
})

test('[RING1] [END3] a jump of the wall clock leaves what remains', () => {
  const hour = 3_600_000
  const ringing = ask(ringingCall({ callerPlace: leftBy(aliceOne, start) }), { type: 'shift', ms: -hour })
  expect(ringing.ok && ringing.call).toMatchObject({
    ringExpiresAt: start + ringMs - hour,
    callerPlace: { since: start - hour },
  })
  const answered = ask(answeredCall(), { type: 'shift', ms: hour })
  expect(answered.ok && answered.call).toMatchObject({ acceptedAt: start + 5_000 + hour })
  expect(ask(overCall(), { type: 'shift', ms: hour }).steps).toEqual([])
})

test('[EXT5] call.status says who reported it, and goes with the version of the call', () => {
  const { steps } = ask(answeredCall(), verb('connected', bobOne))
  expect(steps[0]?.event.notices).toEqual([
    {
      to: { place: 'caller' },
      event: 'call.status',
      data: { call_uuid: answeredCall().callUuid, status: 'connected', by: { user_id: 'bob', role: 'agent' } },
    },
  ])
  expect(steps[0]?.call.version).toBe(answeredCall().version + 1)
})

test('[END2] the payload names status, reason, by and ended_at', () => {
  const ended = ask(answeredCall(), end(bobOne, 'lunch'))
  expect(ended.steps[0]?.event.notices[0]?.data).toEqual({
    call_uuid: answeredCall().callUuid,
    status: 'ended',
    reason: 'lunch',
    by: { user_id: 'bob', role: 'agent' },
    ended_at: new Date(now).toISOString(),
  })
  const lost = ask(ringingCall({ callerPlace: leftBy(aliceOne, start) }), { type: 'time' }, start + 20_000)
  expect(lost.steps[0]?.event.notices[0]?.data).toMatchObject({ status: 'cancelled', by: null })
  const accepted = ask(ringingCall(), verb('accept', bobOne))
  expect(accepted.steps[0]?.event.notices[1]?.data).toMatchObject({ status: 'accepted', ended_at: null })
})
