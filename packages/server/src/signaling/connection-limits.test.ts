// How much one socket may send, and may leave unread.
import { beforeEach, expect, test } from 'bun:test'
import { errorBody } from '@ringwire/protocol/errors'
import { encodeError } from './answer.ts'
import { connection, flush, pong, reset, session, timing, world } from './connection.fixture.ts'
import type { Connection } from './connection.ts'

beforeEach(reset)

const limited = (retry_after_ms: number, requestId: string | undefined) =>
  encodeError(errorBody('RATE_LIMITED', { retry_after_ms, limit: 'messages' }), requestId)

test('[ORD1] 512 requests may wait, one more closes with 4429', () => {
  const it = connection()
  it.begin(new Promise(() => {}))
  for (let i = 0; i < 512; i++) it.receive(String(i))
  expect(world.wire).toEqual([])
  it.receive('one more')
  expect(world.wire).toEqual(['close 4429'])
})

test('[ORD1] what waits is bounded by its bytes: 256 KiB a socket, and the rest of what the participant has', () => {
  for (const [messages, share] of [
    [4, Number.POSITIVE_INFINITY],
    [2, 3 * 64 * 1024 - 1],
  ] as const) {
    world.wire = []
    world.room = share
    const it = connection()
    it.begin(new Promise(() => {}))
    for (let i = 0; i < messages; i++) it.receive('x'.repeat(64 * 1024))
    expect(world.wire).toEqual([])
    it.receive('x'.repeat(64 * 1024))
    expect(world.wire).toEqual(['close 4429'])
  }
})

test('[WS6] too big is told by bytes, in text and in binary', () => {
  for (const message of ['€'.repeat(21_846), 'a'.repeat(65_537), new Uint8Array(65_537).fill(0xff)]) {
    world.wire = []
    connection().receive(message)
    expect(world.wire).toEqual(['close 1009'])
  }
  const it = connection()
  it.receive('€'.repeat(21_845))
  it.receive(new Uint8Array(65_536))
  expect(world.handled.map(({ length }) => length)).toEqual([21_845, 65_536])
})

test('[WS7] over the rate the message is not handled, its refusal says when', () => {
  const it = connection({ perSecond: 10, burst: 1 })
  it.receive('1')
  it.receive('2')
  flush(it)
  expect(world.handled).toEqual(['1'])
  expect(world.wire.at(-1)).toBe(limited(100, 'r'))
  for (world.now = 20; world.now < 10_000; world.now += 20) it.receive('on and on')
  expect(world.wire.some((text) => text.startsWith('close'))).toBe(false)
  world.now = 10_050
  it.receive('6')
  it.receive('7')
  expect(world.wire.at(-1)).toBe('close 4429')
})

test('[WS7] what is over the refusals, too, is not read: a base session hears so, an extended one is closed', () => {
  const base = connection({ perSecond: 10, burst: 1 })
  for (let i = 0; i < 6; i++) base.receive('x'.repeat(100))
  flush(base)
  expect([world.handled.length, world.wire.slice(1)]).toEqual([1, [limited(100, 'r'), limited(100, undefined)]])
  world.wire = []
  const extended = connection({ perSecond: 10, burst: 1 }, { ...session, extended: true })
  for (const text of ['1', '2', '3', '4']) extended.receive(text)
  expect(world.wire).toEqual(['reply 1', limited(100, 'r'), 'close 4429'])
})

test('[WS7] over the rate a hang-up is still handled, within a bound of its own', () => {
  const it = connection({ perSecond: 10, burst: 3 })
  for (const text of ['1', '2', '3']) it.receive(text)
  for (let i = 0; i < 30; i++) it.receive('"call.end"')
  expect(world.handled).toEqual(['1', '2', '3', ...Array<string>(20).fill('"call.end"')])
  expect(it.isOpen).toBe(true)
  it.receive('"call.end"')
  expect([world.handled.length, it.isOpen]).toEqual([23, false])
})

test('[WS7] a flood of pings, or of pongs that answer none, closes with 4429', () => {
  for (const [sort, send] of [
    ['pings', (it: Connection) => it.pinged()],
    ['pongs', (it: Connection) => it.pong(new Uint8Array(4))],
  ] as const) {
    world.wire = []
    const it = connection({ perSecond: 10, burst: 1 })
    for (let i = 0; i < 10; i++) send(it)
    expect([sort, world.wire]).toEqual([sort, []])
    send(it)
    expect([sort, world.wire]).toEqual([sort, ['close 4429']])
  }
  world.wire = []
  const unlimited = connection()
  for (let i = 0; i < 10_000; i++) unlimited.pinged()
  expect(world.wire).toEqual([])
})

test('[WS7] answers to our own pings do not count', () => {
  const it = connection({ perSecond: 1, burst: 1 })
  for (let i = 1; i <= 50; i++) {
    it.tick(i * 25_000)
    pong(it)
  }
  expect(world.wire).toEqual([])
})

test('[WS7] a mebibyte unsent is fine, a byte more closes with 4008', () => {
  const it = connection()
  world.unsent = 1024 * 1024
  it.send('1')
  flush(it)
  expect(world.wire).toEqual(['1'])
  world.unsent++
  it.send('2')
  flush(it)
  expect(world.wire).toEqual(['1', '2', 'close 4008'])
  it.send('3')
  flush(it)
  expect(world.wire).toHaveLength(3)
})

test('[WS7] what a socket owes is counted for the process, and no more when it is closed', () => {
  const it = connection()
  const waiting = (bytes: number) => {
    world.unsent = bytes
    it.send('1')
    flush(it)
    return world.unsentInAll
  }
  expect([1_000, 1_000, 700, 0, 500].map(waiting)).toEqual([1_000, 1_000, 700, 0, 500])
  world.unsent = 900
  expect([it.unsent(), world.unsentInAll]).toEqual([900, 900])
  it.close(4008, 'reads too slowly')
  it.closed()
  expect(world.unsentInAll).toBe(0)
})

test('[WS7] what waits unsent without a message of ours, as answers to its pings, counts as well', () => {
  const it = connection()
  it.tick(world.now)
  world.unsent = 1024 * 1024
  it.pinged()
  it.tick(world.now)
  expect(world.wire).toEqual([])
  world.unsent++
  it.tick(world.now)
  expect(world.wire).toEqual(['close 4008'])
})

test('a socket is measured until nothing waits in it, and again when something was written that did not go at once', () => {
  const it = connection()
  const measured = () => {
    const before = world.measured
    it.tick(world.now)
    return world.measured - before
  }
  expect([measured(), measured()]).toEqual([1, 0])
  it.send('1')
  flush(it)
  expect(measured()).toBe(0)
  world.unsent = 10
  it.send('2')
  flush(it)
  expect([measured(), measured()]).toEqual([1, 1])
  world.unsent = 0
  expect([measured(), measured()]).toEqual([1, 0])
  expect(world.unsentInAll).toBe(0)
  world.now += timing.pingIntervalMs
  world.unsent = 10
  expect([measured(), measured()]).toEqual([0, 1])
})
