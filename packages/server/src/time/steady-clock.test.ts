import { describe, expect, test } from 'bun:test'
import { createOwnJumps, createSteadyClock } from './steady-clock.ts'

const start = Date.UTC(2026, 0, 1)

/** Two hands that are moved one by one. */
function createHands() {
  const hands = { wall: start, monotonic: 500.25 }
  const clock = createSteadyClock({ now: () => hands.wall, monotonic: () => hands.monotonic })
  return {
    hands,
    clock,
    pass(ms: number) {
      hands.wall += ms
      hands.monotonic += ms
    },
  }
}

/** Two processes that go by one wall clock, and agree on what it has jumped. */
function createShared() {
  const hands = { wall: start, monotonic: 500.25 }
  const wall = { now: () => hands.wall, monotonic: () => hands.monotonic }
  const jumps = createOwnJumps('shared')
  const open = () => createSteadyClock(wall, jumps)
  return { hands, jumps, open }
}

describe('[END3] steady clocks of several processes', () => {
  for (const ms of [3_600_000, -3_600_000]) {
    test(`one finds a jump of ${ms} ms, and all have the new time and what it jumped at once`, async () => {
      const { hands, jumps, open } = createShared()
      const [one, two] = [open(), open()]
      hands.wall += ms
      hands.monotonic += 700
      expect([one.now(), two.now()]).toEqual([start + 700, start + 700])
      await one.follow()
      for (const clock of [one, two]) {
        expect(clock.now()).toBe(start + ms)
        expect(clock.written()).toEqual({ of: 'shared', jumpedMs: ms - 700 })
        expect(clock.unjumped()).toBe(start + 700)
        expect(clock.jumped()).toBe(0)
      }
      await two.follow()
      expect(jumps.sum()).toBe(ms - 700)
    })

    test(`one that begins after a jump of ${ms} ms that nobody has found yet keeps the right time`, async () => {
      const { hands, open } = createShared()
      const one = open()
      hands.wall += ms
      const newcomer = open()
      expect(newcomer.now()).toBe(start + ms)
      await one.follow()
      expect([one.now(), newcomer.now()]).toEqual([start + ms, start + ms])
      expect([newcomer.written(), newcomer.jumped()]).toEqual([{ of: 'shared', jumpedMs: ms }, 0])
    })
  }

  test('of two jumps of which one is known the other one is still to be found', async () => {
    const { hands, jumps, open } = createShared()
    const clock = open()
    hands.wall += 60_000
    await jumps.add(20_000, 0)
    expect(clock.now()).toBe(start + 20_000)
    expect(clock.jumped()).toBe(40_000)
    await clock.follow()
    expect([clock.now(), jumps.sum()]).toEqual([start + 60_000, 60_000])
  })
})

describe('steady clock', () => {
  test('shows the wall clock at the start, and goes on with it', () => {
    const { clock, pass } = createHands()
    expect(clock.now()).toBe(start)
    pass(1_234)
    expect(clock.now()).toBe(start + 1_234)
    expect(clock.jumped()).toBe(0)
    expect(clock.monotonic()).toBe(500.25 + 1_234)
  })

  test('shows whole milliseconds, whatever the monotonic clock shows', () => {
    const { clock, hands } = createHands()
    for (const ms of [0.4, 0.7, 12.49, 99.999]) {
      hands.monotonic = 500.25 + ms
      expect(Number.isInteger(clock.now())).toBe(true)
      expect(Math.abs(clock.now() - (start + ms))).toBeLessThanOrEqual(0.5)
    }
  })

  for (const ms of [3_600_000, -3_600_000, 1_001, -1_001]) {
    test(`a jump of ${ms} ms shows only when it is followed`, () => {
      const { clock, hands, pass } = createHands()
      pass(10_000)
      hands.wall += ms
      expect(clock.now()).toBe(start + 10_000)
      expect(clock.jumped()).toBe(ms)
      pass(500)
      expect(clock.now()).toBe(start + 10_500)
      expect(clock.jumped()).toBe(ms)
      clock.follow()
      expect(clock.now()).toBe(start + 10_500 + ms)
      expect(clock.jumped()).toBe(0)
      pass(500)
      expect(clock.now()).toBe(start + 11_000 + ms)
    })
  }

  test('a second or less is no jump: the clock keeps its own pace', () => {
    for (const ms of [1_000, -1_000, 1, -1]) {
      const { clock, hands } = createHands()
      hands.wall += ms
      expect(clock.jumped()).toBe(0)
      expect(clock.now()).toBe(start)
    }
  })

  test('a wall clock that runs a little fast has jumped once it is more than a second ahead', () => {
    const { clock, hands } = createHands()
    let jumps = 0
    for (let n = 0; n < 10_000; n++) {
      hands.monotonic += 100
      hands.wall += 101
      if (clock.jumped() === 0) continue
      expect(clock.jumped()).toBe(1_001)
      clock.follow()
      jumps++
    }
    expect(jumps).toBe(9)
    expect(Math.abs(hands.wall - clock.now())).toBeLessThanOrEqual(1_000)
  })

  test('jumps there and back before anybody looks are none', () => {
    const { clock, hands, pass } = createHands()
    hands.wall += 3_600_000
    pass(200)
    hands.wall -= 3_600_000
    expect(clock.jumped()).toBe(0)
    expect(clock.now()).toBe(start + 200)
  })

  test('two clocks share nothing', () => {
    const one = createHands()
    const two = createHands()
    one.hands.wall += 5_000
    one.clock.follow()
    expect([one.clock.now(), two.clock.now()]).toEqual([start + 5_000, start])
  })
})
