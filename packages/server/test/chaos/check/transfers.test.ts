import { describe, expect, test } from 'bun:test'
import type { CallRow, EventRow } from '../recording.ts'
import { factsOf } from './facts.ts'
import { checkTransfers } from './transfers.ts'

const times = { started_at: 20_000, ring_expires_at: 22_500, accepted_at: 21_000, connected_at: null, ended_at: 25_000 }
const answered = { ...times, version: 3, status: 'ended' }
const former = { ...answered, end_reason: 'transferred', transferred_to: 'new' }

/** Ann talks to Bob and to Cas, and connects them at 25 s; `change` of the new call, and of the second one. */
function problems(change: Partial<CallRow> = {}, second: Partial<CallRow> = {}): string[] {
  const calls: CallRow[] = [
    { call_uuid: 'one', caller: 'ann', callee: 'bob', ...former },
    { call_uuid: 'two', caller: 'cas', callee: 'ann', ...former, ...second },
    {
      ...{ call_uuid: 'new', caller: 'bob', callee: 'cas', ...answered, version: 2, end_reason: 'ended_by_user' },
      ...{ started_at: 25_000, accepted_at: 25_000, ended_at: 30_000 },
      ...{ transferred_from: 'one', transferred_by: 'ann', ...change },
    },
  ]
  const steps = (call_uuid: string, ...all: readonly (readonly [type: string, at: number, by: string | null])[]) =>
    all.map(([type, at, by_user], i): EventRow => ({ call_uuid, version: i + 1, type, at, by_user }))
  const events = [
    ...steps('one', ['invited', 20_000, 'ann'], ['accepted', 21_000, 'bob'], ['ended', 25_000, 'ann']),
    ...steps(
      'two',
      ['invited', 20_000, 'cas'],
      ['accepted', 21_000, 'ann'],
      ['ended', second.ended_at ?? 25_000, 'ann'],
    ),
    ...steps('new', ['accepted', 25_000, null], ['ended', 30_000, 'bob']),
  ]
  const found: string[] = []
  checkTransfers([], factsOf({ calls, events }), 0, (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

describe('[XFER1] a consultation', () => {
  test('ends two calls, and connects their other sides: nothing is wrong', () => {
    expect(problems()).toEqual([])
  })

  test('connects others than those', () => {
    expect(problems({ callee: 'ann' })).toEqual(['transfer: bob calls ann; ann left bob,cas'])
    expect(problems({ caller: 'cas', callee: 'bob' })).toHaveLength(1)
  })

  test('ends one of the calls later, or for another reason', () => {
    expect(problems({}, { ended_at: 25_500 }).join()).toContain('two did not end with it')
    expect(problems({}, { end_reason: 'ended_by_user' }).join()).toContain('two did not end with it')
  })

  test('goes on without a second call', () => {
    const { transferred_to: _, ...alone } = former
    expect(problems({}, { ...alone, transferred_to: 'another' })).toContain(
      'transfer: it became of two calls, and there is only one of them',
    )
  })
})
