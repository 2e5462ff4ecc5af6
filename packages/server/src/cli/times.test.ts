import { expect, test } from 'bun:test'
import { relativeTime, shownTime } from './times.ts'

const now = Date.UTC(2026, 2, 1, 12)
const [s, min, h, d] = [1_000, 60_000, 3_600_000, 86_400_000] as const

test('how long ago, in the largest unit that fits; a date after a month', () => {
  for (const [ago, text] of [
    [0, 'just now'],
    [999, 'just now'],
    [s, '1 s ago'],
    [min - 1, '59 s ago'],
    [3 * min, '3 min ago'],
    [h - 1, '59 min ago'],
    [h, '1 h ago'],
    [23 * h, '23 h ago'],
    [d, '1 d ago'],
    [30 * d - 1, '29 d ago'],
    [30 * d, '2026-01-30'],
    [-90 * s, 'in 1 min'],
    [-2 * d, 'in 2 d'],
  ] as const) {
    expect([ago, relativeTime(now - ago, now)]).toEqual([ago, text])
  }
})

test('only a person gets it, and only if it was not asked for exactly', () => {
  const at = new Date(now - 3 * min).toISOString()
  const terminal = { paint: (_: string, text: string) => text }
  expect(shownTime({ terminal, now: () => now }, at)).toBe('3 min ago')
  expect(shownTime({ terminal, now: () => now }, at, true)).toBe(at)
  expect(shownTime({ terminal: undefined, now: () => now }, at)).toBe(at)
  expect(shownTime({ terminal, now: () => now }, '')).toBe('')
})
