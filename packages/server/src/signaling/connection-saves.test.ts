// The messages that a socket gets, and those that wait until they are saved.
import { beforeEach, expect, test } from 'bun:test'
import { connection, flush, reset, session, world } from './connection.fixture.ts'
import type { Connection } from './connection.ts'
import { maxUnsentBytes } from './outlet.ts'

beforeEach(reset)

test('[EXT3] where the save before it fails, an ack says that the relay may not survive this node, on this socket and the next', () => {
  const acks = (id: string) => JSON.stringify({ event: 'call.ack', request_id: id, data: { call_uuid: 'c' } })
  const it = connection(null, { ...session, extended: true })
  world.answer = (text) => ({ reply: acks(text), malformed: false, n: Number(text), isOfLog: text !== '2' })
  for (const text of ['1', '2']) it.receive(text)
  it.seal()
  it.receive('3')
  it.flush(world.now, false)
  flush(it)
  const replies = [
    { event: 'call.ack', request_id: '1', data: { call_uuid: 'c', volatile: true } },
    { event: 'call.ack', request_id: '2', data: { call_uuid: 'c' } },
    { event: 'call.ack', request_id: '3', data: { call_uuid: 'c' } },
  ]
  expect(world.wire.map((text) => JSON.parse(text))).toEqual(replies)
  expect(it.upstream.replies.map(({ text }) => JSON.parse(text))).toEqual(replies)
})

test('[EXT3] [EXT4] what a reply says of a relay stands once it is saved, or says that it is not, also where its socket is closed', async () => {
  const reply = JSON.stringify({ event: 'call.ack', request_id: '1', data: { call_uuid: 'c' } })
  for (const isSaved of [true, false]) {
    for (const closes of ['never', 'before it is answered', 'before it is saved']) {
      const it = connection(null, { ...session, extended: true })
      const { promise: taken, resolve: take } = Promise.withResolvers<void>()
      world.answer = () => taken.then(() => ({ reply, malformed: false, n: 1, isOfLog: true }))
      it.receive('1')
      if (closes === 'before it is answered') it.closed()
      take()
      await Bun.sleep(0)
      expect(it.upstream).toMatchObject({ handled: 1, final: 0 })
      it.seal()
      if (closes === 'before it is saved') it.closed()
      it.flush(world.now, isSaved)
      expect(it.upstream.final).toBe(1)
      expect(JSON.parse(it.upstream.replies[0]!.text).data.volatile).toBe(isSaved ? undefined : true)
    }
  }
})

test('[EXT3] an ack of a relay whose save failed says so, also where it waits for another save with something else', () => {
  const it = connection(null, { ...session, extended: true })
  const reply = JSON.stringify({ event: 'call.ack', request_id: '1', data: { call_uuid: 'c' } })
  world.answer = () => ({ reply, malformed: false, n: 1, isOfLog: true })
  it.receive('1')
  it.send('end')
  it.pushed(1, undefined, true)
  it.seal()
  expect(it.flush(world.now, false)).toBe(true)
  it.flush(world.now, true)
  const [ack, end] = world.wire
  expect([JSON.parse(ack!).data.volatile, end]).toEqual([true, 'end'])
  expect(JSON.parse(it.upstream.replies[0]!.text).data.volatile).toBe(true)
})

test('[EXT3] what others have to know, too, is told when it is saved, and what comes after it waits', () => {
  const it = connection(null, { ...session, extended: true })
  const push = (text: string, seq: number, isEvent: boolean) => {
    it.send(text)
    it.pushed(seq, undefined, isEvent)
  }
  push('relay 1', 1, false)
  it.seal()
  expect([it.flush(world.now, false), world.wire]).toEqual([false, ['relay 1']])
  push('end', 2, true)
  it.seal()
  push('relay 2', 3, false)
  expect([it.flush(world.now, false), world.wire]).toEqual([true, ['relay 1']])
  it.seal()
  expect([it.flush(world.now, false), it.writtenSeq, world.wire]).toEqual([true, 1, ['relay 1']])
  flush(it)
  expect([it.writtenSeq, world.wire]).toEqual([3, ['relay 1', 'end', 'relay 2']])
  // Base clients have no numbers that another node might give to something else.
  const base = connection()
  base.send('end')
  base.pushed(1, undefined, true)
  base.seal()
  expect([base.flush(world.now, false), world.wire.at(-1)]).toEqual([false, 'end'])
})

test('[EXT3] a base client gets what its peer sends before that is saved, and nothing else so', () => {
  const base = connection()
  const push = (it: Connection, text: string, seq: number, isEvent: boolean) => {
    it.send(text)
    it.pushed(seq, undefined, isEvent)
  }
  push(base, 'relay 1', 1, false)
  push(base, 'relay 2', 2, false)
  expect([base.writeAhead(world.now), base.writtenSeq, world.wire]).toEqual([true, 2, ['relay 1', 'relay 2']])
  // The end goes out when it is saved, and nothing overtakes earlier messages.
  push(base, 'relay 3', 3, false)
  push(base, 'end', 4, true)
  expect(base.writeAhead(world.now)).toBe(false)
  base.seal()
  push(base, 'relay 4', 5, false)
  expect([base.writeAhead(world.now), world.wire.length]).toEqual([false, 2])
  flush(base)
  expect(world.wire.slice(2)).toEqual(['relay 3', 'end', 'relay 4'])
  // Nor an answer, which says what was done.
  base.send('error')
  push(base, 'relay 5', 6, false)
  expect([base.writeAhead(world.now), world.wire.length]).toEqual([false, 5])
  flush(base)
  push(base, 'relay 6', 7, false)
  expect([base.writeAhead(world.now), world.wire.slice(5)]).toEqual([true, ['error', 'relay 5', 'relay 6']])
  world.wire = []
  const extended = connection(null, { ...session, extended: true })
  push(extended, 'relay 1', 1, false)
  expect([extended.writeAhead(world.now), world.wire]).toEqual([false, []])
})

test('[WS7] more than 1 MiB that waits to be saved is not kept for one socket: its client comes back for it', () => {
  world.isSaved = false
  const it = connection(null, { ...session, extended: true })
  const hold = (length: number, seq: number) => {
    it.send('x'.repeat(length))
    it.pushed(seq, undefined, true)
    it.seal()
    return it.flush(world.now, false)
  }
  expect(hold(maxUnsentBytes, 1)).toBe(true)
  // Once it is saved the count begins again.
  world.isSaved = true
  flush(it)
  world.wire = []
  world.isSaved = false
  expect([hold(maxUnsentBytes, 2), world.wire]).toEqual([true, []])
  expect([hold(1, 3), world.wire]).toEqual([false, ['close 1013']])
  expect(world.causes).toEqual(['1013 what it has to be told cannot be saved'])
})

test('[EXT1] what was not saved is not told to an extended client before its socket is closed', () => {
  world.isSaved = false
  for (const [extended, told] of [
    [true, ['close 4400']],
    [false, ['push', 'close 4400']],
  ] as const) {
    world.wire = []
    const it = connection(null, { ...session, extended })
    it.send('push')
    it.close(4400, 'malformed messages')
    expect(world.wire).toEqual([...told])
  }
})
