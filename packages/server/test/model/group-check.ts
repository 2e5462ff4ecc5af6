import {
  actorOf,
  alice,
  bob,
  carol,
  dave,
  durations,
  heldBy,
  leftBy,
  start,
  uuidOf,
} from '../../src/call/call.fixture.ts'
import type { Call, CallGroup, OverCall, RingingCall } from '../../src/call/call.ts'
import type { Actor, CallCommand } from '../../src/call/command.ts'
import type { Step } from '../../src/call/effects.ts'
import type { CalledGroup, InviteCommand } from '../../src/call/invite.ts'
import { byActor, difference } from './expected.ts'
import { type Machine, strict, violated } from './machine.ts'

/** Part A for calls to groups [GROUP1]. Each case says what is decided, in full. */

const [caller, ben, ann] = [actorOf(alice, 'a'), actorOf(bob, 'b', 'phone'), actorOf(carol, 'c')]
const eve = actorOf({ ...carol, userId: 'eve' }, 'e')
const now = start + 1_000
const members = ['bob', 'carol', 'eve']
const group: CallGroup = { name: 'all', members, declined: [] }
const ringing: RingingCall = {
  ...{ product: 'shop', callUuid: uuidOf(1), version: 4, status: 'ringing' },
  caller: { userId: 'alice', role: 'customer', displayName: 'ALICE' },
  callee: { userId: '', role: 'agent', displayName: null },
  ...{ contextType: 'order', contextId: '42', callType: 'video', metadata: null, group },
  ...{
    startedAt: start,
    ringTimeoutMs: 45_000,
    ringExpiresAt: start + 45_000,
    callerPlace: heldBy(caller),
    silenced: [],
  },
}
const twoLeft: RingingCall = { ...ringing, group: { ...group, declined: ['bob'] }, silenced: ['b'] }
const oneLeft: RingingCall = { ...ringing, group: { ...group, declined: ['bob', 'eve'] } }
const nobody: RingingCall = { ...ringing, group: { ...group, members: ['bob'], declined: ['bob'] } }
const iso = (at: number) => new Date(at).toISOString()
const wire = ({ participant: { userId, role } }: Actor) => ({ user_id: userId, role })
const heading = { call_uuid: uuidOf(1) }

function accepted(call: RingingCall, by: Actor): Call {
  const { silenced: _, ...rest } = call
  return {
    ...rest,
    ...{ version: 5, status: 'accepted', acceptedAt: now, connectedAt: null },
    callee: { userId: by.participant.userId, role: 'agent', displayName: by.displayName },
    calleePlace: heldBy(by),
  }
}

function over(call: RingingCall, status: OverCall['status'], endReason: string): OverCall {
  const { silenced: _, ...rest } = call
  return {
    ...rest,
    version: 5,
    status,
    calleePlace: null,
    acceptedAt: null,
    connectedAt: null,
    endedAt: now,
    endReason,
  }
}

const made = (...steps: Step[]) => ({ ok: true, call: steps.at(-1)?.call, steps })
const same = (call: Call) => ({ ok: true, call, steps: [] })
const refused = (code: string, details: object = {}) => ({ ok: false, code, details, steps: [] })

function acceptedStep(call: RingingCall, by: Actor): Step {
  const elsewhere = { status: 'accepted', reason: 'answered_elsewhere', by: wire(by), ended_at: null } as const
  return {
    call: accepted(call, by),
    event: {
      ...{ type: 'accepted', at: now, by: byActor(by) },
      notices: [
        { to: { place: 'caller' }, event: 'call.accepted', data: { ...heading, status: 'accepted' } },
        {
          to: { place: 'rung', except: [...call.silenced, by.sessionId] },
          event: 'call.cancelled',
          data: { ...heading, ...elsewhere },
        },
      ],
    },
  }
}

