import { actorOf, alice, bob, carol, durations, heldBy, start, uuidOf } from '../../src/call/call.fixture.ts'
import type { AnsweredCall, Call, CallGroup, OverCall, Place, RingingCall, Turns } from '../../src/call/call.ts'
import type { CallCommand } from '../../src/call/command.ts'
import type { CallEvent } from '../../src/call/effects.ts'
import type { CalledGroup, InviteCommand } from '../../src/call/invite.ts'
import { byActor, difference } from './expected.ts'
import { type Machine, strict, violated } from './machine.ts'

/** Part A for calls that ring at the members of a group one after another [GROUP1]. Each case says what is decided, in full. */

const [caller, ben, ann] = [actorOf(alice, 'a'), actorOf(bob, 'b', 'phone'), actorOf(carol, 'c')]
const now = start + 20_000
const iso = (at: number) => new Date(at).toISOString()
const members = ['bob', 'carol', 'eve']
/** It rings at bob, in the first round, and was sent on to nobody yet. */
const turns: Turns = {
  ...{ member: 'bob', until: now + 5_000, memberRingMs: 15_000 },
  ...{ next: 1, count: 3, hasRung: true, rang: ['bob'] },
}
const plain: CallGroup = { name: 'all', members, declined: [] }
const group: CallGroup = { ...plain, turns }
const ringing: RingingCall = {
  ...{ product: 'shop', callUuid: uuidOf(1), version: 4, status: 'ringing' },
  caller: { userId: 'alice', role: 'customer', displayName: 'ALICE' },
  callee: { userId: '', role: 'agent', displayName: null },
  ...{ contextType: 'order', contextId: '42', callType: 'video', metadata: null, group },
  ...{ startedAt: start, ringTimeoutMs: 60_000, ringExpiresAt: start + 60_000 },
  ...{ callerPlace: heldBy(caller), silenced: ['b2'] },
}
/** The same call, as it is with other turns, or with another group. */
const at = (change: Partial<Turns>, call: Partial<RingingCall> = {}, of: Partial<CallGroup> = {}): RingingCall => ({
  ...{ ...ringing, ...call },
  group: { ...group, ...of, turns: { ...turns, ...change } },
})
const due = at({ until: now })
/** Its turn is over, and nobody's has begun. */
const between = at({ member: null, until: now })
const atOnce: RingingCall = { ...ringing, group: plain }

const heading = { call_uuid: uuidOf(1) }
const same = (call: Call) => ({ ok: true, call, steps: [] })
const refused = (code: string, details: object) => ({ ok: false, code, details, steps: [] })
const made = (call: Call, event: Partial<CallEvent>) => ({
  ...{ ok: true, call },
  steps: [{ call, event: { at: now, by: null, notices: [], ...event } }],
})
const next = (call: RingingCall): RingingCall => ({ ...call, version: 5 })
const cancelled = (member: string, reason: string, except: readonly string[], by: object | null = null) =>
  ({
    to: { place: 'rung', except, member },
    event: 'call.cancelled',
    data: { ...heading, status: 'ringing', reason, by, ended_at: null },
  }) as unknown as CallEvent['notices'][number]
const ofBob = { user_id: 'bob', role: 'agent' }

/** A turn begins. */
function begun(call: RingingCall, member: string, change: Partial<Turns>, until = now + 15_000) {
  const after = next(call)
  const group = {
    ...(call.group as CallGroup),
    turns: { ...(call.group?.turns as Turns), member, until, count: 4, hasRung: true, ...change },
  }
  const data = {
    ...{ ...heading, caller_user_id: 'alice', caller_role: 'customer', display_name: 'ALICE' },
    ...{ context_type: 'order', context_id: '42', call_type: 'video', ring_timeout_ms: until - now },
    ...{ expires_at: iso(until), callee_group: 'all' },
  }
  const notice = { to: { place: 'rung', except: [], member }, event: 'call.ringing', data } as const
  return made({ ...after, group, silenced: [] }, { type: 'turn', notices: [notice] })
}

