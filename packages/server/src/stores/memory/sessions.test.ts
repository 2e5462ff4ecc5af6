import { beforeEach, expect, test } from 'bun:test'
import type { Push } from '../../ports/push.ts'
import { stepsOf } from '../../ports/sessions.fixture.ts'
import type { Sink } from '../../ports/sessions.ts'
import { createMemorySessions, type MemorySessions } from './sessions.ts'

const participant = { product: 'shop', role: 'agent', userId: 'ann' }
const windowMs = 1_000

let sessions: MemorySessions
let handed: Map<string, string[]>
beforeEach(() => {
  sessions = createMemorySessions({ windowMs, resumeWindowMs: windowMs })
  handed = new Map()
})

const identity = (sessionId: string, deviceId: string | null = null) => ({
  sessionId,
  participant,
  deviceId,
  extended: false,
})

function sink(sessionId: string): Sink {
  const texts: string[] = []
  let writtenSeq = 0
  handed.set(sessionId, texts)
  return {
    send: (text) => void texts.push(text),
    pushed(seq) {
      writtenSeq = seq
    },
    get writtenSeq() {
      return writtenSeq
    },
    probe: async () => true,
    close() {},
    retire: async () => {},
    isBusy: false,
    isClosed: false,
  }
}

/** A session with a socket, ready to be sent to. */
function connect(sessionId: string, deviceId: string | null = null): string {
  sessions.open(identity(sessionId, deviceId), sink(sessionId), 0)
  sessions.ready(sessionId)
  return sessionId
}

function disconnect(sessionId: string, clean: boolean, at: number): void {
  const socket = sessions.sinkOf(sessionId)
  if (socket !== undefined) sessions.detach(sessionId, socket, clean, at)
}

const heard = (sessionId: string) => handed.get(sessionId) ?? []
const relay = (text: string, call = 'call'): Push => ({ kind: 'relay', call, version: undefined, text })
const event = (kind: Push['kind'], version: number, text: string = kind, call = 'call'): Push => ({
  kind,
  call,
  version,
  text,
})

test('[RES1] who comes while a socket of before waits for a sign of life is the newer one', async () => {
  const own = { ...identity('s', 'phone'), extended: true }
  const answer = Promise.withResolvers<boolean>()
  const closes: string[] = []
  const socket = (name: string): Sink => ({ ...sink(name), close: (code) => void closes.push(`${name} ${code}`) })
  const old = { ...socket('old'), probe: () => answer.promise }
  const { epoch } = sessions.open(own, old, 0)
  sessions.ready('s')
  for (const n of [1, 2, 3]) sessions.append('s', relay(String(n), 'c'))
  sessions.prove('s', 3)
  const [late, real] = [socket('late'), socket('real')]
  const asked = (async () => sessions.sinkToReplace('s', own, late, 2))()
  expect(await sessions.sinkToReplace('s', own, real, 3)).toBe(old)
  expect(sessions.resume({ sessionId: 's', epoch, seq: 3 }, own, real, 0, old)).toBeDefined()
  answer.resolve(false)
  expect(await asked.catch(String)).toContain('a newer socket')
  // A client that found the previous socket, and waited for it, comes after the client that has the session by now.
  expect(() => sessions.resume({ sessionId: 's', epoch, seq: 2 }, own, late, 0, old)).toThrow('a newer socket')
  expect(closes).toEqual(['late 4409', 'late 4409'])
  expect(sessions.sinkOf('s')).toBe(real)
})

test('[ORD3] pushes wait until the session is ready, then come in order', () => {
  sessions.open(identity('a'), sink('a'), 0)
  expect(sessions.append('a', relay('1'))).toBe('kept')
  expect(sessions.append('a', event('ringing', 1, '2', 'other'))).toBe('kept')
  expect(heard('a')).toEqual([])
  sessions.ready('a')
  expect(heard('a')).toEqual(['1', '2'])
  expect(sessions.append('a', relay('3'))).toBe('sent')
  sessions.ready('a')
  expect(heard('a')).toEqual(['1', '2', '3'])
})

