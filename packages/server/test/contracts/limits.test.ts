import { afterAll, beforeAll } from 'bun:test'
import type { Counters } from '../../src/limits/counters.port.ts'
import { createMemoryCounters } from '../../src/stores/memory/limits.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisCounters } from '../../src/stores/redis/limits.ts'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'
import { type CountersHarness, registerLimitsContract } from './limits.ts'

/** One server for all; each test has a database of its own. */
let server: RedisDatabases
beforeAll(async () => {
  server = await openRedisDatabases()
})
afterAll(() => server.stop())

registerLimitsContract('memory', async () => ({ counters: createMemoryCounters(), close: async () => {} }))
registerLimitsContract('redis', () => openNodes(1))
registerLimitsContract('redis, two nodes', () => openNodes(2))

async function openNodes(count: number): Promise<CountersHarness> {
  const url = await server.database()
  const failures: unknown[] = []
  const nodes = Array.from({ length: count }, () => {
    const store = createStore(url, (error) => void failures.push(error))
    const counters = createRedisCounters({
      store,
      fallback: createMemoryCounters(),
      onAway: (error) => void failures.push(error),
      onBack: () => void failures.push('back'),
      // A Redis that waits for a core is not away.
      answerMs: 4_000,
    })
    return { store, counters }
  })
  await Promise.all(nodes.map(({ store }) => store.ready()))
  return {
    counters: inTurn(nodes.map(({ counters }) => counters)),
    async close() {
      for (const { store, counters } of nodes) {
        counters.close()
        store.close()
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}

/** Each request is for another node than the previous one. */
function inTurn(nodes: readonly Counters[]): Counters {
  let turn = 0
  return {
    counter(name, budget) {
      const all = nodes.map((node) => node.counter(name, budget))
      const next = () => all[turn++ % all.length]!
      return { consume: (subject) => next().consume(subject), refund: (subject) => next().refund(subject) }
    },
  }
}
