// Pings, pongs and probes: whether somebody is there, and what has arrived.
import { beforeEach, expect, test } from 'bun:test'
import { connection, flush, pong, reset, world } from './connection.fixture.ts'
import type { Connection } from './connection.ts'

beforeEach(reset)

test('[TRACE1] it says which calls ring there, and which the client was proven to have heard of', () => {
  const it = connection()
  it.pushed(1)
  it.pushed(2, 'call a')
  world.now += 1_000
  flush(it)
  it.pushed(3, 'call b')
  expect(world.rung).toEqual(['told call a', 'told call b'])
  pong(it)
  expect([world.proven, world.rung.slice(2)]).toEqual([[2], ['proven call a']])
  world.now += 1_000
  flush(it)
  pong(it)
  expect(world.rung.slice(3)).toEqual(['proven call b'])
})

test('[WS6] pings at the interval; no pong in time closes with 4408, a pong in time does not', () => {
  const it = connection()
  it.tick(24_999)
  expect(world.pings).toHaveLength(0)
  it.tick(25_000)
  expect(world.pings).toHaveLength(1)
  it.tick(34_999)
  expect(world.wire).toEqual([])
  pong(it)
  it.tick(49_999)
  it.tick(50_000)
  expect(world.pings).toHaveLength(2)
  it.tick(60_000)
  expect(world.wire).toEqual(['close 4408'])
})

test('[WS6] a pong answers its ping and those before it; one that answers none proves nothing', () => {
  const it = connection()
  it.tick(25_000)
  it.tick(50_000 - 16_000)
  for (const data of [new Uint8Array(0), new Uint8Array([0, 0, 0, 9]), new Uint8Array(5)]) it.pong(data)
  it.tick(35_000)
  expect(world.wire).toEqual(['close 4408'])
})

test('[PING1] a client that leaves a ping without an answer for 2 s is silent, until it answers one', () => {
  const it = connection()
  it.tick(25_000)
  it.tick(26_500)
  expect(world.silent).toEqual([])
  it.tick(27_000)
  it.tick(27_500)
  expect(world.silent).toEqual([true, true])
  pong(it)
  it.tick(28_000)
  expect(world.silent).toEqual([true, true, false])
  expect(world.wire).toEqual([])
})

test('[PING1] the time in which the process was busy is nobody’s silence', () => {
  const it = connection()
  it.tick(25_000)
  it.allow(1_500)
  it.tick(28_000)
  expect(world.silent).toEqual([])
  it.tick(28_500)
  expect(world.silent).toEqual([true])
})

test('[WS6] the time in which the process was away is nobody’s silence', () => {
  const it = connection()
  it.tick(25_000)
  it.allow(30_000)
  it.tick(55_000)
  expect(world.wire).toEqual([])
  it.tick(65_000)
  expect(world.wire).toEqual(['close 4408'])
})

test('[PLACE5] call pushes are followed by a ping, at most one a second, and its pong proves what came before it', () => {
  const it = connection()
  const push = (seq: number) => {
    it.send(`push ${seq}`)
    it.pushed(seq)
    flush(it)
  }
  world.now = 1_000
  push(1)
  expect(world.pings).toHaveLength(1)
  push(2)
  push(3)
  expect(world.pings).toHaveLength(1)
  pong(it)
  expect(world.proven).toEqual([1])
  world.now = 2_000
  it.tick(world.now)
  expect(world.pings).toHaveLength(2)
  pong(it)
  pong(it)
  expect(world.proven).toEqual([1, 3])
  it.tick(9_000)
  expect(world.pings).toHaveLength(2)
})

test('[PLACE5] a push that is urgent is followed by a ping at once, once it is written', () => {
  const it = connection()
  const push = (seq: number, isUrgent: boolean) => {
    it.send(`push ${seq}`)
    it.pushed(seq, undefined, true, isUrgent)
  }
  world.now = 1_000
  push(1, false)
  flush(it)
  push(2, true)
  expect(world.pings).toHaveLength(1)
  flush(it)
  push(3, false)
  push(4, true)
  flush(it)
  push(5, false)
  flush(it)
  expect(world.pings).toHaveLength(3)
  pong(it)
  expect(world.proven).toEqual([4])
})

test('[PLACE5] within a second every 32 pushes are followed by a ping', () => {
  const it = connection()
  const push = (from: number, to: number) => {
    for (let seq = from; seq <= to; seq++) {
      it.send(`push ${seq}`)
      it.pushed(seq)
      flush(it)
    }
  }
  world.now = 1_000
  push(1, 32)
  expect(world.pings).toHaveLength(1)
  push(33, 64)
  expect(world.pings).toHaveLength(2)
  pong(it)
  expect(world.proven).toEqual([33])
})

test('[PLACE5] a ping proves what was written before it, and nothing that waits to be saved', () => {
  const it = connection()
  it.send('push')
  it.pushed(7)
  it.seal()
  it.tick(25_000)
  expect([world.wire, world.pings.length]).toEqual([[], 1])
  pong(it)
  expect(world.proven).toEqual([])
  it.send('another')
  it.pushed(8)
  it.flush(25_000)
  expect([world.wire, it.writtenSeq]).toEqual([['push'], 7])
  it.tick(27_000)
  pong(it)
  expect(world.proven).toEqual([7])
  it.seal()
  it.flush(27_000)
  expect([world.wire, it.writtenSeq]).toEqual([['push', 'another'], 8])
})

test('[PLACE5] a push after the ping is not proven by its pong', () => {
  const it = connection()
  it.tick(25_000)
  it.pushed(1)
  pong(it)
  expect(world.proven).toEqual([])
})

test('[PLACE4] a probe: a pong in time is a sign of life, and two who ask get the one answer', async () => {
  const it = connection()
  const asked = [it.probe(), it.probe()]
  expect(world.pings).toHaveLength(1)
  pong(it)
  expect(await Promise.all(asked)).toEqual([true, true])
  expect(world.wire).toEqual([])
  const again = it.probe()
  expect(world.pings).toHaveLength(2)
  pong(it)
  expect(await again).toBe(true)
})

test('[PLACE4] a probe: a pong to a ping of before the question proves nothing about now', async () => {
  const it = connection()
  it.tick(25_000)
  const asked = it.probe()
  pong(it, 0)
  expect(await asked).toBe(false)
  expect(world.wire).toEqual(['close 4408'])
})

test('[PLACE4] a probe of a socket that closes meanwhile, or has closed, is answered at once', async () => {
  for (const end of [(it: Connection) => it.closed(), (it: Connection) => it.close(1012, 'restart')]) {
    const it = connection()
    const asked = it.probe()
    end(it)
    expect(await asked).toBe(false)
    expect(await it.probe()).toBe(false)
  }
})

test('[LOG2] three causes of 4408 are told apart', async () => {
  const alive = connection()
  alive.tick(25_000)
  alive.tick(35_000)
  const pushed = connection()
  world.now = 1_000
  pushed.send('push')
  pushed.pushed(1)
  flush(pushed)
  pushed.tick(11_000)
  expect(await connection().probe()).toBe(false)
  expect(world.causes).toEqual([
    '4408 no pong to a keep-alive',
    '4408 no pong after a push',
    '4408 no answer to a probe',
  ])
})
