import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { pauseBefore, readJitterHint } from './reconnect.ts'

const bounds = { baseMs: 500, maxMs: 15_000 }
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('the pause before the next attempt', () => {
  test('full jitter: it begins at nothing, and its bound doubles up to the maximum', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 100, 5_000].map((failures) => pauseBefore(failures, {}, bounds, 1).ms)
    expect(longest).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000])
    expect(pauseBefore(7, {}, bounds, 0)).toEqual({ ms: 0, isAsked: false })
    expect(pauseBefore(3, {}, bounds, 0.25).ms).toBe(500)
  })

  test('a restart spreads everybody over its jitter; growing pauses still hold', () => {
    expect(pauseBefore(1, { jitterMs: 10_000 }, bounds, 0.5)).toEqual({ ms: 5_000, isAsked: true })
    expect(pauseBefore(7, { jitterMs: 10_000 }, bounds, 0.5)).toEqual({ ms: 7_500, isAsked: false })
  })

  test('retry_after_ms is a floor, with the jitter above it', () => {
    expect(pauseBefore(1, { retryAfterMs: 3_000 }, bounds, 0)).toEqual({ ms: 3_000, isAsked: true })
    expect(pauseBefore(1, { retryAfterMs: 3_000 }, bounds, 0.5).ms).toBe(3_250)
  })

  test('no hint keeps a client away for longer than five minutes and the pause', () => {
    const hint = fc.option(fc.nat(), { nil: undefined })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), hint, hint, random, (failures, jitterMs, retryAfterMs, r) => {
        const { ms } = pauseBefore(failures, { jitterMs, retryAfterMs }, bounds, r)
        return ms >= Math.min(retryAfterMs ?? 0, 300_000) && ms <= 600_000
      }),
    )
  })
})

test('[CLOSE] the jitter hint of 1012', () => {
  expect(readJitterHint('restart, jitter_ms=300')).toBe(300)
  for (const reason of ['', 'restart', 'jitter_ms=', 'jitter_ms=-5', 'jitter_ms=9999999999']) {
    expect(readJitterHint(reason)).toBe(0)
  }
})