test('append never creates a session', () => {
  expect(sessions.append('nobody', relay('1'))).toBe('gone')
  expect(sessions.liveOf(participant)).toEqual([])
})

test('[ORD3] a version that is not newer than the last one is dropped, per call', () => {
  connect('a')
  expect(sessions.append('a', event('ringing', 3))).toBe('sent')
  expect(sessions.append('a', event('ringing', 3))).toBe('dropped')
  expect(sessions.append('a', event('state', 2))).toBe('dropped')
  expect(sessions.append('a', event('state', 1, 'x', 'other'))).toBe('sent')
  expect(sessions.append('a', event('state', 4))).toBe('sent')
})

test('[PLACE1] finals of a call that rang go to every session where it rang, but for the excepted ones', () => {
  for (const it of ['a', 'b', 'c']) connect(it)
  connect('late')
  for (const it of ['a', 'b', 'c']) sessions.append(it, event('ringing', 1))
  disconnect('c', false, 0)
  sessions.appendRung(participant, event('final', 2), ['a'])
  expect(heard('a')).toEqual(['ringing'])
  expect(heard('b')).toEqual(['ringing', 'final'])
  expect(heard('late')).toEqual([])
  connect('d')
  sessions.collectFinals(identity('d'))
  expect(heard('d')).toEqual(['final'])
  // Told once: it does not ring there any more.
  sessions.appendRung(participant, event('final', 3), [])
  expect(heard('a')).toEqual(['ringing'])
  expect(heard('b')).toEqual(['ringing', 'final'])
})

test('[PLACE5] what is proven does not move to the successor, what is not does, in order', () => {
  connect('a')
  stepsOf(sessions).hold('a', 'call', true)
  for (let n = 1; n <= 10; n++) sessions.append('a', relay(String(n)))
  sessions.prove('a', 6)
  disconnect('a', false, 0)
  expect(sessions.append('a', relay('11'))).toBe('kept')
  connect('b')
  stepsOf(sessions).hold('b', 'call', false)
  sessions.move('call', 'a', 'b', true)
  stepsOf(sessions).release('a', 'call')
  expect(heard('b')).toEqual(['7', '8', '9', '10', '11'])
})

test('[PLACE2] only what belongs to the call moves', () => {
  connect('a')
  for (const call of ['one', 'two']) stepsOf(sessions).hold('a', call, true)
  sessions.append('a', relay('1', 'one'))
  sessions.append('a', relay('2', 'two'))
  sessions.append('a', relay('3', 'one'))
  disconnect('a', false, 0)
  connect('b')
  sessions.move('one', 'a', 'b', true)
  expect(heard('b')).toEqual(['1', '3'])
  sessions.move('two', 'a', 'b', true)
  expect(heard('b')).toEqual(['1', '3', '2'])
  sessions.move('two', 'a', 'b', true)
  sessions.move('two', 'b', 'b', true)
  sessions.move('two', 'nobody', 'b', true)
  expect(heard('b')).toHaveLength(3)
})

test('[PLACE2] a provisional holder keeps what it has proven, for whoever names the call', () => {
  connect('a')
  stepsOf(sessions).hold('a', 'call', false)
  for (let n = 1; n <= 4; n++) sessions.append('a', relay(String(n)))
  sessions.prove('a', 4)
  connect('b')
  stepsOf(sessions).hold('b', 'call', true)
  sessions.move('call', 'a', 'b', true)
  expect(heard('b')).toEqual(['1', '2', '3', '4'])
})

test('[PLACE5] a place that is settled, or given up, forgets what was proven', () => {
  for (const end of ['settle', 'release'] as const) {
    const [holder, heir] = [`a-${end}`, `b-${end}`]
    connect(holder)
    stepsOf(sessions).hold(holder, end, false)
    sessions.append(holder, relay('1', end))
    sessions.append(holder, relay('2', end))
    sessions.prove(holder, 1)
    if (end === 'settle') stepsOf(sessions).hold(holder, end, true)
    else stepsOf(sessions).release(holder, end)
    connect(heir)
    sessions.move(end, holder, heir, true)
    expect(heard(heir)).toEqual(['2'])
  }
})

