import { expect, test } from 'bun:test'
import type { Entry } from '../recording.ts'
import { createDueRings } from './due-rings.ts'
import { factsOf } from './facts.ts'
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

/** Whether the callee of a call that rang from 20 to 22.5 s had to hear of it, where Redis stood still from 20.5 s on. */
function isDue(until: number): boolean {
  const call = { call_uuid: 'c', caller: 'user-1', callee: 'user-2', version: 2, status: 'missed' }
  const times = { started_at: 20_000, ring_expires_at: 22_500, accepted_at: null, connected_at: null, ended_at: 22_500 }
  const facts = factsOf({
    calls: [{ ...call, ...times, end_reason: 'no_answer' }],
    events: [
      { call_uuid: 'c', version: 1, type: 'invited', at: 20_000, by_user: 'user-1' },
      { call_uuid: 'c', version: 2, type: 'missed', at: 22_500, by_user: null },
    ],
  })
  const invited = { event: 'call.invited', request_id: '1', data: { call_uuid: 'c' } }
  const invite: Entry[] = [
    { kind: 'out', at: 20_000, socket: 0, frame: { event: 'call.invite', request_id: '1', n: 1 } },
    { kind: 'in', at: 20_050, socket: 0, frame: invited },
  ]
  const readings = [phone('user-1', ...invite), phone('user-2')].map((each) => [each.user, each] as const)
  const fault = { kind: 'Redis stopped', target: 'Redis', from: 20_500, until } as const
  return createDueRings(new Map(readings), createPatience(headerOf(fault)))(facts.get('c')!, 'user-2', 20_000)
}

test('[RING1] a ring that could not be told while it rang is due for 10 s after its end, and not later', () => {
  expect(isDue(21_500)).toBe(true)
  expect(isDue(24_000)).toBe(false)
})
