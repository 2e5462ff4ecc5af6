import { expect, test } from 'bun:test'
import { type Clearance, RateGate } from './rate-gate.ts'

const rate = { perSecond: 20, burst: 200 }
const small = 'x'

function send(gate: RateGate, now: number, count: number, message: string | Uint8Array = small): Clearance[] {
  return Array.from({ length: count }, () => gate.message(message, now))
}
const of = (kind: Clearance['kind'], clearances: readonly Clearance[]) => clearances.filter((it) => it.kind === kind)
const passed = (clearances: readonly Clearance[]) => of('passes', clearances).length

test('[WS7] a burst passes whole, the next message does not', () => {
  const gate = new RateGate(rate, 0)
  expect(passed(send(gate, 0, 200))).toBe(200)
  expect(gate.message(small, 0)).toEqual({ kind: 'refused', retryAfterMs: 50, mayBeUnlimited: false })
})

test('[WS7] after retryAfterMs one more message passes, and it is no more than a millisecond too long', () => {
  for (const waited of [0, 1, 10, 25, 49]) {
    const gate = new RateGate(rate, 0)
    send(gate, 0, 200)
    const refused = gate.message(small, waited)
    if (refused.kind !== 'refused') throw new Error(refused.kind)
    expect(refused.retryAfterMs).toBeWithin(50 - waited, 52 - waited)
    expect(gate.message(small, waited + refused.retryAfterMs).kind).toBe('passes')
  }
})

test('[WS7] what was not used comes back at the rate, up to a burst and no further', () => {
  const gate = new RateGate(rate, 0)
  expect(passed(send(gate, 0, 200))).toBe(200)
  expect(passed(send(gate, 1_000, 40))).toBe(20)
  expect(passed(send(gate, 3_000, 100))).toBe(40)
  expect(passed(send(gate, 3_600_000, 400))).toBe(200)
})

test('[WS7] exactly the rate, for an hour, is never refused', () => {
  const gate = new RateGate(rate, 0)
  send(gate, 0, 199)
  for (let now = 50; now < 3_600_000; now += 50) expect(gate.message(small, now).kind).toBe('passes')
})

test('[WS7] a message counts once for each 4 KiB that it begins, in text and in binary', () => {
  for (const [bytes, cost] of [
    [0, 1],
    [1, 1],
    [4_096, 1],
    [4_097, 2],
    [65_536, 16],
  ] as const) {
    for (const message of ['x'.repeat(bytes), new Uint8Array(bytes)]) {
      const gate = new RateGate(rate, 0)
      expect(passed(send(gate, 0, 400, message))).toBe(Math.ceil(200 / cost))
    }
  }
  // Small bursts take a large message, too; it is paid for afterwards.
  const gate = new RateGate({ perSecond: 10, burst: 1 }, 0)
  const large = 'x'.repeat(65_536)
  expect(gate.message(large, 0).kind).toBe('passes')
  expect([1_599, 1_600].map((now) => gate.message(small, now).kind)).toEqual(['refused', 'passes'])
})

test('[WS7] so many again are refused by their names, and what is over that is not read', () => {
  const gate = new RateGate(rate, 0)
  const kinds = send(gate, 0, 600).map(({ kind }) => kind)
  expect(kinds).toEqual([...Array(200).fill('passes'), ...Array(200).fill('refused'), ...Array(200).fill('unread')])
  // The bytes of a refusal count as those of a message: it has to be parsed for its name.
  const other = new RateGate(rate, 0)
  send(other, 0, 200)
  expect(of('refused', send(other, 0, 40, 'x'.repeat(65_536)))).toHaveLength(13)
})

test('[WS7] the sender of what nobody reads hears so once a second', () => {
  const gate = new RateGate(rate, 0)
  send(gate, 0, 400)
  const told: number[] = []
  for (let now = 0; now < 5_000; now += 10) {
    const clearance = gate.message(small, now)
    if (clearance.kind === 'unread' && clearance.isTold) told.push(now)
  }
  expect(told[0]).toBe(0)
  expect(told.length).toBeWithin(4, 6)
})