test('[PLACE5] after a clean close what was sent is not told again; what comes then is', () => {
  connect('a')
  stepsOf(sessions).hold('a', 'call', true)
  sessions.append('a', event('ringing', 1, 'ringing', 'other'))
  sessions.append('a', relay('1'))
  sessions.append('a', event('state', 2))
  disconnect('a', true, 0)
  expect(sessions.append('a', relay('2'))).toBe('kept')
  expect(sessions.append('a', event('state', 3, 'newer'))).toBe('kept')
  expect(sessions.append('a', event('final', 4))).toBe('kept')
  sessions.appendRung(participant, event('final', 2, 'over', 'other'), [])
  connect('b')
  sessions.move('call', 'a', 'b', true)
  sessions.collectFinals(identity('b'))
  expect(heard('b')).toEqual(['2', 'newer', 'final', 'over'])
})

test('[REL2] a dead session holds 256 relays: then full, and a call event still fits', () => {
  connect('a')
  stepsOf(sessions).hold('a', 'call', true)
  disconnect('a', false, 0)
  for (let n = 0; n < 256; n++) expect(sessions.append('a', relay(String(n)))).toBe('kept')
  expect(sessions.append('a', relay('256'))).toBe('full')
  expect(sessions.append('a', event('final', 9))).toBe('kept')
})

test('[WS4] finals are collected by the same device alone, once, and never for a place of one’s own', () => {
  for (const device of ['phone', null]) {
    const it = connect(`old-${device}`, device)
    sessions.append(it, event('ringing', 1))
    disconnect(it, false, 0)
  }
  sessions.appendRung(participant, event('final', 2), [])
  const meet = (sessionId: string, device: string | null, place?: string) => {
    connect(sessionId, device)
    if (place !== undefined) stepsOf(sessions).hold(sessionId, place, true)
    sessions.collectFinals(identity(sessionId, device))
    return heard(sessionId)
  }
  expect(meet('laptop', 'laptop')).toEqual([])
  expect(meet('holder', 'phone', 'call')).toEqual([])
  expect(meet('phone', 'phone')).toEqual(['final'])
  expect(meet('phone-2', 'phone')).toEqual([])
  expect(meet('plain', null)).toEqual(['final'])
})

test('[WS4] a session from before a restart stands for any number of sockets: everybody hears its finals', () => {
  stepsOf(sessions).openDetached({ ...identity('before'), deviceId: undefined }, 0)
  stepsOf(sessions).ring('before', 'call')
  sessions.appendRung(participant, event('final', 2), [])
  for (const device of ['phone', 'laptop', null]) {
    const it = connect(`back-${device}`, device)
    sessions.collectFinals(identity(it, device))
    expect(heard(it)).toEqual(['final'])
  }
})

test('[WS4] two dead sockets of one call: the first who comes back hears it once, the second as well', () => {
  for (const it of ['a', 'b']) {
    connect(it)
    sessions.append(it, event('ringing', 1))
    disconnect(it, false, 0)
  }
  sessions.appendRung(participant, event('final', 2), [])
  for (const [it, expected] of [
    ['c', ['final']],
    ['d', ['final']],
    ['e', []],
  ] as const) {
    connect(it)
    sessions.collectFinals(identity(it))
    expect(heard(it)).toEqual([...expected])
  }
})

test('[PLACE4] who owes its device a final notice: sessions with a socket that have not proven one', () => {
  connect('a', 'phone')
  connect('b', 'laptop')
  connect('c', 'phone')
  for (const it of ['a', 'b']) sessions.append(it, event('final', 1))
  expect(sessions.owing(identity('new', 'phone'))).toEqual(['a'])
  expect(sessions.owing(identity('a', 'phone'))).toEqual([])
  sessions.prove('a', 1)
  expect(sessions.owing(identity('new', 'phone'))).toEqual([])
  expect(sessions.owing(identity('new', 'laptop'))).toEqual(['b'])
  disconnect('b', false, 0)
  expect(sessions.owing(identity('new', 'laptop'))).toEqual([])
})

