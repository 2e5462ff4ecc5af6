import { expect, test } from 'bun:test'
import type { EventRow } from '../recording.ts'
import { factsOf } from './facts.ts'
import { read } from './reading.ts'
import { checkTold } from './told.ts'

const call_uuid = 'c'
const times = { started_at: 20_000, ring_expires_at: 27_000, accepted_at: null, connected_at: null, ended_at: 27_000 }
const row = { call_uuid, caller: 'dan', callee: '', group: 'desk', members: ['ann', 'bob'], version: 4, ...times }

/** What is wrong where a session of somebody hears that it declined elsewhere a call that ann declined in her session `one`. */
function problems(user: string, session_id: string, version = 3): string[] {
  const events = (
    [
      ['invited', 20_000, 'dan', 'dans'],
      ['turn', 20_010, null, null],
      ['declined', 21_000, 'ann', 'one'],
      ['missed', 27_000, null, null],
    ] as const
  ).map(
    ([type, at, by_user, by_session], i): EventRow => ({ call_uuid, version: i + 1, type, at, by_user, by_session }),
  )
  const data = { call_uuid, status: 'ringing', reason: 'rejected_elsewhere', by: { user_id: 'ann' }, ended_at: null }
  const frame = { event: 'call.cancelled', seq: 1, version, data }
  const hello = { event: 'auth.ok', data: { session_id, epoch: 'e', recovered: false } }
  const reading = read({
    user,
    entries: [
      { kind: 'open', at: 30_000, socket: 0, node: 0 },
      { kind: 'in', at: 30_050, socket: 0, frame: hello },
      { kind: 'in', at: 30_060, socket: 0, frame },
    ],
  })
  const facts = factsOf({ calls: [{ ...row, status: 'missed', end_reason: 'no_answer' }], events })
  const found: string[] = []
  checkTold([reading], facts, (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

const wrong = ['disagrees: call.cancelled: ringing elsewhere']

test('[WS4] a new session may hear that its participant declined in another session', () => {
  expect(problems('ann', 'two')).toEqual([])
})

test('[GROUP1] nobody else hears that, nor the session that declined, nor by another version', () => {
  expect(problems('bob', 'two')).toEqual(wrong)
  expect(problems('ann', 'one')).toEqual(wrong)
  expect(problems('ann', 'two', 2)).toEqual(wrong)
})
