// In which order what came on one socket takes effect.
import { beforeEach, expect, test } from 'bun:test'
import type { Call } from '../call/call.ts'
import { connection, flush, nothing, pong, reset, session, world } from './connection.fixture.ts'
import type { Connection } from './connection.ts'
import type { DispatchResult } from './dispatch.ts'

beforeEach(reset)

test('[ORD1] [EXT4] relays that are on their way are answered in order, and each is handled once', async () => {
  const answers = new Map<string, () => void>()
  world.answer = (text, waiter) => {
    const n = Number(text)
    const result = { reply: `reply ${text}`, malformed: false, n }
    if (n === 0) return result
    waiter?.isUnderWayAs(n)
    return new Promise((resolve) => answers.set(text, () => resolve(result)))
  }
  const it = connection(null, { ...session, extended: true })
  for (const text of ['1', '2', '3']) it.receive(text)
  expect([world.handled, world.handledBefore]).toEqual([
    ['1', '2', '3'],
    [0, 1, 2],
  ])
  answers.get('3')?.()
  answers.get('2')?.()
  await Bun.sleep(0)
  flush(it)
  expect([world.wire, it.upstream.handled]).toEqual([[], 0])
  answers.get('1')?.()
  await Bun.sleep(0)
  flush(it)
  expect([world.wire, it.upstream.handled]).toEqual([['reply 1', 'reply 2', 'reply 3'], 3])
  expect(it.isBusy).toBe(false)
})

test('[ORD1] a later request waits for the earlier one, and what a client sent before it closed still takes effect', async () => {
  const gate = Promise.withResolvers<DispatchResult>()
  world.answer = (text) => (text === 'slow' ? gate.promise : nothing)
  const it = connection()
  for (const text of ['slow', 'second', 'third']) it.receive(text)
  expect(world.handled).toEqual(['slow'])
  it.closed()
  it.receive('too late')
  gate.resolve(nothing)
  await Bun.sleep(0)
  expect(world.handled).toEqual(['slow', 'second', 'third'])
})

test('[ORD3] requests wait until what a client must hear first is through', async () => {
  const first = Promise.withResolvers<void>()
  const it = connection()
  it.begin(first.promise)
  it.receive('early')
  expect(world.handled).toEqual([])
  first.resolve()
  await Bun.sleep(0)
  expect(world.handled).toEqual(['early'])
})

test('[ORD1] [PLACE4] a request that waits for a sign of life lets others go on; in an extended session all wait', async () => {
  const call = { callUuid: 'a', caller: {}, callee: {} } as Call
  for (const [who, expected] of [
    [session, ['a', 'b']],
    [{ ...session, extended: true }, ['a']],
  ] as const) {
    world.handled = []
    const verdict = Promise.withResolvers<DispatchResult>()
    world.answer = async (text, waiter) => {
      if (text !== 'a' || world.handled.length > 1) return nothing
      waiter?.waitsFor(call)
      return verdict.promise
    }
    const it = connection(null, who)
    for (const text of ['a', 'a', 'b']) it.receive(text)
    await Bun.sleep(0)
    expect([world.handled, it.isBusy]).toEqual([[...expected], true])
    verdict.resolve(nothing)
    await Bun.sleep(0)
    expect([world.handled.toSorted(), it.isBusy]).toEqual([['a', 'a', 'b'], false])
  }
})

/** A connection whose process stood still; what was sent to it is read now. */
function afterStall(...texts: readonly string[]): Connection {
  const it = connection()
  it.doubt()
  for (const text of texts) it.receive(text)
  expect(world.handled).toEqual([])
  return it
}

test('[ORD1] after a stall what waits is read when its client answers a ping of now, once and in order', async () => {
  const it = connection()
  it.probe()
  it.doubt()
  it.receive('1')
  it.receive('2')
  // The earlier client answered this ping, perhaps long ago.
  pong(it)
  await Bun.sleep(0)
  expect([world.handled, world.pings.length]).toEqual([[], 2])
  it.receive('3')
  pong(it)
  await Bun.sleep(0)
  it.receive('4')
  expect(world.handled).toEqual(['1', '2', '3', '4'])
})

test('[ORD1] after a stall a client that is gone has hung up, and nothing else is done in its name', async () => {
  const it = afterStall('accept', 'end')
  it.closed()
  await Bun.sleep(0)
  expect(world.handled).toEqual(['last accept', 'last end'])
})

test('[ORD1] after a stall a socket whose session is elsewhere is closed, and what it sent is not read', async () => {
  world.hasMoved = true
  const it = afterStall('accept')
  await Bun.sleep(0)
  pong(it)
  await Bun.sleep(0)
  it.receive('end')
  expect(world.handled).toEqual([])
  expect(world.wire).toEqual(['close 4409'])
})

test('[ORD1] what waited behind a request when the process stood still waits for the same', async () => {
  const slow = Promise.withResolvers<DispatchResult>()
  world.answer = (text) => (text === 'slow' ? slow.promise : nothing)
  const it = connection()
  it.receive('slow')
  it.receive('accept')
  it.doubt()
  slow.resolve(nothing)
  await Bun.sleep(0)
  expect(world.handled).toEqual(['slow'])
  it.closed()
  await Bun.sleep(0)
  expect(world.handled).toEqual(['slow', 'last accept'])
})
