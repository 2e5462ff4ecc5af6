import { expect, test } from 'bun:test'
import type { MessageRate } from '../config/config.ts'
import { type Clearance, RateGate } from './rate-gate.ts'
import { createSenders, type Senders } from './senders.ts'

const rate = { perSecond: 20, burst: 200 }
const small = 'x'
const large = 'x'.repeat(65_536)

/** The gate of the only socket of its participant. */
const gateOf = (of: MessageRate, now: number) => new RateGate(of, createSenders(of).join('somebody', now), now)

function send(gate: RateGate, now: number, count: number, message: string | Uint8Array = small): Clearance[] {
  return Array.from({ length: count }, () => gate.message(message, now))
}
const of = (kind: Clearance['kind'], clearances: readonly Clearance[]) => clearances.filter((it) => it.kind === kind)
const passed = (clearances: readonly Clearance[]) => of('passes', clearances).length

test('[WS7] a burst passes whole, the next message does not', () => {
  const gate = gateOf(rate, 0)
  expect(passed(send(gate, 0, 200))).toBe(200)
  expect(gate.message(small, 0)).toEqual({ kind: 'refused', retryAfterMs: 50, mayBeUnlimited: false })
})

test('[WS7] after retryAfterMs one more message passes, and it is no more than a millisecond too long', () => {
  for (const waited of [0, 1, 10, 25, 49]) {
    const gate = gateOf(rate, 0)
    send(gate, 0, 200)
    const refused = gate.message(small, waited)
    if (refused.kind !== 'refused') throw new Error(refused.kind)
    expect(refused.retryAfterMs).toBeWithin(50 - waited, 52 - waited)
    expect(gate.message(small, waited + refused.retryAfterMs).kind).toBe('passes')
  }
})

test('[WS7] what was not used comes back at the rate, up to a burst and no further', () => {
  const gate = gateOf(rate, 0)
  expect(passed(send(gate, 0, 200))).toBe(200)
  expect(passed(send(gate, 1_000, 40))).toBe(20)
  expect(passed(send(gate, 3_000, 100))).toBe(40)
  expect(passed(send(gate, 3_600_000, 400))).toBe(200)
})

test('[WS7] exactly the rate, for an hour, is never refused', () => {
  const gate = gateOf(rate, 0)
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
      const gate = gateOf(rate, 0)
      expect(passed(send(gate, 0, 400, message))).toBe(Math.ceil(200 / cost))
    }
  }
  // Small bursts take a large message, too; it is paid for afterwards.
  const gate = gateOf({ perSecond: 10, burst: 1 }, 0)
  expect(gate.message(large, 0).kind).toBe('passes')
  expect([1_599, 1_600].map((now) => gate.message(small, now).kind)).toEqual(['refused', 'passes'])
})

test('[WS7] so many again are refused by their names, and what is over that is not read', () => {
  const gate = gateOf(rate, 0)
  const kinds = send(gate, 0, 600).map(({ kind }) => kind)
  expect(kinds).toEqual([...Array(200).fill('passes'), ...Array(200).fill('refused'), ...Array(200).fill('unread')])
  // The bytes of a refusal count as those of a message: it has to be parsed for its name.
  const other = gateOf(rate, 0)
  send(other, 0, 200)
  expect(of('refused', send(other, 0, 40, large))).toHaveLength(13)
})

test('[WS7] the sender of what nobody reads hears so once a second', () => {
  const gate = gateOf(rate, 0)
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
    const gate = gateOf(rate, 0)
    send(gate, 0, 200)
    const text = JSON.stringify({ event, data: {} })
    const clearances = [...send(gate, 0, 15, text), ...send(gate, 0, 15, new TextEncoder().encode(text))]
    const open = clearances.map((it) => it.kind === 'refused' && it.mayBeUnlimited)
    expect(open).toEqual([...Array(20).fill(true), ...Array(10).fill(false)])
  }
  const gate = gateOf(rate, 0)
  for (let now = 0; now < 9_000; now += 10) gate.message(small, now)
  let open = 0
  for (let now = 9_000; now < 12_000; now += 10) {
    const it = gate.message('"call.end"', now)
    if (it.kind === 'refused' && it.mayBeUnlimited) open++
  }
  expect(open).toBeWithin(24, 27)
  // Nothing large is looked through for a name.
  const other = gateOf(rate, 0)
  send(other, 0, 200)
  expect(other.message(`"call.end"${' '.repeat(4_096)}`, 0)).toMatchObject({ mayBeUnlimited: false })
})

test('[WS7] over the rate for ten seconds is too long; a message that passes now and then does not end it', () => {
  const gate = gateOf(rate, 0)
  let closedAt: number | undefined
  for (let now = 0; closedAt === undefined; now += 10) {
    if (gate.message(small, now).kind === 'closes') closedAt = now
  }
  // At 100 a second the burst is used up after two and a half seconds: the ten count from the first refusal.
  expect(closedAt).toBeGreaterThanOrEqual(12_400)
  expect(closedAt).toBeLessThanOrEqual(12_700)
})

