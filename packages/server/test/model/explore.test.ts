import { expect, test } from 'bun:test'
import { isLong } from '@ringwire/testkit/long'
import { explore } from './explore.ts'
import { source } from './machine.ts'
import { pair } from './setups.ts'

/**
 * Every order of invite, accept, loss, return and takeover; the long one has a hang-up, too. RINGWIRE_TEST_DEPTH goes deeper: each
 * event more takes four times as long.
 */
const depth = Number(process.env.RINGWIRE_TEST_DEPTH ?? (isLong ? 6 : 5))
const maxCalls = 3

test('[PLACE1] [PLACE2] [PLACE3] [END1] [END2] [END3] [INV3] [INV6] [INV7] [RING1] every order of events between two people', () => {
  const { states, transitions, byDepth, settled } = explore(source, pair, depth, maxCalls)
  console.log(
    `depth ${depth}: ${states} states, ${transitions} transitions, ${settled} driven to the end of all timers`,
  )
  expect(byDepth).toHaveLength(depth + 1)
  expect(states).toBeGreaterThan(isLong ? 50_000 : 10_000)
}, 1_200_000)
