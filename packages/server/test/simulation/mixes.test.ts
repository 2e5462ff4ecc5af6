import { expect, test } from 'bun:test'
import { Random } from '../fuzz/random.ts'
import { drawFamily, type Family, families, mixOf, usualMix } from './mixes.ts'

const seeds = Array.from({ length: 2_000 }, (_, seed) => seed)

/** Counts the faults of each family among this number of faults. */
function shares(weights: Readonly<Record<Family, number>>, faults: number): number[] {
  const random = new Random(1)
  const drawn = Array.from({ length: faults }, () => drawFamily(weights, random))
  return families.map((family) => drawn.filter((each) => each === family).length / faults)
}

test('a seed always has the same mix of faults, and seeds have different ones', () => {
  const mixes = seeds.map(mixOf)
  expect(seeds.map(mixOf)).toEqual(mixes)
  expect(mixes.filter((mix) => mix === usualMix).length / seeds.length).toBeWithin(0.2, 0.3)
  for (const family of families) {
    const isFavourite = family !== 'all nodes stopped'
    expect([family, mixes.some(({ name }) => name.includes(`mostly ${family},`))]).toEqual([family, isFavourite])
  }
})

test('three of four faults are of the family that a seed has most, and none is left out', () => {
  const weights = seeds.map(mixOf).find(({ name }) => name.startsWith('mostly node cut from Redis'))?.weights
  if (weights === undefined) throw new Error('no seed has that mix')
  const all = shares(weights, 20_000)
  expect(all[families.indexOf('node cut from Redis')]).toBeWithin(0.73, 0.77)
  expect(Math.min(...all)).toBeGreaterThan(0)
})
