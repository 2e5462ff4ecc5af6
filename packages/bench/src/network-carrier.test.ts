import { expect, test } from 'bun:test'
import { carrier } from './network-carrier.ts'

test('packets arrive in order after the delay, and the unlucky ones never', async () => {
  const chances = [0.5, 0.009, 0.01, 0.99]
  const arrived: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const before = performance.now()
  const carry = carrier(
    { delayMs: 30, loss: 0.01 },
    ([packet]) => {
      arrived.push(packet!)
      if (packet === 4) resolve()
    },
    () => chances.shift()!,
  )
  for (const packet of [1, 2, 3, 4]) carry(Uint8Array.of(packet))
  await promise
  expect(arrived).toEqual([1, 3, 4])
  expect(performance.now() - before).toBeGreaterThanOrEqual(29)
})
