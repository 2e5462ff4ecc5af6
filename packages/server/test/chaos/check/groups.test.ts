import { expect, test } from 'bun:test'
import type { Entry, EventRow, Frame } from '../recording.ts'
import { factsOf } from './facts.ts'
import { checkGroups } from './groups.ts'
import { headerOf } from './header-of.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'

const call_uuid = 'c'
const times = { started_at: 20_000, ring_expires_at: 27_000, accepted_at: null, connected_at: null, ended_at: 27_000 }
const row = { call_uuid, caller: 'dan', callee: '', group: 'desk', members: ['ann'], version: 4, ...times }
const events = (
  [
    ['invited', 20_000],
    ['turn', 20_010],
    ['passed', 25_010],
    ['missed', 27_000],
  ] as const
).map(([type, at], i): EventRow => ({ call_uuid, version: i + 1, type, at, by_user: null, member: 'ann' }))

const came = (at: number, frame: Frame, socket = 0): Entry => ({ kind: 'in', at, socket, frame })
const hello = (at: number, socket: number, data: { recovered: boolean; handled: number }): Entry[] => [
  { kind: 'open', at, socket, node: 0 },
  came(at + 1, { event: 'auth.ok', data: { session_id: 's', epoch: 'e', ...data } }, socket),
]
const ringing = { event: 'call.ringing', seq: 1, version: 2, data: { call_uuid } }
const ring = came(20_020, ringing)
const passed = came(25_020, {
  ...{ event: 'call.cancelled', seq: 2, version: 3 },
  data: { call_uuid, status: 'ringing', reason: 'next_member', ended_at: null },
})
const declines: Entry = {
  ...{ kind: 'out', at: 27_900, socket: 0 },
  frame: { event: 'call.reject', request_id: '1', n: 1, data: { call_uuid } },
}
const reply = (at: number, socket = 0) => {
  return came(at, { event: 'call.ack', request_id: '1', data: { call_uuid, status: 'missed' } }, socket)
}
const missed = (at: number, socket = 0) => {
  const data = { call_uuid, status: 'missed', reason: 'no_answer' }
  return came(at, { event: 'call.missed', seq: 3, version: 4, data }, socket)
}
const comesBack = (handled: number): Entry[] => [
  { kind: 'close', at: 28_000, socket: 0, code: 1006 },
  ...hello(29_000, 1, { recovered: true, handled }),
]

/** What is wrong where this happens after the turn of the only member of a group. */
function problems(...after: readonly Entry[]): string[] {
  const entries = [...hello(10_000, 0, { recovered: false, handled: 0 }), ring, passed, ...after]
  const facts = factsOf({ calls: [{ ...row, status: 'missed', end_reason: 'no_answer' }], events })
  const found: string[] = []
  const readings = [read({ user: 'ann', entries })]
  checkGroups(readings, facts, 0, createPatience(headerOf()), (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

const twice = ['double: it stopped ringing 2 times: call.cancelled (next_member),call.missed (no_answer)']

test('[GROUP1] a member whose turn is over hears nothing more', () => {
  expect(problems()).toEqual([])
  expect(problems(missed(27_020))).toEqual(twice)
})

test('[END4] a member who names the call later hears its end before the reply, and not after it', () => {
  expect(problems(declines, missed(27_950), reply(27_960))).toEqual([])
  expect(problems(declines, missed(27_950), reply(27_950))).toEqual([])
  expect(problems(declines, reply(27_950), missed(27_960))).toEqual(twice)
})

test('[RES1] where the member comes back only then, it gets the reply first', () => {
  expect(problems(declines, ...comesBack(1), reply(29_002, 1), missed(29_003, 1))).toEqual([])
  // The request took effect only after that: the end comes before its reply.
  expect(problems(declines, ...comesBack(0), reply(29_050, 1), missed(29_060, 1))).toEqual(twice)
  // The client had the reply before.
  expect(problems(declines, reply(27_950), ...comesBack(1), missed(29_003, 1))).toEqual(twice)
})

/** What is wrong where ann's phone leaves while a call rings, stays away for this time, and hears this in a new session. */
function problemsAway(type: 'accepted' | 'missed', awayMs: number, ...heard: readonly Frame[]): string[] {
  const isAnswered = type === 'accepted'
  const all = { ...row, callee: isAnswered ? 'bob' : '', members: ['ann', 'bob'], version: 2 }
  const over = { call_uuid, version: 2, type, at: 21_000, by_user: isAnswered ? 'bob' : null }
  const facts = factsOf({
    calls: [{ ...all, status: isAnswered ? 'accepted' : type, end_reason: isAnswered ? null : 'no_answer' }],
    events: [{ call_uuid, version: 1, type: 'invited', at: 20_000, by_user: 'dan' }, over],
  })
  const [leftAt, backAt] = [20_500, 20_500 + awayMs]
  const back = { event: 'auth.ok', data: { session_id: 'new', epoch: 'e', recovered: false } }
  const entries: Entry[] = [
    ...hello(10_000, 0, { recovered: false, handled: 0 }),
    came(20_020, { ...ringing, version: 1 }),
    { kind: 'close', at: leftAt, socket: 0, code: 1006 },
    { kind: 'open', at: backAt, socket: 1, node: 0 },
    ...[back, ...heard].map((frame) => came(backAt + 1, frame, 1)),
    { kind: 'close', at: backAt + 60_000, socket: 1, code: 1006 },
  ]
  const found: string[] = []
  const patience = createPatience({ ...headerOf(), resumeWindowMs: 30_000 })
  checkGroups([read({ user: 'ann', entries })], facts, 0, patience, (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

const ringsOn = ['untold: it rings on for ann']

test('[RES1] a member whose phone was away for longer than the resume window need not hear that another one answered', () => {
  expect(problemsAway('accepted', 34_000)).toEqual([])
  // This session was there to be resumed.
  expect(problemsAway('accepted', 24_000)).toEqual(ringsOn)
})

test('[WS4] after that a member hears in its new session how the call ended, if that was no more than two minutes ago', () => {
  const end = { event: 'call.missed', seq: 1, version: 2, data: { call_uuid, status: 'missed', reason: 'no_answer' } }
  expect(problemsAway('missed', 34_000, end)).toEqual([])
  expect(problemsAway('missed', 34_000)).toEqual(ringsOn)
  expect(problemsAway('missed', 124_000)).toEqual([])
})