/** It stops ringing at one member. */
function stopped(
  call: RingingCall,
  by: Actor | null,
  member: string,
  left: CallGroup,
  silenced: readonly string[],
): Step {
  const [type, reason] = by === null ? (['left', 'left_group'] as const) : (['declined', 'rejected_elsewhere'] as const)
  const data = { ...heading, status: 'ringing', reason, by: by && wire(by), ended_at: null } as const
  const except = [...silenced, ...(by === null ? [] : [by.sessionId])]
  return {
    call: { ...call, version: 5, group: left, silenced },
    event: {
      ...{ type, at: now, by: by && byActor(by) },
      notices: [{ to: { place: 'rung', except, member }, event: 'call.cancelled', data }],
    },
  }
}

/** Nobody is left at whom it could ring. */
function emptied(call: RingingCall, gone: readonly string[]): Step {
  const { members, declined } = call.group ?? group
  const [status, reason] =
    declined.length > 0 ? (['rejected', 'all_declined'] as const) : (['cancelled', 'ended_by_server'] as const)
  const rest = members.filter((member) => !gone.includes(member))
  const next = over({ ...call, group: { ...group, members: rest, declined, left: gone } }, status, reason)
  const data = { ...heading, status, reason, by: null, ended_at: iso(now) } as const
  const told = gone.map((member) => ({
    ...{ to: { place: 'rung', except: call.silenced, member }, event: 'call.cancelled' },
    data: { ...data, reason: 'left_group' },
  }))
  const notices = [{ to: { place: 'caller' }, event: `call.${status}`, data }, ...told]
  return { call: next, event: { type: status, at: now, by: null, notices } } as unknown as Step
}

function allDeclined(call: RingingCall, by: Actor): Step {
  const member = by.participant.userId
  const next = over(
    { ...call, group: { ...group, declined: [...(call.group?.declined ?? []), member] } },
    'rejected',
    'all_declined',
  )
  const data = { ...heading, status: 'rejected', reason: 'all_declined', by: wire(by), ended_at: iso(now) } as const
  const except = [...call.silenced, by.sessionId]
  return {
    call: next,
    event: {
      ...{ type: 'rejected', at: now, by: byActor(by) },
      notices: [
        { to: { place: 'caller' }, event: 'call.rejected', data },
        {
          to: { place: 'rung', except, member },
          event: 'call.cancelled',
          data: { ...data, reason: 'rejected_elsewhere' },
        },
      ],
    },
  }
}

const reject = (actor: Actor, reason: string | null = null, rung: readonly string[] = []): CallCommand => ({
  ...{ type: 'reject', actor, reason, rung },
})
const hangUp = (actor: Actor): CallCommand => ({ type: 'end', actor, reason: null })
const ended = over(ringing, 'missed', 'no_answer')
const answered = accepted(ringing, ben)
const answeredLate = accepted(twoLeft, ann)
/** As it is kept when it has ended long after its ring. */
const talked = {
  ...answeredLate,
  ...{ group: { ...group, members: [], declined: ['bob'] }, status: 'ended', endedAt: now, endReason: 'hangup' },
} as unknown as OverCall
const crowd = Array.from({ length: 32 }, (_, n) => `s${n}`)
const crowded: RingingCall = { ...ringing, silenced: crowd }
const strangers = [
  actorOf(dave, 'd'),
  actorOf({ ...carol, role: 'customer' }, 'r'),
  actorOf({ ...carol, product: 'clinic' }, 'p'),
]
const late = { ...ann, expiresAt: start }