function over(call: RingingCall, status: OverCall['status'], endReason: string, of: CallGroup): OverCall {
  const { silenced: _, ...rest } = call
  return {
    ...{ ...rest, group: of, version: 5, status, endReason },
    ...{ calleePlace: null, acceptedAt: null, connectedAt: null, endedAt: now },
  }
}

const roundOver = (call: RingingCall, until: number) =>
  made(
    next({
      ...call,
      group: { ...group, turns: { ...(call.group?.turns as Turns), until, next: 0, hasRung: false } },
    }),
    {
      type: 'round_over',
    },
  )
const turn = (member: string | null, seen = 4): CallCommand => ({ type: 'turn', member, seen })
const time = { type: 'time' } as const
const reject = (actor: typeof ben): CallCommand => ({ type: 'reject', actor, reason: null, rung: [] })

type Case = readonly [name: string, call: Call, command: CallCommand, expected: unknown]

const passed = (call: RingingCall) =>
  made(
    next({
      ...call,
      group: { ...(call.group as CallGroup), turns: { ...(call.group?.turns as Turns), member: null, until: now } },
    }),
    {
      type: 'passed',
      notices: [cancelled('bob', 'next_member', ['b2'])],
    },
  )

function clocks(): readonly Case[] {
  const awaited: Place = {
    ...{ sessionId: 'a', deviceId: null, node: heldBy(caller).node, settled: true },
    ...{ state: 'vacant', since: now - 3_000, awaitedMs: 2_000 },
  }
  const { awaitedMs: _, ...away } = awaited as Place & { awaitedMs: number }
  const lost = at({}, { callerPlace: awaited })
  const talking = answeredBy(at({ until: now - 1 }), { acceptedAt: now - 2_000 })
  const longest = at({ until: start + 60_000 }, { ringExpiresAt: now })
  const missed = {
    ...{ ...heading, status: 'missed', reason: 'no_answer', caller_user_id: 'alice', caller_role: 'customer' },
    ...{ callee_user_id: null, callee_group: 'all', callee_role: 'agent', display_name: 'ALICE' },
    ...{ context_type: 'order', context_id: '42', call_type: 'video', started_at: iso(start), ended_at: iso(now) },
  } as const
  const ended = over(longest, 'missed', 'no_answer', { name: 'all', members: ['bob'], declined: [] })
  const notices = [{ place: 'caller' } as const, { place: 'rung', except: ['b2'], member: 'bob' } as const].map(
    (to) => ({
      ...{ to, event: 'call.missed' as const, data: missed },
    }),
  )
  return [
    ['its turn goes on', ringing, time, same(ringing)],
    ['its turn is over', due, time, passed(due)],
    ['its turn is over for a while', at({ until: now - 1 }), time, passed(at({ until: now - 1 }))],
    ['nobody has a turn', between, time, same(between)],
    [
      'the next turn is to come',
      at({ member: null, until: now + 1 }),
      time,
      same(at({ member: null, until: now + 1 })),
    ],
    ['it rings at all of them', atOnce, time, same(atOnce)],
    ['its member has answered', talking, time, same(talking)],
    ['the time of the call is over', longest, time, made(ended, { type: 'missed', notices: notices as never })],
    [
      'the caller is away, and the turn is over',
      at({ until: now }, { callerPlace: awaited }),
      time,
      passed(at({ until: now }, { callerPlace: awaited })),
    ],
    ['the caller is away', lost, time, made(next({ ...lost, callerPlace: away }), { type: 'place_lost' })],
    [
      'the clock jumped',
      ringing,
      { type: 'shift', ms: 7_000 },
      made(next({ ...at({ until: now + 12_000 }), ringExpiresAt: start + 67_000 }), { type: 'clock_shifted' }),
    ],
    [
      'the clock jumped, and it rings at all of them',
      atOnce,
      { type: 'shift', ms: 7_000 },
      made(next({ ...atOnce, ringExpiresAt: start + 67_000 }), { type: 'clock_shifted' }),
    ],
  ]
}

