import { beforeEach, expect, test } from 'bun:test'
import { errorBody } from '@ringwire/protocol/errors'
import type { Call } from '../call/call.ts'
import type { Waiter } from '../services/request.ts'
import { createBacklog } from './backlog.ts'
import { Connection } from './connection.ts'
import { type Dispatch, type DispatchResult, encodeError, type SignalingSession } from './dispatch.ts'
import { type ConnectionTiming, maxUnsentBytes } from './outlet.ts'
import { createSenders } from './senders.ts'

const session: SignalingSession = {
  participant: { product: 'shop', role: 'agent', userId: 'ann' },
  sessionId: 's',
  deviceId: null,
  displayName: 'Ann',
  node: 'n',
  allowedActions: [],
  allowedPeerRoles: [],
  contextType: 'order',
  contextId: '1',
  issuedAt: 0,
  key: null,
  expiresAt: 0,
  extended: false,
}
const timing: ConnectionTiming = { pingIntervalMs: 25_000, pongTimeoutMs: 10_000, probeTimeoutMs: 20 }

const nothing: DispatchResult = { reply: undefined, malformed: false, n: undefined }

/** What the socket was given, in order. */
let wire: string[]
let pings: Uint8Array[]
let unsent: number
let now: number
let proven: number[]
let rung: string[]
let flushes: number
let isSaved: boolean
let causes: string[]
/** Texts that the dispatch was given, and how it answers. */
let handled: string[]
/** With each, the last request that took effect before it. */
let handledBefore: number[]
/** Whether the session is another socket's by now. */
let hasMoved: boolean
/** Bytes that may wait for the participant. */
let room: number
let answer: (text: string, waiter: Waiter | undefined) => DispatchResult | Promise<DispatchResult>

beforeEach(() => {
  wire = []
  pings = []
  unsent = 0
  now = 0
  proven = []
  rung = []
  flushes = 0
  isSaved = true
  handled = []
  handledBefore = []
  hasMoved = false
  room = Number.POSITIVE_INFINITY
  causes = []
  answer = (text) => ({ reply: `reply ${text}`, malformed: text === 'bad', n: undefined })
})

function connection(messageRate: { perSecond: number; burst: number } | null = null, who = session): Connection {
  const dispatch: Dispatch = {
    handle(_, text, before, refusal, waiter) {
      if (refusal !== undefined && !(refusal.mayBeUnlimited && text === '"call.end"')) {
        return { reply: encodeError(refusal.error, 'r'), malformed: false, n: undefined }
      }
      handled.push(text)
      handledBefore.push(before)
      return answer(text, waiter)
    },
    handleLast(_, text) {
      handled.push(`last ${text}`)
      return nothing
    },
    aboutOf: (text) => [text],
  }
  return new Connection({
    socket: {
      send: (text) => wire.push(text),
      ping: (data) => pings.push(data),
      cork: (send) => send(),
      close: (code) => void wire.push(`close ${code}`),
      getBufferedAmount: () => unsent,
    },
    session: who,
    dispatch,
    backlog: createBacklog(room),
    timing,
    senders: messageRate === null ? undefined : createSenders(messageRate),
    now: () => now,
    hasMoved: () => hasMoved,
    isSaved: () => isSaved,
    requestFlush: () => void flushes++,
    onProven: (_, seq) => void proven.push(seq),
    onRung: (_, call, isProven) => void rung.push(`${isProven ? 'proven' : 'told'} ${call}`),
    onClosing: (_, code, cause) => void causes.push(`${code} ${cause}`),
  })
}

/** As the gateway does where nothing has to be saved. */
function flush(it: Connection): void {
  it.seal()
  it.flush(now)
}

const limited = (retry_after_ms: number, requestId: string | undefined) =>
  encodeError(errorBody('RATE_LIMITED', { retry_after_ms, limit: 'messages' }), requestId)
const pong = (it: Connection, n = -1) => it.pong(pings.at(n)!)

test('[TRACE1] it says which calls ring there, and which the client was proven to have heard of', () => {
  const it = connection()
  it.pushed(1)
  it.pushed(2, 'call a')
  now += 1_000
  flush(it)
  it.pushed(3, 'call b')
  expect(rung).toEqual(['told call a', 'told call b'])
  pong(it)
  expect([proven, rung.slice(2)]).toEqual([[2], ['proven call a']])
  now += 1_000
  flush(it)
  pong(it)
  expect(rung.slice(3)).toEqual(['proven call b'])
})