type Case = readonly [name: string, call: Call, command: CallCommand, expected: unknown]
const plain: readonly Case[] = [
  ['a member accepts', ringing, { type: 'accept', actor: ann }, made(acceptedStep(ringing, ann))],
  ['another one declined', twoLeft, { type: 'accept', actor: ann }, made(acceptedStep(twoLeft, ann))],
  ['its token was over', ringing, { type: 'accept', actor: late }, refused('AUTH_TOKEN_INVALID')],
  [
    'who declined accepts',
    twoLeft,
    { type: 'accept', actor: ben },
    refused('CALL_INVALID_STATE', { status: 'ringing' }),
  ],
  ['who declined declines', twoLeft, reject(ben), same(twoLeft)],
  ['who declined hangs up', twoLeft, { type: 'end', actor: ben, reason: null }, same(twoLeft)],
  [
    'a member declines',
    ringing,
    reject(ann),
    made(stopped(ringing, ann, 'carol', { ...group, declined: ['carol'] }, [])),
  ],
  [
    'the next one declines',
    twoLeft,
    { type: 'end', actor: ann, reason: 'no time' },
    made(stopped(twoLeft, ann, 'carol', { ...group, declined: ['bob', 'carol'] }, ['b'])),
  ],
  ['the last one declines', oneLeft, reject(ann), made(allDeclined(oneLeft, ann))],
  [
    'a member is busy',
    ringing,
    reject(ann, 'busy', ['c']),
    made(stopped(ringing, ann, 'carol', { ...group, declined: ['carol'] }, ['c'])),
  ],
  [
    'one of many sessions is busy',
    crowded,
    reject(ann, 'busy', ['c', 'c2']),
    made({
      call: { ...crowded, version: 5, silenced: [...crowd, 'c'] },
      event: { type: 'silenced', at: now, by: byActor(ann), notices: [] },
    }),
  ],
  ['a member cancels', ringing, { type: 'cancel', actor: ann, reason: null }, refused('CALL_NOT_PARTICIPANT')],
  [
    'a member is connected',
    ringing,
    { type: 'connected', actor: ann },
    refused('CALL_INVALID_STATE', { status: 'ringing' }),
  ],
  ['a member sends', ringing, { type: 'relay', actor: ann }, same(ringing)],
  ['a member arrives', ringing, { type: 'arrive', actor: ann }, same(ringing)],
  ['a member arrives after the answer', answered, { type: 'arrive', actor: ann }, same(answered)],
  ['a member accepts after the answer', answered, { type: 'accept', actor: ann }, refused('CALL_ALREADY_ANSWERED')],
  ['a member sends after the answer', answered, { type: 'relay', actor: ann }, refused('CALL_NOT_PARTICIPANT')],
  ['a member declines after the answer', answered, reject(ann), refused('CALL_NOT_PARTICIPANT')],
  ['a member hangs up after the answer', answered, hangUp(ann), refused('CALL_NOT_PARTICIPANT')],
  ['who declined declines after the answer', answeredLate, reject(ben), same(answeredLate)],
  ['who declined hangs up after the answer', answeredLate, hangUp(ben), same(answeredLate)],
  [
    'who declined accepts after the answer',
    answeredLate,
    { type: 'accept', actor: ben },
    refused('CALL_ALREADY_ANSWERED'),
  ],
  [
    'who declined cancels after the answer',
    answeredLate,
    { type: 'cancel', actor: ben, reason: null },
    refused('CALL_NOT_PARTICIPANT'),
  ],
  ['who declined sends after the answer', answeredLate, { type: 'relay', actor: ben }, refused('CALL_NOT_PARTICIPANT')],
  ['who declined declines after the end of the answered call', talked, reject(ben), same(talked)],
  ['a member who only rang asks long after the answer', talked, hangUp(eve), refused('CALL_NOT_FOUND')],
  [
    'a member accepts after the end',
    ended,
    { type: 'accept', actor: ann },
    refused('CALL_INVALID_STATE', { status: 'missed' }),
  ],
  ['a member hangs up after the end', ended, { type: 'end', actor: ann, reason: null }, same(ended)],
  ['a member arrives after the end', ended, { type: 'arrive', actor: ann }, same(ended)],
  ...strangers.flatMap((actor): Case[] => [
    ['a stranger accepts', ringing, { type: 'accept', actor }, refused('CALL_NOT_FOUND')],
    ['a stranger arrives', ringing, { type: 'arrive', actor }, refused('CALL_NOT_FOUND')],
    ['a stranger asks about the end', ended, { type: 'end', actor, reason: null }, refused('CALL_NOT_FOUND')],
  ]),
  [
    'a member leaves the group',
    twoLeft,
    { type: 'leave', userIds: ['carol'] },
    made(
      stopped(twoLeft, null, 'carol', { ...group, members: ['bob', 'eve'], declined: ['bob'], left: ['carol'] }, ['b']),
    ),
  ],
  [
    'two leave, one after the other',
    { ...ringing, group: { ...group, members: ['bob', 'carol'], left: ['eve'] } },
    { type: 'leave', userIds: ['dave', 'carol'] },
    made(stopped(ringing, null, 'carol', { ...group, members: ['bob'], left: ['eve', 'carol'] }, [])),
  ],
  [
    'all leave at once',
    twoLeft,
    { type: 'leave', userIds: ['eve', 'carol'] },
    made(emptied(twoLeft, ['carol', 'eve'])),
  ],
  ['the group is removed', ringing, { type: 'leave', userIds: members }, made(emptied(ringing, members))],
  ['the last one leaves the group', oneLeft, { type: 'leave', userIds: ['carol'] }, made(emptied(oneLeft, ['carol']))],
  ['who declined leaves', twoLeft, { type: 'leave', userIds: ['bob'] }, same(twoLeft)],
  ['a stranger leaves', ringing, { type: 'leave', userIds: ['dave'] }, same(ringing)],
  ['a member leaves after the answer', answered, { type: 'leave', userIds: ['carol'] }, same(answered)],
  ['a member leaves after the end', ended, { type: 'leave', userIds: ['carol'] }, same(ended)],
  ['the last one busy', nobody, { type: 'leave', userIds: ['bob'] }, same(nobody)],
]