test('[WS7] what names a request without a limit may be one: 20 at once, 2 a second after that', () => {
  for (const event of ['call.cancel', 'call.reject', 'call.end', 'auth.refresh']) {
    const gate = new RateGate(rate, 0)
    send(gate, 0, 200)
    const text = JSON.stringify({ event, data: {} })
    const clearances = [...send(gate, 0, 15, text), ...send(gate, 0, 15, new TextEncoder().encode(text))]
    const open = clearances.map((it) => it.kind === 'refused' && it.mayBeUnlimited)
    expect(open).toEqual([...Array(20).fill(true), ...Array(10).fill(false)])
  }
  const gate = new RateGate(rate, 0)
  for (let now = 0; now < 9_000; now += 10) gate.message(small, now)
  let open = 0
  for (let now = 9_000; now < 12_000; now += 10) {
    const it = gate.message('"call.end"', now)
    if (it.kind === 'refused' && it.mayBeUnlimited) open++
  }
  expect(open).toBeWithin(24, 27)
  // Nothing large is looked through for a name.
  const large = new RateGate(rate, 0)
  send(large, 0, 200)
  expect(large.message(`"call.end"${' '.repeat(4_096)}`, 0)).toMatchObject({ mayBeUnlimited: false })
})

test('[WS7] over the rate for ten seconds is too long; a message that passes now and then does not end it', () => {
  const gate = new RateGate(rate, 0)
  let closedAt: number | undefined
  for (let now = 0; closedAt === undefined; now += 10) {
    if (gate.message(small, now).kind === 'closes') closedAt = now
  }
  // At 100 a second the burst is used up after two and a half seconds: the ten count from the first refusal.
  expect(closedAt).toBeGreaterThanOrEqual(12_400)
  expect(closedAt).toBeLessThanOrEqual(12_700)
})

test('[WS7] ten times over the rate is too much at once', () => {
  const gate = new RateGate(rate, 0)
  expect(send(gate, 0, 2_201).map(({ kind }) => kind === 'closes')).toEqual([...Array(2_200).fill(false), true])
  const large = 'x'.repeat(65_536)
  const closed = send(new RateGate(rate, 0), 0, 200, large).findIndex(({ kind }) => kind === 'closes')
  expect(closed).toBe(13 + 125)
})

test('[WS7] pings have ten times the rate, and leave messages alone', () => {
  const gate = new RateGate(rate, 0)
  const pings = (count: number, now: number) => Array.from({ length: count }, () => gate.control(now))
  expect(pings(2_001, 0)).toEqual([...Array(2_000).fill(true), false])
  expect(passed(send(gate, 0, 201))).toBe(200)
  expect(pings(201, 1_000)).toEqual([...Array(200).fill(true), false])
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
    let closes = false
    for (let now = 0; now < 12_000 && !closes; now += 0.4 * (1000 / perSecond)) {
      closes = gate.message(small, now).kind === 'closes'
    }
    expect(closes, `${perSecond}/${burst}`).toBe(true)
  }
})

test('[WS7] who keeps to the rate after a refusal is not over it: a refusal much later begins anew', () => {
  const gate = new RateGate(rate, 0)
  send(gate, 0, 201)
  for (let now = 50; now <= 11_000; now += 50) expect(gate.message(small, now).kind).toBe('passes')
  expect(gate.message(small, 11_001).kind).toBe('refused')
})

test('[WS7] a pause ends it: the ten seconds begin again', () => {
  const gate = new RateGate(rate, 0)
  for (let now = 0; now < 9_000; now += 10) gate.message(small, now)
  // Half a burst comes back in five seconds.
  for (let now = 15_000; now < 24_000; now += 10) expect(gate.message(small, now).kind).not.toBe('closes')
})

test('[WS7] a burst of one: one message, then one for each interval', () => {
  const gate = new RateGate({ perSecond: 2, burst: 1 }, 0)
  const kinds = [0, 0, 499, 500, 999, 1_000].map((now) => gate.message(small, now).kind === 'passes')
  expect(kinds).toEqual([true, false, false, true, false, true])
})