test('texts of one turn go out together, in order, and ask for one flush', () => {
  const it = connection()
  it.send('1')
  it.send('2')
  expect([wire, flushes]).toEqual([[], 1])
  flush(it)
  expect(wire).toEqual(['1', '2'])
  flush(it)
  it.send('3')
  expect(flushes).toBe(2)
})

test('[ORD1] [EXT4] relays that are on their way are answered in order, and each is handled once', async () => {
  const answers = new Map<string, () => void>()
  answer = (text, waiter) => {
    const n = Number(text)
    const result = { reply: `reply ${text}`, malformed: false, n }
    if (n === 0) return result
    waiter?.isUnderWayAs(n)
    return new Promise((resolve) => answers.set(text, () => resolve(result)))
  }
  const it = connection(null, { ...session, extended: true })
  for (const text of ['1', '2', '3']) it.receive(text)
  expect([handled, handledBefore]).toEqual([
    ['1', '2', '3'],
    [0, 1, 2],
  ])
  answers.get('3')?.()
  answers.get('2')?.()
  await Bun.sleep(0)
  flush(it)
  expect([wire, it.upstream.handled]).toEqual([[], 0])
  answers.get('1')?.()
  await Bun.sleep(0)
  flush(it)
  expect([wire, it.upstream.handled]).toEqual([['reply 1', 'reply 2', 'reply 3'], 3])
  expect(it.isBusy).toBe(false)
})

test('[EXT3] where the save before it fails, an ack says that the relay may not survive this node, on this socket and the next', () => {
  const acks = (id: string) => JSON.stringify({ event: 'call.ack', request_id: id, data: { call_uuid: 'c' } })
  const it = connection(null, { ...session, extended: true })
  answer = (text) => ({ reply: acks(text), malformed: false, n: Number(text), isOfLog: text !== '2' })
  for (const text of ['1', '2']) it.receive(text)
  it.seal()
  it.receive('3')
  it.flush(now, false)
  flush(it)
  const replies = [
    { event: 'call.ack', request_id: '1', data: { call_uuid: 'c', volatile: true } },
    { event: 'call.ack', request_id: '2', data: { call_uuid: 'c' } },
    { event: 'call.ack', request_id: '3', data: { call_uuid: 'c' } },
  ]
  expect(wire.map((text) => JSON.parse(text))).toEqual(replies)
  expect(it.upstream.replies.map(({ text }) => JSON.parse(text))).toEqual(replies)
})

test('[EXT3] [EXT4] what a reply says of a relay stands once it is saved, or says that it is not, also where its socket is closed', async () => {
  const reply = JSON.stringify({ event: 'call.ack', request_id: '1', data: { call_uuid: 'c' } })
  for (const isSaved of [true, false]) {
    for (const closes of ['never', 'before it is answered', 'before it is saved']) {
      const it = connection(null, { ...session, extended: true })
      const { promise: taken, resolve: take } = Promise.withResolvers<void>()
      answer = () => taken.then(() => ({ reply, malformed: false, n: 1, isOfLog: true }))
      it.receive('1')
      if (closes === 'before it is answered') it.closed()
      take()
      await Bun.sleep(0)
      expect(it.upstream).toMatchObject({ handled: 1, final: 0 })
      it.seal()
      if (closes === 'before it is saved') it.closed()
      it.flush(now, isSaved)
      expect(it.upstream.final).toBe(1)
      expect(JSON.parse(it.upstream.replies[0]!.text).data.volatile).toBe(isSaved ? undefined : true)
    }
  }
})

test('[EXT3] an ack of a relay whose save failed says so, also where it waits for another save with something else', () => {
  const it = connection(null, { ...session, extended: true })
  const reply = JSON.stringify({ event: 'call.ack', request_id: '1', data: { call_uuid: 'c' } })
  answer = () => ({ reply, malformed: false, n: 1, isOfLog: true })
  it.receive('1')
  it.send('end')
  it.pushed(1, undefined, true)
  it.seal()
  expect(it.flush(now, false)).toBe(true)
  it.flush(now, true)
  const [ack, end] = wire
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
  expect([it.flush(now, false), wire]).toEqual([false, ['relay 1']])
  push('end', 2, true)
  it.seal()
  push('relay 2', 3, false)
  expect([it.flush(now, false), wire]).toEqual([true, ['relay 1']])
  it.seal()
  expect([it.flush(now, false), it.writtenSeq, wire]).toEqual([true, 1, ['relay 1']])
  flush(it)
  expect([it.writtenSeq, wire]).toEqual([3, ['relay 1', 'end', 'relay 2']])
  // Base clients have no numbers that another node might give to something else.
  const base = connection()
  base.send('end')
  base.pushed(1, undefined, true)
  base.seal()
  expect([base.flush(now, false), wire.at(-1)]).toEqual([false, 'end'])
})