/** Somebody is erased [SRV2]. */
function erasures(): readonly Case[] {
  const forget = (userId: string): CallCommand => ({ type: 'forget', userId })
  const quiet = (call: Call, of: CallGroup) =>
    made({
      call: { ...call, version: call.version + 1, group: of } as Call,
      event: { type: 'left', at: now, by: null, notices: [] },
    })
  const leftBefore = {
    ...ringing,
    group: { ...group, members: ['bob', 'carol'], declined: ['bob'], left: ['eve', 'dave'] },
  }
  const { group: _, ...person } = ringing
  const left = { ...group, members: ['bob', 'eve'], declined: ['bob'], left: ['carol'] }
  return [
    [
      'a member at whom it rings is erased',
      twoLeft,
      forget('carol'),
      made(stopped(twoLeft, null, 'carol', left, ['b'])),
    ],
    ['who declined is erased', twoLeft, forget('bob'), quiet(twoLeft, { ...group, members: ['carol', 'eve'] })],
    ['who has left is erased', leftBefore, forget('eve'), quiet(leftBefore, { ...leftBefore.group, left: ['dave'] })],
    ['a stranger is erased', twoLeft, forget('dave'), same(twoLeft)],
    ['somebody is erased, and a person is called', person, forget('bob'), same(person)],
    [
      'who declined is erased after the answer',
      answeredLate,
      forget('bob'),
      quiet(answeredLate, { ...group, members: ['carol', 'eve'], declined: [] }),
    ],
    [
      'who only rang is erased after the answer',
      answeredLate,
      forget('eve'),
      quiet(answeredLate, { ...group, members: ['bob', 'carol'], declined: ['bob'] }),
    ],
    ['a member is erased after the end', ended, forget('bob'), same(ended)],
  ]
}