test('[WS4] finals are told for the window and not longer, also where they passed from one dead session to the next', () => {
  connect('a')
  sessions.append('a', event('ringing', 1))
  disconnect('a', false, 5_000)
  sessions.appendRung(participant, event('final', 2), [])
  sessions.sweep(5_000 + windowMs / 2)
  connect('b')
  sessions.collectFinals(identity('b'))
  expect(heard('b')).toEqual(['final'])
  disconnect('b', false, 5_000 + windowMs / 2)
  sessions.sweep(5_000 + windowMs - 1)
  connect('c')
  sessions.collectFinals(identity('c'))
  expect(heard('c')).toEqual(['final'])
  disconnect('c', false, 5_000 + windowMs - 1)
  sessions.sweep(5_000 + windowMs)
  connect('d')
  sessions.collectFinals(identity('d'))
  expect(heard('d')).toEqual([])
})

test('[WS4] the window counts from the end of the call: a place is kept however long it waits', () => {
  connect('a')
  stepsOf(sessions).hold('a', 'call', true)
  sessions.append('a', relay('1'))
  disconnect('a', false, 0)
  sessions.sweep(100 * windowMs)
  expect(sessions.append('a', event('final', 2))).toBe('kept')
  stepsOf(sessions).release('a', 'call')
  sessions.sweep(100 * windowMs + windowMs - 1)
  connect('b')
  sessions.collectFinals(identity('b'))
  // Of a call that is over only its end is sent.
  expect(heard('b')).toEqual(['final'])
})

test('what nothing waits in is forgotten at once, and what nothing can come to any more in the end', () => {
  connect('idle')
  sessions.append('idle', event('ringing', 1))
  sessions.appendRung(participant, event('final', 2), [])
  sessions.prove('idle', 2)
  disconnect('idle', false, 0)
  expect(sessions.append('idle', relay('1'))).toBe('gone')

  connect('holder')
  stepsOf(sessions).hold('holder', 'call', true)
  sessions.append('holder', relay('1'))
  disconnect('holder', false, 0)
  expect(sessions.append('holder', relay('2'))).toBe('kept')
  stepsOf(sessions).release('holder', 'call')
  expect(sessions.append('holder', relay('3'))).toBe('gone')
})

test('at most twenty dead sessions without a place are remembered for a participant', () => {
  connect('holder')
  stepsOf(sessions).hold('holder', 'place', true)
  disconnect('holder', false, 0)
  for (let n = 0; n < 50; n++) {
    connect(`s${n}`)
    sessions.append(`s${n}`, event('ringing', 1))
    disconnect(`s${n}`, false, 0)
  }
  const kept = Array.from({ length: 50 }, (_, n) => n).filter((n) => sessions.append(`s${n}`, relay('x')) !== 'gone')
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => 50 - kept.length + i))
  expect(kept.length).toBeWithin(19, 21)
  expect(sessions.append('holder', relay('x', 'place'))).toBe('kept')
})

test('[RES2] and no more of those whose resume was refused while they had a socket', () => {
  const extended = (sessionId: string) => ({ ...identity(sessionId), extended: true })
  for (let n = 0; n < 50; n++) {
    const next = sink(`s${n}`)
    const unprovable = { sessionId: `s${n - 1}`, epoch: 'another', seq: 0, replied: 0 }
    expect(sessions.resume(unprovable, extended(`s${n}`), next, 0)).toBeUndefined()
    sessions.open(extended(`s${n}`), next, 0)
    sessions.ready(`s${n}`)
    sessions.append(`s${n}`, event('ringing', 1))
  }
  const kept = Array.from({ length: 50 }, (_, n) => n).filter((n) => sessions.append(`s${n}`, relay('x')) !== 'gone')
  // The last has its socket.
  expect(kept).toEqual(Array.from({ length: 21 }, (_, i) => 29 + i))
})