function begins(): readonly Case[] {
  const second = at({ member: null, until: now, next: 0, hasRung: false, rang: ['bob', 'eve'] })
  const short = at({ member: null, until: now }, { ringExpiresAt: now + 4_000 })
  const quiet = at({ member: null, until: now - 1, hasRung: false })
  const answered = { ...between, status: 'accepted' } as unknown as Call
  return [
    ['the next one is rung', between, turn('carol'), begun(between, 'carol', { next: 2, rang: ['bob', 'carol'] })],
    ['one is passed over', between, turn('eve'), begun(between, 'eve', { next: 3, rang: ['bob', 'eve'] })],
    ['somebody is rung again', second, turn('bob'), begun(second, 'bob', { next: 1, rang: ['bob', 'eve'] })],
    [
      'the time of the call ends before the turn',
      short,
      turn('carol'),
      begun(short, 'carol', { next: 2, rang: ['bob', 'carol'] }, now + 4_000),
    ],
    ['it has changed since', between, turn('carol', 3), same(between)],
    ['somebody has a turn', due, turn('carol'), same(due)],
    [
      'the next turn is to come',
      at({ member: null, until: now + 1 }),
      turn('carol'),
      same(at({ member: null, until: now + 1 })),
    ],
    ['it rings at all of them', atOnce, turn('carol'), same(atOnce)],
    ['it was answered', answered, turn('carol'), same(answered)],
    ['the round is over', between, turn(null), roundOver(between, now)],
    ['a round rang nobody', quiet, turn(null), roundOver(quiet, now + 1_000)],
  ]
}

/** It was answered in its turn. */
function answeredBy({ silenced: _, ...call }: RingingCall, change: Partial<AnsweredCall>): AnsweredCall {
  return {
    ...{ ...call, status: 'accepted', acceptedAt: now, connectedAt: null },
    callee: { userId: 'bob', role: 'agent', displayName: ben.displayName },
    calleePlace: heldBy(ben),
    ...change,
  }
}

function answers(): readonly Case[] {
  const accepted = answeredBy(ringing, { version: 5 })
  const elsewhere = { ...heading, status: 'accepted', reason: 'answered_elsewhere', by: ofBob, ended_at: null } as const
  const declined = at({ member: null, until: now }, {}, { declined: ['bob'] })
  const last = at({ next: 3, rang: ['carol', 'bob'] }, {}, { declined: ['carol', 'eve'] })
  const ended = over(last, 'rejected', 'all_declined', {
    name: 'all',
    members: ['carol', 'bob'],
    declined: ['carol', 'eve', 'bob'],
  })
  const data = { ...heading, status: 'rejected', reason: 'all_declined', by: ofBob, ended_at: iso(now) } as const
  const except = ['b2', 'b']
  const hungUp = { ...accepted, version: 6, status: 'ended', endedAt: now, endReason: 'hangup' } as unknown as OverCall
  const after = { ...hungUp, group: { ...plain, members: [] } }
  const bye = { ...heading, status: 'ended', reason: 'hangup', by: ofBob, ended_at: iso(now) } as const
  const gone = over(between, 'cancelled', 'caller_cancelled', { name: 'all', members: ['bob'], declined: [] })
  return [
    [
      'its member accepts',
      ringing,
      { type: 'accept', actor: ben },
      made(accepted, {
        ...{ type: 'accepted', by: byActor(ben) },
        notices: [
          { to: { place: 'caller' }, event: 'call.accepted', data: { ...heading, status: 'accepted' } },
          { to: { place: 'rung', except }, event: 'call.cancelled', data: elsewhere },
        ],
      }),
    ],
    [
      'its member hangs up',
      accepted,
      { type: 'end', actor: ben, reason: null },
      made(after, {
        ...{ type: 'ended', by: byActor(ben) },
        notices: [{ to: { place: 'caller' }, event: 'call.ended', data: bye }],
      }),
    ],
    [
      'another member accepts',
      ringing,
      { type: 'accept', actor: ann },
      refused('CALL_INVALID_STATE', { status: 'ringing' }),
    ],
    [
      'a member accepts between two turns',
      between,
      { type: 'accept', actor: ben },
      refused('CALL_INVALID_STATE', { status: 'ringing' }),
    ],
    ...lateDeclines(),
    [
      'its member declines',
      ringing,
      reject(ben),
      made(next(declined), {
        ...{ type: 'declined', by: byActor(ben) },
        notices: [cancelled('bob', 'rejected_elsewhere', except, ofBob)],
      }),
    ],
    [
      'the last one declines',
      last,
      reject(ben),
      made(ended, {
        ...{ type: 'rejected', by: byActor(ben) },
        notices: [
          { to: { place: 'caller' }, event: 'call.rejected', data },
          {
            to: { place: 'rung', except, member: 'bob' },
            event: 'call.cancelled',
            data: { ...data, reason: 'rejected_elsewhere' },
          },
        ],
      }),
    ],
    [
      'the caller gives up',
      between,
      { type: 'cancel', actor: caller, reason: null },
      made(gone, {
        ...{ type: 'cancelled', by: byActor(caller) },
      }),
    ],
  ]
}

