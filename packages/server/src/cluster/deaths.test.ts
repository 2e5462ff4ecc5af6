import { expect, test } from 'bun:test'
import { createDeaths } from './deaths.ts'

test('[PLACE4] a node that was found dead lives again once it says so later, not by what it said before', () => {
  let now = 1_000
  const deaths = createDeaths({ monotonic: () => now })
  deaths.found('one')
  now = 2_000
  deaths.said('one', 999)
  deaths.said('one', 1_000)
  deaths.said('two', 1_500)
  expect([deaths.has('one'), deaths.has('two')]).toEqual([true, false])
  deaths.said('one', 1_001)
  expect(deaths.has('one')).toBe(false)
})

test('[PLACE4] a node that is found dead twice has to say it after the second time', () => {
  let now = 1_000
  const deaths = createDeaths({ monotonic: () => now })
  deaths.found('one')
  now = 2_000
  deaths.found('one')
  deaths.said('one', 1_500)
  expect(deaths.has('one')).toBe(true)
})
