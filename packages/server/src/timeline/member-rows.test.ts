import { expect, test } from 'bun:test'
import type { TimelineRow } from '../call/observed.ts'
import { createMemberRows } from './member-rows.ts'

const rowOf = (callUuid: string, at = 0): TimelineRow => ({
  ...{
    product: 'shop',
    callUuid,
    id: crypto.randomUUID(),
    at,
    what: 'rung',
    side: 'callee',
    member: 'ben',
    detail: {},
  },
})
const some = () => ({ product: 'shop', callUuid: crypto.randomUUID() })

test('[TRACE1] what is kept of a call is taken once, and that of other calls stays', () => {
  const rows = createMemberRows()
  const [one, other] = [some(), some()]
  const kept = [rowOf(one.callUuid), rowOf(other.callUuid), rowOf(one.callUuid)]
  for (const row of kept) rows.keep(row)
  expect([rows.take(one), rows.take(one)]).toEqual([[kept[0], kept[2]] as TimelineRow[], []])
  expect(rows.take({ ...other, product: 'bank' })).toEqual([])
  expect(rows.take(other)).toEqual([kept[1] as TimelineRow])
})

test('[TRACE1] of calls whose end is never heard of nothing is kept for ever, nor of too many at once', () => {
  const rows = createMemberRows()
  const [old, young] = [some(), some()]
  rows.keep(rowOf(old.callUuid, 0))
  rows.keep(rowOf(young.callUuid, 1_000))
  rows.keep(rowOf(old.callUuid, 2_000))
  rows.sweep(659_999)
  rows.sweep(660_000)
  expect([rows.take(old), rows.take(young)].map(({ length }) => length)).toEqual([0, 1])
  const calls = Array.from({ length: 3 }, some)
  for (const { callUuid } of calls) for (let n = 0; n < 5_000; n++) rows.keep(rowOf(callUuid))
  expect(calls.map((call) => rows.take(call).length)).toEqual([0, 5_000, 5_000])
})
