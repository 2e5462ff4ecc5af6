import { expect, test } from 'bun:test'
import { isLong } from '@ringwire/testkit/long'
import fc from 'fast-check'
import { source } from './machine.ts'
import { trio } from './setups.ts'
import { moves, walk } from './walks.ts'

const walks = isLong ? 200 : 60
const longest = 5_000

test('[PLACE1] [PLACE2] [PLACE3] [END1] [END2] [END3] [INV3] [INV5] [INV6] [INV7] [INV8] [RING1] long random walks of three people', () => {
  const total = { events: 0, changes: 0, longest: 0 }
  const property = fc.property(fc.array(moves, { maxLength: longest, size: 'max' }), (path) => {
    const { events, changes } = walk(source, trio, path)
    total.events += events
    total.changes += changes
    total.longest = Math.max(total.longest, events)
  })
  // Another seed every time; a failure names its own, and this takes it up again.
  const given = process.env.RINGWIRE_TEST_SEED
  const result = fc.check(property, { numRuns: walks, ...(given === undefined ? {} : { seed: Number(given) }) })
  console.log(
    `${result.numRuns} walks: ${total.events} events, ${total.changes} of them changed something, ` +
      `the longest walk ${total.longest} events, seed ${result.seed}`,
  )
  if (result.failed) {
    const fault = result.errorInstance instanceof Error ? result.errorInstance.message : result.errorInstance
    throw new Error(`RINGWIRE_TEST_SEED=${result.seed}, shrunk ${result.numShrinks} times: ${fault}`)
  }
  expect(total.longest).toBeGreaterThan(longest / 2)
}, 240_000)
