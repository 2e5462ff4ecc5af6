import { afterEach, beforeEach, expect, type Mock, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { lostAt, type Outage } from '../../call/call.ts'
import { StoreError } from '../../ports/store-error.ts'
import { createLocalUptime } from './uptime.ts'

const start = Date.UTC(2026, 0, 1)
const lookMs = 500
const keptMs = 86_400_000

let intervals: Mock<typeof setInterval>
beforeEach(() => {
  intervals = spyOn(globalThis, 'setInterval').mockImplementation((() => 0) as unknown as typeof setInterval)
})
afterEach(() => void intervals.mockRestore())

/** A single service, its store, and a clock that is moved by hand; its start takes `startMs`. */
function open(startMs = 0) {
  const world = { now: start, isAway: false, looks: 0 }
  const clock = { now: () => world.now, monotonic: () => world.now - start + 77.5 }
  const uptime = createLocalUptime(
    async () => {
      world.looks++
      if (world.isAway) throw new StoreError('unavailable', 'away')
    },
    keptMs,
    clock,
  )
  world.now += startMs
  const before = uptime.outages()
  uptime.serve()
  const [look] = intervals.mock.calls.at(-1) as unknown as [() => void]
  /** For this time nothing of it runs; then its timer fires once, however many turns it missed. */
  async function stand(ms: number) {
    world.now += ms
    look()
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  }
  async function pass(ms: number) {
    for (let left = ms; left > 0; left -= lookMs) await stand(Math.min(left, lookMs))
  }
  /** The store is away for so long, and somebody meets that. */
  async function away(ms: number) {
    world.isAway = true
    uptime.doubt()
    await pass(ms)
    world.isAway = false
  }
  return { world, clock, uptime, before, stand, pass, away }
}

const goesOn = Number.POSITIVE_INFINITY

test('[END3] a service alone that stood still for more than 3 s: that was an outage, for as long as it stood', async () => {
  const { uptime, stand, pass, world } = open()
  await pass(10_000)
  await stand(3_000)
  expect(uptime.outages()).toEqual([])
  await pass(1_000)
  const from = world.now
  // Before its own timer has its turn, its callers see that it goes on.
  world.now += 3_001
  expect(uptime.outages()).toEqual([{ from, to: goesOn }])
  await stand(4_000)
  expect(uptime.outages()).toEqual([{ from, to: from + 7_001 }])
  await pass(60_000)
  expect(uptime.outages()).toEqual([{ from, to: from + 7_001 }])
  expect(world.looks).toBe(0)
})

test('[END3] a service alone whose store is away: an outage from when it was seen whole last until it can be used', async () => {
  const { uptime, pass, away, world } = open()
  await pass(5_000)
  const from = world.now
  // One statement that fails, and a store that is back within 3 s.
  uptime.doubt()
  await pass(lookMs)
  await away(2_000)
  await pass(lookMs)
  expect(uptime.outages()).toEqual([])
  expect(world.looks).toBe(1 + 4 + 1)
  const seen = world.now
  await away(8_000)
  expect(uptime.outages()).toEqual([{ from: seen, to: goesOn }])
  await pass(lookMs)
  expect(uptime.outages()).toEqual([{ from: seen, to: seen + 8_500 }])
  expect(seen).toBe(from + 3_000)
  // It is whole: nobody asks the store any more.
  const { looks } = world
  await pass(20_000)
  expect(world.looks).toBe(looks)
})

test('[END3] a lost clock of a service alone runs out in its whole time of service at the least, and in twice that at the most, however often its store goes', async () => {
  const spans = fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 7, max: 14 })), {
    minLength: 130,
    maxLength: 260,
  })
  await fc.assert(
    fc.asyncProperty(spans, fc.nat(1_000), fc.integer({ min: 1_000, max: 400_000 }), async (turns, at, lostMs) => {
      const { uptime, pass, away, world } = open()
      const whole: Outage[] = []
      for (const [up, gone] of turns) {
        await pass(up * lookMs)
        const from = world.now
        await away(gone * lookMs)
        await pass(lookMs)
        whole.push({ from, to: world.now })
      }
      const since = start + Math.floor((at / 1_000) * (world.now - start))
      const due = lostAt(since, lostMs, uptime.outages())
      const stood = whole.reduce((ms, { from, to }) => ms + Math.max(0, Math.min(to, due) - Math.max(from, since)), 0)
      expect(due - since - stood).toBeWithin(lostMs, 2 * lostMs + 1)
    }),
    { numRuns: 50 },
  )
})

test('[END3] what was over before any call began stops no lost clock any more, and is forgotten', async () => {
  const { uptime, stand, pass, world } = open()
  await stand(10_000)
  await pass(lookMs)
  await stand(keptMs)
  expect(uptime.outages()).toHaveLength(1)
  expect(uptime.outages()).toEqual([{ from: start + 10_500, to: world.now }])
})

test('[END3] until the service listens nobody can come back: that is an outage, known when it is over', async () => {
  const { uptime, before, pass } = open(40_000)
  expect(before).toEqual([])
  const outages = [{ from: start, to: start + 40_000 }]
  expect(uptime.outages()).toEqual(outages)
  await pass(10_000)
  expect(uptime.outages()).toEqual(outages)
  expect(open(3_000).uptime.outages()).toEqual([])
})
