import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { worldFor } from './world.ts'

const world = worldFor({ envOf: () => ({ RINGWIRE_NODE_ID: 'same' }) })

test('[PLACE4] two nodes under one id: the one that began earlier says so', async () => {
  const { one, two } = world()
  const complaint = 'another process runs under the id of this node'
  await until('one of the two says so', () => (one.log + two.log).includes(complaint))
  expect([one.log, two.log].filter((log) => log.includes(complaint))).toHaveLength(1)
}, 240_000)