/** What happens at its time, and how it ends. */
function ends(): readonly Case[] {
  const missed = {
    ...{ ...heading, status: 'missed', reason: 'no_answer', caller_user_id: 'alice', caller_role: 'customer' },
    ...{ callee_user_id: null, callee_group: 'all', callee_role: 'agent', display_name: 'ALICE' },
    ...{ context_type: 'order', context_id: '42', call_type: 'video', started_at: iso(start), ended_at: iso(now) },
  } as const
  const due = { ...twoLeft, ringExpiresAt: now }
  const notices = [{ place: 'caller' } as const, { place: 'rung', except: ['b'] } as const].map((to) => ({
    ...{ to, event: 'call.missed', data: missed },
  }))
  const step = { call: over(due, 'missed', 'no_answer'), event: { type: 'missed', at: now, by: null, notices } }
  const data = { ...heading, status: 'ended', reason: 'hangup', by: wire(ann), ended_at: iso(now) }
  const by = byActor(ann)
  const hungUp = { type: 'ended', at: now, by, notices: [{ to: { place: 'caller' }, event: 'call.ended', data }] }
  /** It ends `ms` after its ring would have been over; of its members these are kept. */
  const endsAfter = (ms: number, members: readonly string[]): readonly [Call, CallCommand, unknown] => {
    const call = { ...answeredLate, ringExpiresAt: now - ms } as Call
    const next = { ...call, version: 6, status: 'ended', endedAt: now, endReason: 'hangup' }
    const step = { call: { ...next, group: { ...group, members, declined: ['bob'] } }, event: hungUp }
    return [call, hangUp(ann), made(step as unknown as Step)]
  }
  return [
    ['nobody answers', due, { type: 'time' }, made(step as Step)],
    ['who answered hangs up at once', ...endsAfter(-45_000, ['eve'])],
    ['who answered hangs up, a minute after the ring but for a moment', ...endsAfter(59_999, ['eve'])],
    ['who answered hangs up, a minute after the ring', ...endsAfter(60_000, [])],
  ]
}

const called: CalledGroup = { name: 'all', members, isBusy: false }
const invite: InviteCommand = {
  ...{ actor: caller, callee: { userId: '', role: 'agent' }, group: called, callUuid: uuidOf(2), freshUuid: uuidOf(3) },
  ...{ contextType: 'order', contextId: '42', callType: 'video', ringTimeoutMs: 45_000, metadata: null },
  ...{ rate: { ok: true }, maxRinging: 5, busy: 'reject' },
}

function invited(): { readonly created: Step } {
  const at = now
  const call: RingingCall = {
    ...ringing,
    ...{ version: 1, callUuid: uuidOf(2), startedAt: at, ringExpiresAt: at + 45_000 },
    group,
  }
  const data = {
    ...{ call_uuid: uuidOf(2), caller_user_id: 'alice', caller_role: 'customer', display_name: 'ALICE' },
    ...{ context_type: 'order', context_id: '42', call_type: 'video', ring_timeout_ms: 45_000 },
    ...{ expires_at: iso(at + 45_000), callee_group: 'all' },
  }
  const notices = [{ to: { place: 'rung', except: [] }, event: 'call.ringing', data } as const]
  return { created: { call, event: { type: 'invited', at, by: byActor(caller), notices } } }
}