test('[WS7] ten times over the rate is too much at once', () => {
  const gate = gateOf(rate, 0)
  expect(send(gate, 0, 2_201).map(({ kind }) => kind === 'closes')).toEqual([...Array(2_200).fill(false), true])
  const closed = send(gateOf(rate, 0), 0, 200, large).findIndex(({ kind }) => kind === 'closes')
  expect(closed).toBe(13 + 125)
})

test('[WS7] pings have ten times the rate, and leave messages alone', () => {
  const gate = gateOf(rate, 0)
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
    const gate = gateOf({ perSecond, burst }, 0)
    let closes = false
    for (let now = 0; now < 12_000 && !closes; now += 0.4 * (1000 / perSecond)) {
      closes = gate.message(small, now).kind === 'closes'
    }
    expect(closes, `${perSecond}/${burst}`).toBe(true)
  }
})

test('[WS7] who keeps to the rate after a refusal is not over it: a refusal much later begins anew', () => {
  const gate = gateOf(rate, 0)
  send(gate, 0, 201)
  for (let now = 50; now <= 11_000; now += 50) expect(gate.message(small, now).kind).toBe('passes')
  expect(gate.message(small, 11_001).kind).toBe('refused')
})

test('[WS7] a pause ends it: the ten seconds begin again', () => {
  const gate = gateOf(rate, 0)
  for (let now = 0; now < 9_000; now += 10) gate.message(small, now)
  // Half a burst comes back in five seconds.
  for (let now = 15_000; now < 24_000; now += 10) expect(gate.message(small, now).kind).not.toBe('closes')
})

test('[WS7] a burst of one: one message, then one for each interval', () => {
  const gate = gateOf({ perSecond: 2, burst: 1 }, 0)
  const kinds = [0, 0, 499, 500, 999, 1_000].map((now) => gate.message(small, now).kind === 'passes')
  expect(kinds).toEqual([true, false, false, true, false, true])
})

/** Twenty sockets of one participant. */
const gatesOf = (senders: Senders) =>
  Array.from({ length: 20 }, () => new RateGate(rate, senders.join('somebody', 0), 0))

test('[WS7] all sockets of a participant together have ten times the rate and five times the burst of one', () => {
  const gates = gatesOf(createSenders(rate))
  const counts = gates.map((gate) => passed(send(gate, 0, 200)))
  expect(counts).toEqual([...Array(5).fill(200), ...Array(15).fill(0)])
  // 400 a second are offered, and each socket is within its own rate.
  let later = 0
  for (let now = 1_050; now <= 11_000; now += 50) for (const gate of gates) later += passed(send(gate, now, 1))
  expect(later).toBeWithin(2_190, 2_202)
})

test('[WS7] there a message counts once for each KiB that it begins, and over it nothing is parsed', () => {
  const gates = gatesOf(createSenders(rate))
  const clearances = gates.flatMap((gate) => send(gate, 0, 10, large))
  expect(passed(clearances)).toBe(16)
  expect(of('unread', clearances)).toHaveLength(125)
  expect(clearances[16]).toEqual({ kind: 'unread', retryAfterMs: 125, isTold: true })
  // What is over it, too, is counted together: all sockets that go on are closed.
  expect(clearances.slice(141).every(({ kind }) => kind === 'closes')).toBe(true)
})

test('[WS7] the descriptions and candidates of five calls at once are within all limits', () => {
  const gates = gatesOf(createSenders(rate)).slice(0, 5)
  const description = 'x'.repeat(48 * 1024 + 200)
  const candidate = 'x'.repeat(500)
  const clearances = gates.flatMap((gate) => [...send(gate, 0, 3, description), ...send(gate, 0, 40, candidate)])
  expect(passed(clearances)).toBe(5 * 43)
})

test('[WS7] where the participant is over the rate, a call can still be hung up on any of its sockets', () => {
  const gates = gatesOf(createSenders(rate))
  for (const gate of gates) send(gate, 0, 2, large)
  expect(gates[19]?.message('"call.end"', 0)).toMatchObject({ kind: 'refused', mayBeUnlimited: true })
})

test('[WS7] who opens new sockets has sent what he sent on the old ones, until that is as long ago as it was much', () => {
  const senders = createSenders(rate)
  let total = 0
  for (let socket = 0; socket < 40; socket++) {
    const sender = senders.join('somebody', socket)
    total += passed(send(new RateGate(rate, sender, socket), socket, 200))
    senders.leave(sender, socket)
  }
  expect(total).toBeWithin(1_000, 1_010)
  senders.sweep(9_900)
  expect(senders.size()).toBe(1)
  senders.sweep(60_000)
  expect(senders.size()).toBe(0)
  // Of who leaves rested nothing is kept.
  senders.leave(senders.join('other', 0), 0)
  expect(senders.size()).toBe(0)
})