test('[EXT3] a base client gets what its peer sends before that is saved, and nothing else so', () => {
  const base = connection()
  const push = (it: Connection, text: string, seq: number, isEvent: boolean) => {
    it.send(text)
    it.pushed(seq, undefined, isEvent)
  }
  push(base, 'relay 1', 1, false)
  push(base, 'relay 2', 2, false)
  expect([base.writeAhead(now), base.writtenSeq, wire]).toEqual([true, 2, ['relay 1', 'relay 2']])
  // The end is told of when it is saved, and nothing comes before what was sent before it.
  push(base, 'relay 3', 3, false)
  push(base, 'end', 4, true)
  expect(base.writeAhead(now)).toBe(false)
  base.seal()
  push(base, 'relay 4', 5, false)
  expect([base.writeAhead(now), wire.length]).toEqual([false, 2])
  flush(base)
  expect(wire.slice(2)).toEqual(['relay 3', 'end', 'relay 4'])
  // Nor an answer, which says what was done.
  base.send('error')
  push(base, 'relay 5', 6, false)
  expect([base.writeAhead(now), wire.length]).toEqual([false, 5])
  flush(base)
  push(base, 'relay 6', 7, false)
  expect([base.writeAhead(now), wire.slice(5)]).toEqual([true, ['error', 'relay 5', 'relay 6']])
  wire = []
  const extended = connection(null, { ...session, extended: true })
  push(extended, 'relay 1', 1, false)
  expect([extended.writeAhead(now), wire]).toEqual([false, []])
})

test('[WS7] more than 1 MiB that waits to be saved is not kept for one socket: its client comes back for it', () => {
  isSaved = false
  const it = connection(null, { ...session, extended: true })
  const hold = (length: number, seq: number) => {
    it.send('x'.repeat(length))
    it.pushed(seq, undefined, true)
    it.seal()
    return it.flush(now, false)
  }
  expect(hold(maxUnsentBytes, 1)).toBe(true)
  // Once it is saved the count begins again.
  isSaved = true
  flush(it)
  wire = []
  isSaved = false
  expect([hold(maxUnsentBytes, 2), wire]).toEqual([true, []])
  expect([hold(1, 3), wire]).toEqual([false, ['close 1013']])
  expect(causes).toEqual(['1013 what it has to be told cannot be saved'])
})

test('[ORD1] a later request waits for the earlier one, and what a client sent before it closed still takes effect', async () => {
  const gate = Promise.withResolvers<DispatchResult>()
  answer = (text) => (text === 'slow' ? gate.promise : nothing)
  const it = connection()
  for (const text of ['slow', 'second', 'third']) it.receive(text)
  expect(handled).toEqual(['slow'])
  it.closed()
  it.receive('too late')
  gate.resolve(nothing)
  await Bun.sleep(0)
  expect(handled).toEqual(['slow', 'second', 'third'])
})

test('[ORD3] requests wait until what a client must hear first is through', async () => {
  const first = Promise.withResolvers<void>()
  const it = connection()
  it.begin(first.promise)
  it.receive('early')
  expect(handled).toEqual([])
  first.resolve()
  await Bun.sleep(0)
  expect(handled).toEqual(['early'])
})

test('[ORD1] 512 requests may wait, one more closes with 4429', () => {
  const it = connection()
  it.begin(new Promise(() => {}))
  for (let i = 0; i < 512; i++) it.receive(String(i))
  expect(wire).toEqual([])
  it.receive('one more')
  expect(wire).toEqual(['close 4429'])
})

test('[ORD1] what waits is bounded by its bytes: 256 KiB a socket, and the rest of what the participant has', () => {
  for (const [messages, share] of [
    [4, Number.POSITIVE_INFINITY],
    [2, 3 * 64 * 1024 - 1],
  ] as const) {
    wire = []
    room = share
    const it = connection()
    it.begin(new Promise(() => {}))
    for (let i = 0; i < messages; i++) it.receive('x'.repeat(64 * 1024))
    expect(wire).toEqual([])
    it.receive('x'.repeat(64 * 1024))
    expect(wire).toEqual(['close 4429'])
  }
})

