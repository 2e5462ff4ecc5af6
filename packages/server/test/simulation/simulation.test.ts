import { expect, test } from 'bun:test'
import { defaultWorld } from './options.ts'
import { live } from './world.ts'

/** A short look at what a world of three nodes comes to; every seed is lived twice. */
for (const seed of [1, 2, 3]) {
  test(`three nodes and their people while things break, seed ${seed}: nothing is lost, and the same seed is the same world`, async () => {
    const options = { ...defaultWorld, seed, seconds: 20 }
    const { recording, verdict, steps } = await live(options)
    expect(verdict.violations).toEqual([])
    // It was a world that shows something.
    expect(verdict.counts.calls.ended ?? 0).toBeGreaterThan(5)
    expect(verdict.counts.relays.arrived).toBeGreaterThan(50)
    expect(recording.header.faults.length).toBeGreaterThan(2)
    const again = await live(options)
    expect(again.steps).toBe(steps)
    expect(JSON.stringify(again.recording)).toBe(JSON.stringify(recording))
  }, 120_000)
}
