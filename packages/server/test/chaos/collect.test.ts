import { expect, test } from 'bun:test'
import { withMembers } from './collect.ts'
import type { CallRow, Trace } from './recording.ts'

const call = {
  call_uuid: 'a',
  caller: 'caller',
  group: 'first',
  members: [],
  accepted_at: 1,
  ended_at: 2,
} as unknown as CallRow

const traceOf = (user: string, event: string, call_uuid = 'a') =>
  ({ user, entries: [{ kind: 'in', frame: { event, data: { call_uuid } } }] }) as unknown as Trace

test('[GROUP1] [WS4] a member is rung who heard the ring, or in its next session only that another one answered', () => {
  const traces = [
    traceOf('rung', 'call.ringing'),
    traceOf('late', 'call.cancelled'),
    traceOf('other', 'call.ringing', 'b'),
    // It is in no group: nobody may tell it of the call.
    traceOf('stranger', 'call.cancelled'),
    // A member calls its own group, and its cancel crosses the answer.
    traceOf('caller', 'call.cancelled'),
  ]
  const groups = new Map([['first', ['rung', 'late', 'other', 'caller']]])
  expect(withMembers([call], [], traces, groups).map(({ members }) => members)).toEqual([['rung', 'late']])
})
