import { describe, expect, test } from 'bun:test'
import { nodesFor, returnSeconds, type UnitCosts, type Work, workOf } from './capacity.ts'

const work = (nodes: number, redis: number, postgres: number, scripts = 0, transactions = 0): Work => ({
  cpu: { nodes, redis, postgres },
  scripts,
  transactions,
})
const costs: UnitCosts = {
  node: work(0.01, 0.002, 0.001, 1, 2),
  connected: work(1e-5, 2e-6, 0, 0.02),
  connect: work(1e-3, 2e-4, 1e-4, 3, 1),
  call: work(2e-3, 1e-3, 1e-3, 30, 8),
  memory: { node: 1e8, nodeEach: 1e4, redisEach: 700 },
  stored: { rowsPerCall: 6, bytesPerCall: 2000 },
}
const load = { connected: 100_000, connectsPerSecond: 50, callsPerSecond: 100 }

describe('what a load needs', () => {
  test('is what each thing costs, as often as there is one', () => {
    const { cpu, scripts, transactions } = workOf(costs, { ...load, nodes: 5 })
    expect(cpu.nodes).toBeCloseTo(0.05 + 1 + 0.05 + 0.2)
    expect(cpu.redis).toBeCloseTo(0.01 + 0.2 + 0.01 + 0.1)
    expect(cpu.postgres).toBeCloseTo(0.005 + 0 + 0.005 + 0.1)
    expect(scripts).toBeCloseTo(5 + 2000 + 150 + 3000)
    expect(transactions).toBeCloseTo(10 + 50 + 800)
  })

  test('nodes: by their core, and by their memory', () => {
    // 1.25 cores at 0.5 less 0.01 each; 1 GB at 0.5 GB less 0.1 each.
    expect(nodesFor(costs, load, { memory: 1e9, share: 0.5 })).toEqual({
      byCpu: 3,
      byMemory: 3,
    })
    expect(nodesFor(costs, load, { memory: 5e8, share: 0.5 })).toEqual({
      byCpu: 3,
      byMemory: 7,
    })
  })

  test('the clients of a node that is gone are back when the cores that are free have had their work', () => {
    const { nodes, redis } = returnSeconds(costs, { ...load, nodes: 5 }, 1)
    expect(nodes).toBeCloseTo((20_000 * 1e-3) / (4 - 1.29))
    expect(redis).toBeCloseTo((20_000 * 2e-4) / (1 - 0.318))
  })
})
