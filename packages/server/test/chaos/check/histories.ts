import type { CallRecord } from '@ringwire/protocol/rest'
import type { CallRow, History } from '../recording.ts'
import { type Facts, isRung, sideOf } from './facts.ts'
import type { Report } from './findings.ts'

/** Both people of every call read the same in their histories, and it is what PostgreSQL has [HIST1, HIST2]. */
export function checkHistories(histories: readonly History[], facts: Facts, report: Report): void {
  for (const { user, records } of histories) {
    const seen = new Set<string>()
    let previous: CallRecord | undefined
    for (const record of records) {
      const { call_uuid: call } = record
      const where = { user, call }
      const fact = facts.get(call)
      if (seen.has(call)) report('history', 'it is there twice', where)
      seen.add(call)
      const isOrdered = previous === undefined || orderOf(previous) > orderOf(record)
      if (!isOrdered) report('history', `it comes after ${previous?.call_uuid}, and is not older`, where)
      previous = record
      const side = fact === undefined ? undefined : sideOf(fact, user)
      // A call to a group that nobody answered may be listed for those at whom it rang [GROUP1].
      if (fact !== undefined && side === undefined && isRung(fact, user)) continue
      if (fact === undefined || side === undefined) report('history', `it is no call of ${user}`, where)
      else for (const text of differences(record, fact.row, side)) report('history', text, where)
    }
    for (const [call, fact] of facts) {
      if (sideOf(fact, user) !== undefined && !seen.has(call)) report('history', 'it is missing', { user, call })
    }
  }
}

function orderOf({ started_at, call_uuid }: CallRecord): string {
  return `${started_at} ${call_uuid}`
}

function differences(record: CallRecord, row: CallRow, side: 'caller' | 'callee'): string[] {
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['status', record.status, row.status],
    ['end_reason', record.end_reason, row.end_reason],
    ['started_at', record.started_at, iso(row.started_at)],
    ['accepted_at', record.accepted_at, iso(row.accepted_at)],
    ['connected_at', record.connected_at, iso(row.connected_at)],
    ['ended_at', record.ended_at, iso(row.ended_at)],
    ['direction', record.direction, side === 'caller' ? 'outgoing' : 'incoming'],
    // Nobody of the group has answered.
    ['peer', record.peer.user_id, side === 'caller' ? row.callee || null : row.caller],
  ]
  return pairs
    .filter(([, read, stored]) => read !== stored)
    .map(([name, read, stored]) => `${name} is ${read}, stored is ${stored}`)
}
