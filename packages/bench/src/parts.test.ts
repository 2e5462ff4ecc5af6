import { describe, expect, test } from 'bun:test'
import { type Part, type PartsReading, partsBetween, processesOf, readParts } from './parts.ts'

const part = (cores: number[] = []): Part => ({ name: 'postgres', pid: 1, cores })

function reading(at: number, used: Record<number, number>, reapedSeconds: number, busy = 0): PartsReading {
  const cpu = new Map(Object.entries(used).map(([pid, s]) => [Number(pid), { statSeconds: s, preciseSeconds: s }]))
  return { at, parts: [{ part: part([3]), cpu, reapedSeconds }], busy: new Map([[3, busy]]) }
}

describe('CPU time of a part', () => {
  test('is that of all its processes, with those that began meanwhile', () => {
    const load = partsBetween(reading(0, { 1: 1, 2: 5 }, 0), reading(2, { 1: 1.5, 2: 5.25, 3: 0.25 }, 0))
    expect(load.cpuSeconds).toEqual({ nodes: 0, redis: 0, postgres: 1 })
    expect(load.seconds).toBe(2)
  })

  test('and of those that ended: what they had used before is not counted twice', () => {
    const load = partsBetween(reading(0, { 1: 1, 2: 5 }, 0), reading(2, { 1: 1 }, 5.5))
    expect(load.cpuSeconds.postgres).toBe(0.5)
  })

  test('leaves the rest of its core to others', () => {
    const load = partsBetween(reading(0, { 1: 0 }, 0, 0), reading(2, { 1: 1 }, 0, 1.52))
    expect(load.othersShare).toBeCloseTo(0.25)
  })

  test('is read of processes that are there', async () => {
    const child = Bun.spawn([process.execPath, '-e', 'for (;;);'])
    try {
      expect(processesOf(process.pid)).toContain(child.pid)
      const busy: Part = { name: 'nodes', pid: child.pid, cores: [] }
      const began = performance.now()
      const before = readParts([busy])
      let load = partsBetween(before, readParts([busy]))
      while (load.cpuSeconds.nodes < 0.05) load = partsBetween(before, readParts([busy]))
      // A reading may be held up before it looks at the process, which goes on meanwhile.
      const seconds = (performance.now() - began) / 1000
      expect(load.cpuSeconds.nodes).toBeLessThanOrEqual(4 * seconds)
      expect(load.seconds).toBeWithin(0, seconds)
      expect(load.othersShare).toBeNaN()
    } finally {
      child.kill()
      await child.exited
    }
  })
})