type Invite = readonly [
  name: string,
  same: Call | undefined,
  live: readonly Call[],
  change: Partial<InviteCommand>,
  expected: unknown,
]
function invites(): readonly Invite[] {
  const { created } = invited()
  const begins = { ok: true, call: created.call, steps: [created], created: true, calleeBusy: false }
  const again = { created: false, calleeBusy: false }
  const otherGroup: RingingCall = { ...ringing, group: { ...group, name: 'sales' } }
  const otherRole: RingingCall = { ...ringing, callee: { ...ringing.callee, role: 'doctor' } }
  const personal: RingingCall = { ...ringing, callee: { ...ringing.callee, userId: 'bob' } }
  const { group: _, ...toBob } = personal
  const busy = { ...over(created.call as RingingCall, 'busy', 'busy'), version: 1 }
  const busyStep = { call: busy, event: { type: 'busy', at: now, by: byActor(caller), notices: [] } }
  const superseded = over(ringing, 'cancelled', 'superseded')
  const data = { ...heading, status: 'cancelled', reason: 'superseded', by: wire(caller), ended_at: iso(now) }
  const addresses = [{ place: 'caller' }, { place: 'rung', except: [] }]
  const notices = addresses.map((to) => ({ to, event: 'call.cancelled', data }))
  const ending = { call: superseded, event: { type: 'cancelled', at: now, by: byActor(caller), notices } }
  const other = invited().created
  const changed = { ...other, call: { ...other.call, contextId: '7' } }
  const ringData = { ...(changed.event.notices[0]?.data as object), context_id: '7' }
  const begun = { ...changed, event: { ...changed.event, notices: [{ ...changed.event.notices[0], data: ringData }] } }
  const toPerson: Partial<InviteCommand> = { callee: { userId: 'bob', role: 'agent' }, group: undefined as never }
  return [
    ['it begins', undefined, [], {}, begins],
    ['it rings already', undefined, [ringing], {}, { ...same(ringing), ...again }],
    ['it was answered', undefined, [{ ...answered, callerPlace: leftBy(caller, start) } as Call], {}, begins],
    ['another group rings', undefined, [otherGroup], {}, begins],
    ['a group of another role rings', undefined, [otherRole], {}, begins],
    ['a person rings', undefined, [toBob], {}, begins],
    [
      'about something else',
      undefined,
      [ringing],
      { contextId: '7' },
      { ...begins, call: begun.call, steps: [ending, begun] },
    ],
    ['the same uuid', ringing, [ringing], { callUuid: uuidOf(1) }, { ...same(ringing), ...again }],
    ['the same uuid, answered', answered, [answered], { callUuid: uuidOf(1) }, { ...same(answered), ...again }],
    ['the uuid of another group', otherGroup, [otherGroup], { callUuid: uuidOf(1) }, refused('CALL_ID_CONFLICT')],
    ['the uuid of another role', otherRole, [otherRole], { callUuid: uuidOf(1) }, refused('CALL_ID_CONFLICT')],
    ['the uuid of a person', toBob, [toBob], { callUuid: uuidOf(1) }, refused('CALL_ID_CONFLICT')],
    [
      'a person with the uuid of a group',
      answered,
      [answered],
      { callUuid: uuidOf(1), ...toPerson },
      refused('CALL_ID_CONFLICT'),
    ],
    ['all are in calls', undefined, [], { group: { ...called, isBusy: true } }, refusedWith('CALLEE_BUSY', busyStep)],
    [
      'all are in calls, and may be',
      undefined,
      [],
      { group: { ...called, isBusy: true }, busy: 'allow' },
      { ...begins, calleeBusy: true },
    ],
  ]
}
const refusedWith = (code: string, step: unknown) => ({ ok: false, code, details: {}, steps: [step] })

export function checkGroups(machine: Machine): number {
  const { decide, decideInvite } = strict(machine)
  const cases = [...plain, ...erasures(), ...ends()]
  for (const [name, call, command, expected] of cases) {
    const wrong = difference(withoutUnsaid(decide(call, command, now, durations)), withoutUnsaid(expected))
    if (wrong !== undefined) violated('GROUP1', `${name}\n${wrong}`)
  }
  const all = invites()
  for (const [name, sameUuid, live, change, expected] of all) {
    const command = { ...invite, ...change }
    const decision = decideInvite({ sameUuid: sameUuid as never, live: live as never }, command, now)
    const wrong = difference(withoutUnsaid(decision), withoutUnsaid(expected))
    if (wrong !== undefined) violated('GROUP1', `${name}\n${wrong}`)
  }
  return cases.length + all.length
}

/** As it is stored. */
function withoutUnsaid(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