/** Members say no whose turn it is not, or not any more. */
function lateDeclines(): readonly Case[] {
  const twice = at({}, {}, { declined: ['carol'] })
  const declined = (call: RingingCall, actor: typeof ben) => {
    const { userId, role } = actor.participant
    const left = { ...(call.group as CallGroup), declined: [...(call.group?.declined ?? []), userId] }
    const except = ['b2', actor.sessionId]
    return made(next({ ...call, group: left }), {
      ...{ type: 'declined', by: byActor(actor) },
      notices: [cancelled(userId, 'rejected_elsewhere', except, { user_id: userId, role })],
    })
  }
  const last = at({ member: null, until: now, next: 3, rang: ['bob'] }, {}, { declined: ['carol', 'eve'] })
  const rest = { name: 'all', members: ['bob'], declined: ['carol', 'eve', 'bob'] }
  const ended = over(last, 'rejected', 'all_declined', rest)
  const data = { ...heading, status: 'rejected', reason: 'all_declined', by: ofBob, ended_at: iso(now) } as const
  const to = { place: 'rung', except: ['b2', 'b'], member: 'bob' } as const
  const busy: CallCommand = { type: 'reject', actor: ann, reason: 'busy', rung: ['c'] }
  const notices: CallEvent['notices'] = [
    { to: { place: 'caller' }, event: 'call.rejected', data },
    { to, event: 'call.cancelled', data: { ...data, reason: 'rejected_elsewhere' } },
  ]
  return [
    ['another member declines', ringing, reject(ann), declined(ringing, ann)],
    ['another member hangs up', ringing, { type: 'end', actor: ann, reason: null }, declined(ringing, ann)],
    ['it declines after its turn', between, reject(ben), declined(between, ben)],
    ['another member declines twice', twice, reject(ann), same(twice)],
    ['it is busy after it has declined', twice, busy, same(twice)],
    ['another member cancels', ringing, { type: 'cancel', actor: ann, reason: null }, same(ringing)],
    ['another member sends', ringing, { type: 'relay', actor: ann }, same(ringing)],
    ['another member is connected', ringing, { type: 'connected', actor: ann }, same(ringing)],
    [
      'the last one declines after its turn',
      last,
      reject(ben),
      made(ended, { ...{ type: 'rejected', by: byActor(ben) }, notices }),
    ],
  ]
}