test('[WS5] [WS7] in a call: with a place, or ringing; only a place counts as held', () => {
  connect('a')
  expect([sessions.inCall('a'), sessions.holdsAny('a')]).toEqual([false, false])
  sessions.append('a', event('ringing', 1))
  expect([sessions.inCall('a'), sessions.holdsAny('a')]).toEqual([true, false])
  sessions.appendRung(participant, event('final', 2), ['a'])
  expect(sessions.inCall('a')).toBe(false)
  stepsOf(sessions).hold('a', 'next', true)
  expect([sessions.inCall('a'), sessions.holdsAny('a')]).toEqual([true, true])
  stepsOf(sessions).release('a', 'next')
  expect([sessions.inCall('a'), sessions.holdsAny('a')]).toEqual([false, false])
})

test('[ID1] participants are told apart by product, role and user_id', () => {
  connect('a')
  for (const other of [
    { ...participant, product: 'other' },
    { ...participant, role: 'customer' },
    { ...participant, userId: 'bob' },
  ]) {
    expect(sessions.liveOf(other)).toEqual([])
  }
  expect(sessions.liveOf(participant)).toEqual(['a'])
})

test('[WS4] what stands for those that rang before a restart is for every device but the one that answered', () => {
  stepsOf(sessions).openDetached({ ...identity('rung'), deviceId: undefined, isNotOf: 'phone' }, 0)
  stepsOf(sessions).ring('rung', 'call')
  sessions.appendRung(participant, event('stop', 2), [])
  for (const device of ['phone', 'desk', null]) {
    const id = connect(`on ${device}`, device)
    sessions.collectFinals(identity(id, device))
  }
  expect(['phone', 'desk', null].map((device) => heard(`on ${device}`))).toEqual([[], ['stop'], ['stop']])
})

test('[WS4] who came back after a restart before the end was told hears it: each of them once', () => {
  const before = { sessionId: 'before', participant, deviceId: undefined, isNotOf: 'phone', extended: false }
  stepsOf(sessions).openDetached(before, 0)
  stepsOf(sessions).ring('before', 'call')
  for (const [it, device] of [
    ['tab', null],
    ['desk', 'desk'],
    ['phone', 'phone'],
  ] as const) {
    connect(it, device)
    sessions.collectFinals(identity(it, device))
  }
  sessions.appendRung(participant, event('final', 2), [])
  connect('late')
  sessions.collectFinals(identity('late'))
  expect(['tab', 'desk', 'phone', 'late'].map(heard)).toEqual([['final'], ['final'], [], ['final']])
})

test('[WS4] [RES1] a late end waits for who may come back to its session, and is none of who was there before', () => {
  for (const extended of [true, false]) {
    const device = `of ${extended}`
    const [dead, tab] = [`dead ${extended}`, `tab ${extended}`]
    const openTab = (at: number) => sessions.open(identity(tab, device), sink(tab), at)
    sessions.open({ ...identity(dead, device), extended }, sink(dead), 0)
    sessions.append(dead, event('ringing', 1))
    // It is there when the other one dies, and knows nothing of the call.
    if (!extended) openTab(0)
    disconnect(dead, false, 5)
    if (extended) openTab(10)
    sessions.ready(tab)
    sessions.collectFinals(identity(tab, device))
    sessions.appendRung(participant, event('final', 2), [])
    expect(heard(tab)).toEqual([])
  }
})

test('[WS4] what a dead socket left is still for who comes next, where the one that is back has heard of it itself', () => {
  connect('dead')
  sessions.append('dead', event('ringing', 1))
  disconnect('dead', false, 0)
  connect('back')
  sessions.append('back', event('ringing', 1))
  sessions.collectFinals(identity('back'))
  sessions.appendRung(participant, event('final', 2), [])
  connect('next')
  sessions.collectFinals(identity('next'))
  expect(['back', 'next'].map(heard)).toEqual([['ringing', 'final'], ['final']])
})
