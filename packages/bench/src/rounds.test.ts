import { expect, test } from 'bun:test'
import type { CoreDistance } from './core-distance.ts'
import { alternate, disturbance, isNoisy, roundNotes, series } from './rounds.ts'

function distances(...values: number[]): Pick<CoreDistance, 'measure'> {
  return { measure: async () => values.shift()! }
}

test('systems take turns', async () => {
  const order: string[] = []
  const rounds = await alternate({ distance: null }, 2, ['a', 'b', 'c'], async (key, round) => {
    order.push(key)
    return round
  })
  expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'c'])
  expect(series(rounds, 'b', (value) => value)).toEqual([0, 1])
})

test('a round in which the cores moved is measured again', async () => {
  const distance = distances(100, 400, 400, 390, 100, 110) as CoreDistance
  const rounds = await alternate({ distance }, 2, ['a'], async (_key, round) => round)
  expect(rounds.repeated).toBe(1)
  expect(series(rounds, 'a', (value) => value)).toEqual([1, 2])
  expect(roundNotes(rounds)[0]).toContain('100 to 400 ns')
})

test('on cores that never stay the rounds are taken as they are', async () => {
  const distance = distances(100, 400, 100, 400, 100, 400, 100, 400, 100, 400) as CoreDistance
  const rounds = await alternate({ distance }, 3, ['a'], async () => 1)
  expect(rounds.repeated).toBe(1)
  expect(rounds.rounds.length).toBe(3)
})

test('a round in which others used the server core is measured again', async () => {
  const shares = [0.01, 0.3, 0.02]
  const rounds = await alternate(
    { distance: null },
    2,
    ['a'],
    async (_key, round) => shares[round]!,
    (share) => [share],
  )
  expect(rounds.repeated).toBe(1)
  expect(series(rounds, 'a', (value) => value)).toEqual([0.01, 0.02])
  expect(disturbance(rounds, (share) => [share])).toBe("Others used 2 % of the server's core, at most 2 %.")
})

test('a disturbed core is named as such', async () => {
  const rounds = await alternate({ distance: null }, 1, ['a', 'b'], async (key) => (key === 'a' ? 0.2 : 0))
  expect(disturbance(rounds, (share) => [share])).toContain('disturbed')
  expect(disturbance(rounds, () => [Number.NaN])).toContain('not known')
})

test('one disturbed round of four is no noise, two are', async () => {
  const noisy = async (...shares: number[]) => {
    const measured = await alternate({ distance: null }, shares.length, ['a'], async (_key, round) => shares[round]!)
    return isNoisy(measured, (share) => [share])
  }
  expect(await noisy(0.02, 0.5, 0.01, 0)).toBe(false)
  expect(await noisy(0.02, 0.5, 0.3, 0)).toBe(true)
  expect(await noisy(Number.NaN, Number.NaN)).toBe(false)
})
