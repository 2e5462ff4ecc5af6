import { expect, test } from 'bun:test'
import { every } from './alarms.ts'

/** Periods that nothing else in this process has. */
const [periodMs, otherMs] = [31, 37]

/** Runs work again and again until the test has seen enough of it. */
function repeated(ms: number, times: number, work: () => void = () => {}) {
  const { promise, resolve } = Promise.withResolvers<void>()
  let count = 0
  const cancel = every(ms, () => {
    work()
    if (++count === times) resolve()
  })
  return { done: promise, cancel }
}

test('work of one period goes off in the same turn, whenever it began', async () => {
  const turns: number[][] = [[], []]
  let turn = 0
  // The end of a turn.
  const note = (which: number) => () => {
    turns[which]?.push(turn)
    setImmediate(() => turn++)
  }
  const first = repeated(periodMs, 4, note(0))
  await Bun.sleep(periodMs / 2)
  const second = repeated(periodMs, 3, note(1))
  await Promise.all([first.done, second.done])
  for (const { cancel } of [first, second]) cancel()
  expect(turns[1]?.length).toBeGreaterThanOrEqual(3)
  expect(turns[0]).toEqual(expect.arrayContaining(turns[1] ?? []))
})

test('it goes off as often as its period says', async () => {
  const began = performance.now()
  const { done, cancel } = repeated(otherMs, 4)
  await done
  cancel()
  expect(performance.now() - began).toBeGreaterThan(3 * otherMs - 5)
})

test('what is cancelled goes off no more, also in the turn that is under way', async () => {
  let count = 0
  const stop = repeated(periodMs, 2, () => cancelled.cancel())
  const cancelled = repeated(periodMs, 1, () => count++)
  await stop.done
  stop.cancel()
  expect(count).toBe(0)
})
