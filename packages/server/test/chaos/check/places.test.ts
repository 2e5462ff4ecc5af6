import { expect, test } from 'bun:test'
import { factsOf } from './facts.ts'
import { isWithAnother } from './places.ts'
import { read } from './reading.ts'

const times = { started_at: 1_000, ring_expires_at: 3_500, accepted_at: 2_000, connected_at: null, ended_at: 9_000 }
const call = { call_uuid: 'c', caller: 'user-1', callee: 'user-2', version: 3, status: 'ended', end_reason: 'hangup' }
const active = { call_uuid: 'c', status: 'accepted', version: 2, direction: 'outgoing', holds_place: false }

/** A new session without its place asked for the end of the call at 5 s. Who ended the call at 9 s, and when was the answer? */
function isWithAnotherAt6s(by: string, answeredAt: number): boolean {
  const event = { call_uuid: 'c', version: 3, type: 'ended', at: 9_000, by_user: by }
  const fact = factsOf({ calls: [{ ...call, ...times }], events: [event] }).get('c')!
  const data = { session_id: 's', epoch: 'e', recovered: false, active_calls: [active] }
  const end = { event: 'call.end', request_id: 'r', n: 1, data: { call_uuid: 'c' } }
  const ack = { event: 'call.ack', request_id: 'r', data: { call_uuid: 'c', status: 'ended' } }
  const reading = read({
    user: 'user-1',
    entries: [
      { kind: 'open', at: 5_000, socket: 0, node: 0 },
      { kind: 'in', at: 5_000, socket: 0, frame: { event: 'auth.ok', data } },
      { kind: 'out', at: 5_000, socket: 0, frame: end },
      { kind: 'in', at: answeredAt, socket: 0, frame: ack },
    ],
  })
  return isWithAnother(reading, fact, 6_000, 0)
}

test('[PLACE4] what is answered only after somebody else has ended the call has not taken the place', () => {
  expect(isWithAnotherAt6s('user-2', 9_100)).toBe(true)
  expect(isWithAnotherAt6s('user-2', 5_100)).toBe(false)
  expect(isWithAnotherAt6s('user-1', 9_100)).toBe(false)
})