test('[ORD1] [PLACE4] a request that waits for a sign of life lets others go on; in an extended session all wait', async () => {
  const call = { callUuid: 'a', caller: {}, callee: {} } as Call
  for (const [who, expected] of [
    [session, ['a', 'b']],
    [{ ...session, extended: true }, ['a']],
  ] as const) {
    handled = []
    const verdict = Promise.withResolvers<DispatchResult>()
    answer = async (text, waiter) => {
      if (text !== 'a' || handled.length > 1) return nothing
      waiter?.waitsFor(call)
      return verdict.promise
    }
    const it = connection(null, who)
    for (const text of ['a', 'a', 'b']) it.receive(text)
    await Bun.sleep(0)
    expect([handled, it.isBusy]).toEqual([[...expected], true])
    verdict.resolve(nothing)
    await Bun.sleep(0)
    expect([handled.toSorted(), it.isBusy]).toEqual([['a', 'a', 'b'], false])
  }
})

test('a dispatch that fails, or what must come first failing, closes with 1011', async () => {
  answer = () => Promise.reject(new Error('a bug'))
  const it = connection()
  it.receive('x')
  const other = connection()
  other.begin(Promise.reject(new Error('a bug')))
  await Bun.sleep(0)
  expect(wire).toEqual(['close 1011', 'close 1011'])
})

test('[ENV1] ten malformed in a row close with 4400, after their ten answers', () => {
  const it = connection()
  for (let i = 0; i < 9; i++) it.receive('bad')
  it.receive('good')
  for (let i = 0; i < 10; i++) it.receive('bad')
  expect(wire).toHaveLength(21)
  expect(wire.at(-1)).toBe('close 4400')
  it.receive('after')
  expect(handled).toHaveLength(20)
})

test('[WS6] too big is told by bytes, in text and in binary', () => {
  for (const message of ['€'.repeat(21_846), 'a'.repeat(65_537), new Uint8Array(65_537).fill(0xff)]) {
    wire = []
    connection().receive(message)
    expect(wire).toEqual(['close 1009'])
  }
  const it = connection()
  it.receive('€'.repeat(21_845))
  it.receive(new Uint8Array(65_536))
  expect(handled.map(({ length }) => length)).toEqual([21_845, 65_536])
})

test('[WS7] over the rate the message is not handled, its refusal says when', () => {
  const it = connection({ perSecond: 10, burst: 1 })
  it.receive('1')
  it.receive('2')
  flush(it)
  expect(handled).toEqual(['1'])
  expect(wire.at(-1)).toBe(limited(100, 'r'))
  for (now = 20; now < 10_000; now += 20) it.receive('on and on')
  expect(wire.some((text) => text.startsWith('close'))).toBe(false)
  now = 10_050
  it.receive('6')
  it.receive('7')
  expect(wire.at(-1)).toBe('close 4429')
})

test('[WS7] what is over the refusals, too, is not read: a base session hears so, an extended one is closed', () => {
  const base = connection({ perSecond: 10, burst: 1 })
  for (let i = 0; i < 6; i++) base.receive('x'.repeat(100))
  flush(base)
  expect([handled.length, wire.slice(1)]).toEqual([1, [limited(100, 'r'), limited(100, undefined)]])
  wire = []
  const extended = connection({ perSecond: 10, burst: 1 }, { ...session, extended: true })
  for (const text of ['1', '2', '3', '4']) extended.receive(text)
  expect(wire).toEqual(['reply 1', limited(100, 'r'), 'close 4429'])
})

test('[WS7] over the rate a hang-up is still handled, within a bound of its own', () => {
  const it = connection({ perSecond: 10, burst: 3 })
  for (const text of ['1', '2', '3']) it.receive(text)
  for (let i = 0; i < 30; i++) it.receive('"call.end"')
  expect(handled).toEqual(['1', '2', '3', ...Array<string>(20).fill('"call.end"')])
  expect(it.isOpen).toBe(true)
  it.receive('"call.end"')
  expect([handled.length, it.isOpen]).toEqual([23, false])
})

test('[WS7] a flood of pings, or of pongs that answer none, closes with 4429', () => {
  for (const [sort, send] of [
    ['pings', (it: Connection) => it.pinged()],
    ['pongs', (it: Connection) => it.pong(new Uint8Array(4))],
  ] as const) {
    wire = []
    const it = connection({ perSecond: 10, burst: 1 })
    for (let i = 0; i < 10; i++) send(it)
    expect([sort, wire]).toEqual([sort, []])
    send(it)
    expect([sort, wire]).toEqual([sort, ['close 4429']])
  }
  wire = []
  const unlimited = connection()
  for (let i = 0; i < 10_000; i++) unlimited.pinged()
  expect(wire).toEqual([])
})

