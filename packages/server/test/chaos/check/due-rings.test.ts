import { expect, test } from 'bun:test'
import type { Entry, FaultRecord } from '../recording.ts'
import { createDueRings } from './due-rings.ts'
import { type CallFacts, factsOf } from './facts.ts'
import { headerOf } from './header-of.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'

/** A phone that was there all the time. */
function phone(user: string, ...heard: Entry[]) {
  const hello = { event: 'auth.ok', data: { session_id: user, epoch: 'e', recovered: false } }
  const opened: Entry[] = [
    { kind: 'open', at: 10_000, socket: 0, node: 0 },
    { kind: 'in', at: 10_001, socket: 0, frame: hello },
  ]
  return read({ user, entries: [...opened, ...heard, { kind: 'close', at: 90_000, socket: 0, code: 1006 }] })
}

/** A call of user-1 that rang at user-2, and at user-3 if it was to a group, from 20 s until `over`. */
function callUntil(over: number, type: 'missed' | 'accepted') {
  const isAnswered = type === 'accepted'
  const call = { call_uuid: 'c', caller: 'user-1', callee: isAnswered ? 'user-3' : 'user-2', status: 'missed' }
  const group = isAnswered ? { group: 'desk', members: ['user-2', 'user-3'] } : {}
  const times = { started_at: 20_000, ring_expires_at: 22_500, accepted_at: null, connected_at: null, ended_at: null }
  const facts = factsOf({
    calls: [{ ...call, ...group, ...times, version: 2, end_reason: null }],
    events: [
      { call_uuid: 'c', version: 1, type: 'invited', at: 20_000, by_user: 'user-1' },
      { call_uuid: 'c', version: 2, type, at: over, by_user: isAnswered ? 'user-3' : null },
    ],
  })
  return facts.get('c')!
}

/** Whether user-2 had to hear of that call. It was there all the time, and these faults happened. */
function isDue(fact: CallFacts, ...faults: readonly FaultRecord[]): boolean {
  const invited = { event: 'call.invited', request_id: '1', data: { call_uuid: 'c' } }
  const invite: Entry[] = [
    { kind: 'out', at: 20_000, socket: 0, frame: { event: 'call.invite', request_id: '1', n: 1 } },
    { kind: 'in', at: 20_050, socket: 0, frame: invited },
  ]
  const readings = [phone('user-1', ...invite), phone('user-2')].map((each) => [each.user, each] as const)
  return createDueRings(new Map(readings), createPatience(headerOf(...faults)))(fact, 'user-2', 20_000)
}

const stopped = (from: number, until: number) => ({ kind: 'Redis stopped', target: 'Redis', from, until }) as const

test('[RING1] a ring that could not be told while it rang is due for 10 s after its end, and not later', () => {
  const missed = callUntil(22_500, 'missed')
  expect(isDue(missed, stopped(20_500, 21_500))).toBe(true)
  expect(isDue(missed, stopped(20_500, 24_000))).toBe(false)
})

test('[RING1] [GROUP1] a ring that somebody answered before it could be told is not due any more', () => {
  const outage = stopped(20_020, 20_300)
  expect(isDue(callUntil(20_600, 'accepted'), outage)).toBe(false)
  // It rang for long enough after the outage.
  expect(isDue(callUntil(30_600, 'accepted'), outage)).toBe(true)
  // Nothing was in the way.
  expect(isDue(callUntil(20_600, 'accepted'))).toBe(true)
  expect(isDue(callUntil(20_600, 'accepted'), stopped(10_000, 19_900))).toBe(true)
  // Its node had not tried again when the call was committed.
  expect(isDue(callUntil(20_600, 'accepted'), stopped(10_000, 19_990))).toBe(false)
})
