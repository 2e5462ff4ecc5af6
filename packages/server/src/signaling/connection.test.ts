import { beforeEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { connection, flush, reset, world } from './connection.fixture.ts'
import type { DispatchResult } from './dispatch.ts'

beforeEach(reset)

test('texts of one turn go out together, in order, and ask for one flush', () => {
  const it = connection()
  it.send('1')
  it.send('2')
  expect([world.wire, world.flushes]).toEqual([[], 1])
  flush(it)
  expect(world.wire).toEqual(['1', '2'])
  flush(it)
  it.send('3')
  expect(world.flushes).toBe(2)
})

test('a dispatch that fails, or what must come first failing, closes with 1011', async () => {
  world.answer = () => Promise.reject(new Error('a bug'))
  const it = connection()
  it.receive('x')
  const other = connection()
  other.begin(Promise.reject(new Error('a bug')))
  await Bun.sleep(0)
  expect(world.wire).toEqual(['close 1011', 'close 1011'])
})

test('[ENV1] ten malformed in a row close with 4400, after their ten answers', () => {
  const it = connection()
  for (let i = 0; i < 9; i++) it.receive('bad')
  it.receive('good')
  for (let i = 0; i < 10; i++) it.receive('bad')
  expect(world.wire).toHaveLength(21)
  expect(world.wire.at(-1)).toBe('close 4400')
  it.receive('after')
  expect(world.handled).toHaveLength(20)
})

test('[LOG2] a close is told once, with its cause, and one of the client not at all', () => {
  const it = connection()
  it.close(1012, 'restart, jitter_ms=100', 'restart')
  it.close(4408, 'no pong')
  it.closed()
  connection().closed()
  expect(world.causes).toEqual(['1012 restart'])
})

test('[CLOSE] what waited goes out before the close; nothing after it', () => {
  const it = connection()
  it.send('last words')
  it.close(1012, 'restart')
  it.close(4408, 'no pong')
  it.send('more')
  flush(it)
  it.tick(100_000)
  expect(world.wire).toEqual(['last words', 'close 1012'])
  expect(world.pings).toHaveLength(0)
  expect(it.closedByService).toBe(true)
})

test('[CLOSE] parting: what came before is done and answered, what comes later is not read', async () => {
  const first = Promise.withResolvers<DispatchResult>()
  world.answer = (text) => (text === 'one' ? first.promise : { reply: `reply ${text}`, malformed: false, n: undefined })
  const busy = connection()
  busy.receive('one')
  busy.receive('two')
  busy.part(1012, 'restart')
  busy.receive('three')
  expect([world.wire, busy.isOpen]).toEqual([[], true])
  first.resolve({ reply: 'reply one', malformed: false, n: undefined })
  await until('the connection is closed', () => !busy.isOpen)
  expect(world.handled).toEqual(['one', 'two'])
  expect(world.wire).toEqual(['reply one', 'reply two', 'close 1012'])
  const idle = connection()
  idle.part(1012, 'restart')
  expect([world.wire.at(-1), idle.isOpen]).toEqual(['close 1012', false])
})