test('[WS7] answers to our own pings do not count', () => {
  const it = connection({ perSecond: 1, burst: 1 })
  for (let i = 1; i <= 50; i++) {
    it.tick(i * 25_000)
    pong(it)
  }
  expect(wire).toEqual([])
})

test('[WS7] a mebibyte unsent is fine, a byte more closes with 4008', () => {
  const it = connection()
  unsent = 1024 * 1024
  it.send('1')
  flush(it)
  expect(wire).toEqual(['1'])
  unsent++
  it.send('2')
  flush(it)
  expect(wire).toEqual(['1', '2', 'close 4008'])
  it.send('3')
  flush(it)
  expect(wire).toHaveLength(3)
})

test('[WS7] what waits unsent without a message of ours, as answers to its pings, counts as well', () => {
  const it = connection()
  unsent = 1024 * 1024
  it.tick(now)
  expect(wire).toEqual([])
  unsent++
  it.tick(now)
  expect(wire).toEqual(['close 4008'])
})

test('[WS6] pings at the interval; no pong in time closes with 4408, a pong in time does not', () => {
  const it = connection()
  it.tick(24_999)
  expect(pings).toHaveLength(0)
  it.tick(25_000)
  expect(pings).toHaveLength(1)
  it.tick(34_999)
  expect(wire).toEqual([])
  pong(it)
  it.tick(49_999)
  it.tick(50_000)
  expect(pings).toHaveLength(2)
  it.tick(60_000)
  expect(wire).toEqual(['close 4408'])
})

test('[WS6] a pong answers its ping and those before it; one that answers none proves nothing', () => {
  const it = connection()
  it.tick(25_000)
  it.tick(50_000 - 16_000)
  for (const data of [new Uint8Array(0), new Uint8Array([0, 0, 0, 9]), new Uint8Array(5)]) it.pong(data)
  it.tick(35_000)
  expect(wire).toEqual(['close 4408'])
})

test('[WS6] the time in which the process was away is nobody’s silence', () => {
  const it = connection()
  it.tick(25_000)
  it.allow(30_000)
  it.tick(55_000)
  expect(wire).toEqual([])
  it.tick(65_000)
  expect(wire).toEqual(['close 4408'])
})

test('[PLACE5] call pushes are followed by a ping, at most one a second, and its pong proves what came before it', () => {
  const it = connection()
  const push = (seq: number) => {
    it.send(`push ${seq}`)
    it.pushed(seq)
    flush(it)
  }
  now = 1_000
  push(1)
  expect(pings).toHaveLength(1)
  push(2)
  push(3)
  expect(pings).toHaveLength(1)
  pong(it)
  expect(proven).toEqual([1])
  now = 2_000
  it.tick(now)
  expect(pings).toHaveLength(2)
  pong(it)
  pong(it)
  expect(proven).toEqual([1, 3])
  it.tick(9_000)
  expect(pings).toHaveLength(2)
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
  now = 1_000
  push(1, 32)
  expect(pings).toHaveLength(1)
  push(33, 64)
  expect(pings).toHaveLength(2)
  pong(it)
  expect(proven).toEqual([33])
})

test('[PLACE5] a ping proves what was written before it, and nothing that waits to be saved', () => {
  const it = connection()
  it.send('push')
  it.pushed(7)
  it.seal()
  it.tick(25_000)
  expect([wire, pings.length]).toEqual([[], 1])
  pong(it)
  expect(proven).toEqual([])
  it.send('another')
  it.pushed(8)
  it.flush(25_000)
  expect([wire, it.writtenSeq]).toEqual([['push'], 7])
  it.tick(27_000)
  pong(it)
  expect(proven).toEqual([7])
  it.seal()
  it.flush(27_000)
  expect([wire, it.writtenSeq]).toEqual([['push', 'another'], 8])
})

test('[EXT1] what was not saved is not told to an extended client before its socket is closed', () => {
  isSaved = false
  const it = connection()
  it.send('push')
  it.close(4400, 'malformed messages')
  expect(wire).toEqual(it.session.extended ? ['close 4400'] : ['push', 'close 4400'])
})

test('[PLACE5] a push after the ping is not proven by its pong', () => {
  const it = connection()
  it.tick(25_000)
  it.pushed(1)
  pong(it)
  expect(proven).toEqual([])
})

