import { describe, expect, test } from 'bun:test'
import { portsOf } from './clients.ts'
import type { Spread, Target } from './job.ts'

const nodes: Target = { system: 'ringwire', port: 1, pid: 0, core: null, morePorts: [2, 3] }
const seats = (spread: Spread, pairs: number) =>
  Array.from({ length: pairs }, (_, pair) => portsOf(nodes, spread, pair))

describe('where the two of a pair are', () => {
  test('together: on one node, each in its turn', () => {
    expect(seats('together', 4)).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
      [1, 1],
    ])
  })

  test('apart: never on one node', () => {
    for (const [caller, callee] of seats('apart', 30)) expect(caller).not.toBe(callee)
  })

  test('mixed: every node with every node as often, also in a multiple of 36', () => {
    const times = new Map<string, number>()
    for (const ports of seats('mixed', 36)) times.set(ports.join(), (times.get(ports.join()) ?? 0) + 1)
    expect([...times.values()]).toEqual(Array.from({ length: 9 }, () => 4))
  })

  test('on a service of one process all are there', () => {
    const one: Target = { system: 'ringwire', port: 7, pid: 0, core: null }
    for (const spread of ['together', 'apart', 'mixed'] as const) expect(portsOf(one, spread, 5)).toEqual([7, 7])
  })
})
