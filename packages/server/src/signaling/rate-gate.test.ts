import { expect, test } from 'bun:test'
import { type Clearance, RateGate } from './rate-gate.ts'

const rate = { perSecond: 20, burst: 200 }

function passMany(gate: RateGate, now: number, count: number): Clearance[] {
  return Array.from({ length: count }, () => gate.pass(now))
}
const passed = (clearances: readonly Clearance[]) => clearances.filter(({ ok }) => ok).length

test('[WS7] a burst passes whole, the next message does not', () => {
  const gate = new RateGate(rate, 0)
  expect(passed(passMany(gate, 0, 200))).toBe(200)
  expect(gate.pass(0)).toEqual({ ok: false, retryAfterMs: 50, tooLong: false })
})

test('[WS7] after retryAfterMs one more message passes, and it is no more than a millisecond too long', () => {
  for (const waited of [0, 1, 10, 25, 49]) {
    const gate = new RateGate(rate, 0)
    passMany(gate, 0, 200)
    const refused = gate.pass(waited)
    if (refused.ok) throw new Error('passed')
    expect(refused.retryAfterMs).toBeWithin(50 - waited, 52 - waited)
    expect(gate.pass(waited + refused.retryAfterMs).ok).toBe(true)
  }
})

test('[WS7] what was not used comes back at the rate, up to a burst and no further', () => {
  const gate = new RateGate(rate, 0)
  passMany(gate, 0, 200)
  expect(passed(passMany(gate, 1_000, 40))).toBe(20)
  expect(passed(passMany(gate, 3_000, 100))).toBe(40)
  expect(passed(passMany(gate, 3_600_000, 400))).toBe(200)
})

test('[WS7] exactly the rate, for an hour, is never refused', () => {
  const gate = new RateGate(rate, 0)
  passMany(gate, 0, 199)
  for (let now = 50; now < 3_600_000; now += 50) expect(gate.pass(now).ok).toBe(true)
})

test('[WS7] over the rate for ten seconds is too long; a message that passes now and then does not end it', () => {
  const gate = new RateGate(rate, 0)
  let tooLongAt: number | undefined
  for (let now = 0; tooLongAt === undefined; now += 10) {
    const clearance = gate.pass(now)
    if (!clearance.ok && clearance.tooLong) tooLongAt = now
  }
  // At 100 a second the burst is used up after two and a half seconds: the ten count from the first refusal.
  expect(tooLongAt).toBeGreaterThanOrEqual(12_400)
  expect(tooLongAt).toBeLessThanOrEqual(12_700)
})

test('[WS7] floods are found at every rate, small bursts too', () => {
  for (const [perSecond, burst] of [
    [1, 1],
    [10, 1],
    [5, 2],
    [20, 3],
    [1_000, 1],
  ] as const) {
    const gate = new RateGate({ perSecond, burst }, 0)
    let tooLong = false
    for (let now = 0; now < 12_000 && !tooLong; now += 0.4 * (1000 / perSecond)) {
      const clearance = gate.pass(now)
      tooLong = !clearance.ok && clearance.tooLong
    }
    expect(tooLong, `${perSecond}/${burst}`).toBe(true)
  }
})

test('[WS7] who keeps to the rate after a refusal is not over it: a refusal much later begins anew', () => {
  const gate = new RateGate(rate, 0)
  passMany(gate, 0, 201)
  for (let now = 50; now <= 11_000; now += 50) expect(gate.pass(now).ok).toBe(true)
  expect(gate.pass(11_001)).toMatchObject({ ok: false, tooLong: false })
})

test('[WS7] a pause ends it: the ten seconds begin again', () => {
  const gate = new RateGate(rate, 0)
  for (let now = 0; now < 9_000; now += 10) gate.pass(now)
  // Half a burst comes back in five seconds.
  for (let now = 15_000; now < 24_000; now += 10) {
    const clearance = gate.pass(now)
    expect(clearance.ok || !clearance.tooLong).toBe(true)
  }
})

test('[WS7] a burst of one: one message, then one for each interval', () => {
  const gate = new RateGate({ perSecond: 2, burst: 1 }, 0)
  expect([0, 0, 499, 500, 999, 1_000].map((now) => gate.pass(now).ok)).toEqual([true, false, false, true, false, true])
})