function leaves(): readonly Case[] {
  const later = at({ member: 'carol', next: 2, rang: ['bob', 'carol'] })
  const left = (call: RingingCall, userId: string, change: Partial<Turns>) => {
    const kept = {
      ...(call.group as CallGroup),
      members: members.filter((member) => member !== userId),
      left: [userId],
    }
    // A member without a turn now has heard nothing, or that its turn is over.
    const notices = call.group?.turns?.member === userId ? [cancelled(userId, 'left_group', ['b2'])] : []
    return made(next({ ...call, group: { ...kept, turns: { ...(call.group?.turns as Turns), ...change } } }), {
      ...{ type: 'left', notices },
    })
  }
  const said = at({ member: 'carol', next: 2, rang: ['bob', 'carol'] }, {}, { declined: ['bob'] })
  const gone = at({}, {}, { left: ['dan'] })
  const leave = (userId: string): CallCommand => ({ type: 'leave', userIds: [userId] })
  return [
    ['its member leaves', ringing, leave('bob'), left(ringing, 'bob', { member: null, until: now, next: 0, rang: [] })],
    ['one who was rung leaves', later, leave('bob'), left(later, 'bob', { next: 1, rang: ['carol'] })],
    ['one who is to be rung leaves', later, leave('eve'), left(later, 'eve', {})],
    ['the one after this one leaves', ringing, leave('carol'), left(ringing, 'carol', {})],
    ['who declined leaves', at({}, {}, { declined: ['eve'] }), leave('eve'), same(at({}, {}, { declined: ['eve'] }))],
    [
      'who declined is erased',
      said,
      { type: 'forget', userId: 'bob' },
      made(
        next({
          ...said,
          group: {
            ...group,
            members: ['carol', 'eve'],
            turns: { ...turns, member: 'carol', next: 1, rang: ['carol'] },
          },
        }),
        { type: 'left' },
      ),
    ],
    [
      'one who left is erased',
      gone,
      { type: 'forget', userId: 'dan' },
      made(next({ ...gone, group: { ...gone.group, left: [] } as CallGroup }), { type: 'left' }),
    ],
    ['one who is to be rung is erased', ringing, { type: 'forget', userId: 'eve' }, left(ringing, 'eve', {})],
  ]
}

function checkInvited(machine: Machine): number {
  const called: CalledGroup = { name: 'all', members, isBusy: false, memberRingMs: 15_000 }
  const invite: InviteCommand = {
    ...{
      actor: caller,
      callee: { userId: '', role: 'agent' },
      group: called,
      callUuid: uuidOf(1),
      freshUuid: uuidOf(3),
    },
    ...{ contextType: 'order', contextId: '42', callType: 'video', ringTimeoutMs: 60_000, metadata: null },
    ...{ rate: { ok: true }, maxRinging: 5, busy: 'reject' },
  }
  const first: Turns = {
    ...{ member: null, until: now, memberRingMs: 15_000 },
    ...{ next: 0, count: 0, hasRung: false, rang: [] },
  }
  const begun = {
    ...{ ...ringing, version: 1, group: { ...plain, turns: first }, silenced: [] },
    ...{ startedAt: now, ringExpiresAt: now + 60_000 },
  }
  const { silenced: _, ...rest } = begun
  const busy = {
    ...{ ...rest, status: 'busy', group: { ...plain, members: [] }, endReason: 'busy' },
    ...{ calleePlace: null, acceptedAt: null, connectedAt: null, endedAt: now },
  }
  const step = (call: object, type: string) => ({ call, event: { type, at: now, by: byActor(caller), notices: [] } })
  const situation = { sameUuid: undefined, live: [] }
  const cases = [
    [called, { ok: true, call: begun, steps: [step(begun, 'invited')], created: true, calleeBusy: false }],
    [
      { ...called, isBusy: true },
      { ok: false, code: 'CALLEE_BUSY', details: {}, steps: [step(busy, 'busy')] },
    ],
  ] as const
  for (const [group, expected] of cases) {
    const wrong = difference(asStored(machine.decideInvite(situation, { ...invite, group }, now)), asStored(expected))
    if (wrong !== undefined) violated('GROUP1', `an invite\n${wrong}`)
  }
  return cases.length
}

export function checkTurns(machine: Machine): number {
  const exact = strict(machine)
  const cases = [...clocks(), ...begins(), ...answers(), ...leaves()]
  for (const [name, call, command, expected] of cases) {
    const wrong = difference(asStored(exact.decide(call, command, now, durations)), asStored(expected))
    if (wrong !== undefined) violated('GROUP1', `${name}\n${wrong}`)
  }
  return cases.length + checkInvited(exact)
}

function asStored(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
