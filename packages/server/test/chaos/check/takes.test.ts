import { expect, test } from 'bun:test'
import type { Entry, EventRow } from '../recording.ts'
import { factsOf } from './facts.ts'
import { headerOf } from './header-of.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'
import { checkTakes } from './takes.ts'

const call_uuid = 'c'
const times = { started_at: 20_000, ring_expires_at: 22_500, accepted_at: 21_000, connected_at: null, ended_at: 30_000 }
const row = { call_uuid, caller: 'ann', callee: 'bob', version: 4, status: 'ended', end_reason: 'hangup', ...times }

/** A phone that asks for one thing about the call. */
function asks(session_id: string, event: string, at: number, more: readonly Entry[] = []) {
  const data = { session_id, epoch: 'e', recovered: false }
  const entries: Entry[] = [
    { kind: 'open', at: 10_000, socket: 0, node: 0 },
    { kind: 'in', at: 10_050, socket: 0, frame: { event: 'auth.ok', data } },
    ...more,
    { kind: 'out', at, socket: 0, frame: { event, request_id: '1', n: 1, data: { call_uuid } } },
    { kind: 'in', at: at + 50, socket: 0, frame: { event, request_id: '1', data: { call_uuid, status: 'accepted' } } },
  ]
  return read({ user: 'ann', entries })
}

/** What is wrong where the phone from which the caller's place was taken asks for this afterwards. */
function problems(event: string): string[] {
  const events = (
    [
      ['invited', 20_000, 'ann', 'one'],
      ['accepted', 21_000, 'bob', 'bobs'],
      ['place_taken', 24_000, 'ann', 'two'],
    ] as const
  ).map(
    ([type, at, by_user, by_session], i): EventRow => ({ call_uuid, version: i + 1, type, at, by_user, by_session }),
  )
  const data = { call_uuid, status: 'accepted', reason: 'taken_elsewhere', ended_at: null }
  const told: Entry = {
    kind: 'in',
    at: 24_100,
    socket: 0,
    frame: { event: 'call.cancelled', seq: 1, version: 3, data },
  }
  const header = headerOf()
  const found: string[] = []
  checkTakes({
    readings: [asks('one', event, 25_000, [told]), asks('two', 'call.take', 23_950)],
    ...{ facts: factsOf({ calls: [row], events }), startedAt: 0, apart: new Set(), patience: createPatience(header) },
    report: (kind, text) => found.push(`${kind}: ${text}`),
  })
  return found
}

test('[TAKE1] a session whose place was taken does nothing more', () => {
  expect(problems('call.connected')).toEqual([
    'taken: call.connected was done (accepted) for a session that has the place no more',
  ])
})

test('[INV3] its invite may be repeated: the answer only says how the call is', () => {
  expect(problems('call.invite')).toEqual([])
})