test('[PLACE4] a probe: a pong in time is a sign of life, and two who ask get the one answer', async () => {
  const it = connection()
  const asked = [it.probe(), it.probe()]
  expect(pings).toHaveLength(1)
  pong(it)
  expect(await Promise.all(asked)).toEqual([true, true])
  expect(wire).toEqual([])
  const again = it.probe()
  expect(pings).toHaveLength(2)
  pong(it)
  expect(await again).toBe(true)
})

test('[PLACE4] a probe: a pong to a ping of before the question proves nothing about now', async () => {
  const it = connection()
  it.tick(25_000)
  const asked = it.probe()
  pong(it, 0)
  expect(await asked).toBe(false)
  expect(wire).toEqual(['close 4408'])
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
  now = 1_000
  pushed.send('push')
  pushed.pushed(1)
  flush(pushed)
  pushed.tick(11_000)
  expect(await connection().probe()).toBe(false)
  expect(causes).toEqual(['4408 no pong to a keep-alive', '4408 no pong after a push', '4408 no answer to a probe'])
})

test('[LOG2] a close is told once, with its cause, and one of the client not at all', () => {
  const it = connection()
  it.close(1012, 'restart, jitter_ms=100', 'restart')
  it.close(4408, 'no pong')
  it.closed()
  connection().closed()
  expect(causes).toEqual(['1012 restart'])
})

test('[CLOSE] what waited goes out before the close; nothing after it', () => {
  const it = connection()
  it.send('last words')
  it.close(1012, 'restart')
  it.close(4408, 'no pong')
  it.send('more')
  flush(it)
  it.tick(100_000)
  expect(wire).toEqual(['last words', 'close 1012'])
  expect(pings).toHaveLength(0)
  expect(it.closedByService).toBe(true)
})

test('[CLOSE] parting: what came before is done and answered, what comes later is not read', async () => {
  const first = Promise.withResolvers<DispatchResult>()
  answer = (text) => (text === 'one' ? first.promise : { reply: `reply ${text}`, malformed: false, n: undefined })
  const busy = connection()
  busy.receive('one')
  busy.receive('two')
  busy.part(1012, 'restart')
  busy.receive('three')
  expect([wire, busy.isOpen]).toEqual([[], true])
  first.resolve({ reply: 'reply one', malformed: false, n: undefined })
  while (busy.isOpen) await Bun.sleep(0)
  expect(handled).toEqual(['one', 'two'])
  expect(wire).toEqual(['reply one', 'reply two', 'close 1012'])
  const idle = connection()
  idle.part(1012, 'restart')
  expect([wire.at(-1), idle.isOpen]).toEqual(['close 1012', false])
})

/** A connection whose process stood still; what was sent to it is read now. */
function afterStall(...texts: readonly string[]): Connection {
  const it = connection()
  it.doubt()
  for (const text of texts) it.receive(text)
  expect(handled).toEqual([])
  return it
}

test('[ORD1] after a stall what waits is read when its client answers a ping of now, once and in order', async () => {
  const it = connection()
  it.probe()
  it.doubt()
  it.receive('1')
  it.receive('2')
  // The client of before answered this one, perhaps long ago.
  pong(it)
  await Bun.sleep(0)
  expect([handled, pings.length]).toEqual([[], 2])
  it.receive('3')
  pong(it)
  await Bun.sleep(0)
  it.receive('4')
  expect(handled).toEqual(['1', '2', '3', '4'])
})

test('[ORD1] after a stall a client that is gone has hung up, and nothing else is done in its name', async () => {
  const it = afterStall('accept', 'end')
  it.closed()
  await Bun.sleep(0)
  expect(handled).toEqual(['last accept', 'last end'])
})

test('[ORD1] after a stall a socket whose session is elsewhere is closed, and what it sent is not read', async () => {
  hasMoved = true
  const it = afterStall('accept')
  await Bun.sleep(0)
  pong(it)
  await Bun.sleep(0)
  it.receive('end')
  expect(handled).toEqual([])
  expect(wire).toEqual(['close 4409'])
})

test('[ORD1] what waited behind a request when the process stood still waits for the same', async () => {
  const slow = Promise.withResolvers<DispatchResult>()
  answer = (text) => (text === 'slow' ? slow.promise : nothing)
  const it = connection()
  it.receive('slow')
  it.receive('accept')
  it.doubt()
  slow.resolve(nothing)
  await Bun.sleep(0)
  expect(handled).toEqual(['slow'])
  it.closed()
  await Bun.sleep(0)
  expect(handled).toEqual(['slow', 'last accept'])
})
