import { expect, test } from 'bun:test'
import type { Push } from '../ports/push.ts'
import { SessionLog } from './log.ts'

const push = (n: number, kind: Push['kind'] = 'relay', call = 'call', size = 0): Push => ({
  kind,
  call,
  version: undefined,
  text: `${n}${'x'.repeat(size)}`,
})
const numbers = (log: SessionLog) => log.all().map((entry) => Number.parseInt(entry.push.text, 10))
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

function filled(count: number, kind?: Push['kind']): SessionLog {
  const log = new SessionLog()
  for (const n of range(0, count)) expect(log.append(push(n, kind), 0)).toBe(n + 1)
  return log
}

test('[RES1] with a socket 512 entries are kept: the oldest makes room, in order, however many come', () => {
  for (const count of [511, 512, 513, 600, 5_000]) {
    const log = filled(count)
    expect(log.size).toBe(Math.min(count, 512))
    expect(numbers(log)).toEqual(range(Math.max(0, count - 512), count))
  }
})

test('[RES1] with a socket 1 MiB is kept, to the byte', () => {
  const log = new SessionLog()
  const half = 512 * 1024
  log.append(push(0, 'relay', 'call', half - 1), 0)
  log.append(push(1, 'relay', 'call', half - 1), 0)
  expect(numbers(log)).toEqual([0, 1])
  log.append(push(2), 0)
  expect(numbers(log)).toEqual([1, 2])
  // One that is over the bound by itself leaves nothing.
  log.append(push(3, 'relay', 'call', 2 * half), 0)
  expect(log.size).toBe(0)
  log.append(push(4), 0)
  expect(numbers(log)).toEqual([4])
})

test('[REL2] without a socket 256 entries wait; the next is refused and nothing is pushed out', () => {
  const log = new SessionLog()
  for (const n of range(0, 256)) expect(log.appendWaiting(push(n), 0)).toBe(n + 1)
  expect(log.appendWaiting(push(256), 0)).toBeUndefined()
  expect(numbers(log)).toEqual(range(0, 256))
  log.take(({ seq }) => seq === 1)
  expect(log.appendWaiting(push(257), 0)).toBe(257)
})

test('[REL2] without a socket 256 KiB wait, to the byte; what is smaller may still fit', () => {
  const log = new SessionLog()
  expect(log.appendWaiting(push(0, 'relay', 'call', 256 * 1024 - 11), 0)).toBe(1)
  expect(log.appendWaiting(push(1, 'relay', 'call', 10), 0)).toBeUndefined()
  expect(log.appendWaiting(push(2, 'relay', 'call', 9), 0)).toBe(2)
  expect(log.appendWaiting(push(3), 0)).toBeUndefined()
})

test('[WS4] without a socket call events always have room', () => {
  const log = new SessionLog()
  for (const n of range(0, 256)) log.appendWaiting(push(n), 0)
  for (const kind of ['state', 'final', 'ringing'] as const) expect(log.appendWaiting(push(1, kind), 0)).toBeNumber()
  expect(log.size).toBe(259)
})

test('[PLACE5] what is proven goes, what came after it stays', () => {
  const log = filled(100)
  log.prove(0)
  expect(log.size).toBe(100)
  log.prove(60)
  expect(numbers(log)).toEqual(range(60, 100))
  // An older proof says nothing new.
  log.prove(10)
  expect(numbers(log)).toEqual(range(60, 100))
  log.prove(1_000)
  expect(log.size).toBe(0)
  expect(log.append(push(100), 0)).toBe(101)
})

test('[PLACE2] the calls of provisional places keep what is proven, until they are settled', () => {
  const log = new SessionLog()
  for (const n of range(0, 10)) log.append(push(n, 'relay', n % 2 === 0 ? 'even' : 'odd'), 0)
  const unsettled = ['even']
  log.prove(8, unsettled)
  expect(numbers(log)).toEqual([0, 2, 4, 6, 8, 9])
  log.prove(10, unsettled)
  expect(numbers(log)).toEqual([0, 2, 4, 6, 8])
  log.forgetProven()
  expect(log.size).toBe(0)
})

test('[PLACE2] what is taken out keeps its order and its age, and so does what stays', () => {
  const log = new SessionLog()
  for (const n of range(0, 200)) log.append(push(n, 'relay', n % 3 === 0 ? 'a' : 'b'), n)
  log.prove(100)
  const taken = log.take((entry) => entry.push.call === 'a')
  expect(taken.map((entry) => Number(entry.push.text))).toEqual(range(100, 200).filter((n) => n % 3 === 0))
  expect(taken.map(({ at }) => at)).toEqual(taken.map((entry) => Number(entry.push.text)))
  expect(numbers(log)).toEqual(range(100, 200).filter((n) => n % 3 !== 0))
})

test('bytes are counted through everything that a log does', () => {
  const log = new SessionLog()
  const size = 1_000
  const room = () => {
    let fits = 0
    while (log.appendWaiting(push(0, 'relay', 'probe', 0), 0) !== undefined) fits++
    log.take((entry) => entry.push.call === 'probe')
    return fits
  }
  for (const n of range(0, 100)) log.append(push(n, 'relay', n % 2 === 0 ? 'a' : 'b', size), 0)
  log.prove(20)
  log.take((entry) => entry.push.call === 'a')
  log.retain((entry) => entry.seq > 50)
  expect(log.size).toBe(25)
  // Twenty-five entries are left, so the entries are the bound, not the bytes that went.
  expect(room()).toBe(256 - 25)
})
