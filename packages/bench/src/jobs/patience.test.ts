import { afterEach, beforeEach, expect, type Mock, spyOn, test } from 'bun:test'
import { whileItFalls } from './patience.ts'

/** Time passes with each look. */
let now: number
let clock: Mock<typeof performance.now>
beforeEach(() => {
  now = 0
  clock = spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => void clock.mockRestore())

/** What is left at each look, the last of it from then on; `ms` pass with each. */
function leaving(ms: number, ...counts: readonly number[]) {
  let looks = 0
  return () => {
    now += ms
    return counts[Math.min(looks++, counts.length - 1)] as number
  }
}

test('what gets less is awaited, however long that takes', async () => {
  expect(await whileItFalls(leaving(150, 5, 4, 4, 3, 2, 2, 1, 0), 200)).toBe(0)
  expect(now).toBeGreaterThan(1_000)
})

test('what does not get less for the given time is left', async () => {
  expect(await whileItFalls(leaving(30, 3, 3, 2), 100)).toBe(2)
  // The time begins anew when it gets less.
  expect(now).toBeGreaterThan(3 * 30 + 100)
})

test('it ends where a failure makes waiting useless', async () => {
  expect(
    await whileItFalls(
      () => 5,
      60_000,
      () => true,
    ),
  ).toBe(5)
})
