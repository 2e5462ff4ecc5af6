import { expect, test } from 'bun:test'
import { headerOf } from '../chaos/check/header-of.ts'
import type { Recording } from '../chaos/recording.ts'
import { onOneClock } from './clocks.ts'
import { type Span, startedAt } from './cluster.ts'
import { times } from './node.ts'

const call_uuid = 'c'
const minuteMs = 60_000

/**
 * For how long the checker expects a call to ring that was committed at 20 s and missed at 20.2 s, in ms. The clock has been a minute
 * ahead since 19 s. `waitedMs`: how long the commit waited for the database.
 */
function ringOf({ starts = [], waitedMs = 0 }: { starts?: readonly Span[]; waitedMs?: number }): number {
  const commits = [20_000, 20_200].map((ms) => startedAt + ms)
  const shown = commits.map((at) => at + minuteMs)
  const rows = {
    calls: [
      {
        ...{ call_uuid, caller: 'ann', callee: 'bob', version: 2, status: 'missed', end_reason: 'no_answer' },
        ...{
          started_at: shown[0]! - waitedMs,
          ring_expires_at: 0,
          accepted_at: null,
          connected_at: null,
          ended_at: shown[1]!,
        },
      },
    ],
    events: [
      { call_uuid, version: 1, type: 'invited', at: shown[0]! - waitedMs, by_user: 'ann' },
      { call_uuid, version: 2, type: 'missed', at: shown[1]!, by_user: null },
    ],
  }
  const jump = { kind: 'clock of PostgreSQL jumped', target: 'PostgreSQL', from: 19_000, until: 22_000 }
  const recording: Recording = { header: headerOf(jump), traces: [], histories: [], hooks: [], ...rows }
  const committedAt = (_: string, version: number) => ({ at: commits[version - 1]!, shown: shown[version - 1]! })
  const { started_at, ring_expires_at } = onOneClock(recording, { database: { committedAt }, starts: [...starts] })
    .calls[0]!
  return ring_expires_at - started_at
}

test('[END3] a ring is judged, unless a node started after the jump that nobody had told it of', () => {
  const whole = ringOf({})
  expect(whole).toBeGreaterThan(times.ringTimeoutMs / 3)
  expect(ringOf({ starts: [{ from: 19_500, until: 19_900 }] })).toBe(0)
  expect(ringOf({ starts: [{ from: 22_100, until: 22_500 }] })).toBe(whole)
  expect(ringOf({ starts: [{ from: 18_000, until: 18_500 }] })).toBe(whole)
})

test('[RING1] a call rings since its decision, however long its commit waited', () => {
  expect(ringOf({ waitedMs: 700 })).toBe(ringOf({}) - 700)
})
