import { expect, test } from 'bun:test'
import { whileItFalls } from './patience.ts'

test('what gets less is awaited, however long that takes', async () => {
  let left = 40
  const timer = setInterval(() => left--, 10)
  try {
    expect(await whileItFalls(() => left, 200)).toBe(0)
  } finally {
    clearInterval(timer)
  }
})

test('what does not get less for the given time is left', async () => {
  let left = 3
  setTimeout(() => left--, 20)
  expect(await whileItFalls(() => left, 100)).toBe(2)
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
