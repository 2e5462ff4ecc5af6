import { beforeEach, expect, test } from 'bun:test'
import type { Push } from '../ports/push.ts'
import { openSink, stepsOf } from '../ports/sessions.fixture.ts'
import { createSessionTable, type SessionTable } from './table.ts'

const participant = { product: 'shop', role: 'agent', userId: 'ann' }
const options = { windowMs: 1_000, resumeWindowMs: 1_000, newEpoch: () => 'epoch' }

let table: SessionTable
let handed: string[]
/** The pushes among them that must be saved before they are sent. */
let savedFirst: string[]
beforeEach(() => {
  table = createSessionTable({ ...options, isShared: true })
  handed = []
  savedFirst = []
})

const sink = () =>
  openSink({
    send: (text) => void handed.push(JSON.parse(text).n),
    pushed(_seq, _rings, isEvent) {
      if (isEvent) savedFirst.push(handed.at(-1) ?? '')
    },
  })

function connect(sessionId: string, extended = true): string {
  table.open({ sessionId, participant, deviceId: 'phone', extended }, sink(), 0)
  table.ready(sessionId)
  return sessionId
}

const relay = (text: string, n?: number): Push => ({
  kind: 'relay',
  call: 'call',
  version: undefined,
  text: JSON.stringify({ n: text }),
  ...(n !== undefined && { source: { sessionId: 'peer', n } }),
})
const final: Push = { kind: 'final', call: 'call', version: 5, text: '{"n":"end"}' }

/** The call was answered: what the session's client has sent until then. */
const keptOf = (id: string) => table.apply(id, { call: 'call', version: 2, place: 'settled', isAnswered: true }) ?? []

test('[ORD2] nothing of a call comes after its end, whoever is late to send it', () => {
  for (const extended of [true, false]) {
    const id = connect(String(extended), extended)
    stepsOf(table).hold(id, 'call', true)
    table.append(id, relay('before'))
    table.append(id, final)
    stepsOf(table).release(id, 'call')
    expect(table.append(id, relay('after'))).toBe('dropped')
  }
  expect(handed).toEqual(['before', 'end', 'before', 'end'])
})

for (const extended of [true, false]) {
  test(`[PLACE2] [EXT4] of two calls with places that pass on one after the other each brings its relays, extended: ${extended}`, () => {
    const from = connect('from', extended)
    const of = (call: string, n: number): Push => ({ ...relay(`${call} ${n}`, n), call })
    for (const call of ['first', 'second']) stepsOf(table).hold(from, call, true, false, 2)
    for (const push of [of('first', 1), of('second', 2), of('first', 3), of('second', 4)]) table.append(from, push)
    table.detach(from, table.sinkOf(from)!, false, 0)
    connect('to', extended)
    handed = []
    for (const call of ['first', 'second']) table.move(call, from, 'to', true, 3)
    expect(handed).toEqual(['first 1', 'first 3', 'second 2', 'second 4'])
    // Their sender asks again, because its answer was lost.
    for (const push of [of('first', 3), of('second', 2), of('second', 4)]) expect(table.append('to', push)).toBe('kept')
    expect(handed.length).toBe(4)
  })
}

test('[EXT3] what a step of the call brings again until it is saved is not told before; what a peer here sends may be', () => {
  const [a, b] = [connect('a'), connect('b')]
  stepsOf(table).hold(a, 'call', true, true, 2)
  table.append(a, relay('at the gate'))
  table.keep(b, relay('kept'))
  stepsOf(table).openGate(a, 'call', keptOf(b))
  table.append(a, relay('then'))
  expect(handed).toEqual(['kept', 'at the gate', 'then'])
  expect(savedFirst).toEqual(['kept', 'at the gate'])
  // Nor what goes along with a place.
  table.detach(a, table.sinkOf(a)!, false, 1)
  table.append(a, relay('waits'))
  table.move('call', a, connect('c'), true, 3)
  expect(handed.slice(3)).toContain('waits')
  expect(savedFirst.slice(2)).toEqual(handed.slice(3))
})

test('[EXT4] [ORD2] a relay that is sent again is taken once; one that was refused before a later one stays refused', () => {
  const id = connect('a')
  expect(table.append(id, { ...relay('10', 10), forPlace: true })).toBe('elsewhere')
  stepsOf(table).hold(id, 'call', true)
  const results = [11, 10, 10, 11, 12].map((n) => table.append(id, { ...relay(String(n), n), forPlace: true }))
  expect(results).toEqual(['sent', 'late', 'late', 'kept', 'sent'])
  expect(handed).toEqual(['11', '12'])
  // So it is for the next holder of its place.
  connect('b')
  table.move('call', id, 'b', true)
  expect(table.append('b', { ...relay('10', 10), forPlace: true })).toBe('late')
})

test('[REL2] what was kept goes in front of what came after the accept, whatever its number', () => {
  const id = connect('a')
  stepsOf(table).hold(id, 'call', true, true)
  expect(table.append(id, { ...relay('3', 3), forPlace: true })).toBe('kept')
  stepsOf(table).openGate(id, 'call', [relay('1', 1), relay('2', 2)])
  expect(handed).toEqual(['1', '2', '3'])
})

test('[EXT4] a relay that found no room is taken when it comes again', () => {
  const id = connect('a', false)
  stepsOf(table).hold(id, 'call', true)
  table.detach(id, table.sinkOf(id)!, false, 0)
  for (let n = 1; n <= 256; n++) expect(table.append(id, relay(String(n), n))).toBe('kept')
  expect(table.append(id, relay('257', 257))).toBe('full')
  connect('b', false)
  table.move('call', id, 'b', true)
  expect(table.append('b', relay('257', 257))).toBe('sent')
  expect(table.append('b', relay('256', 256))).toBe('kept')
  expect(handed.slice(-2)).toEqual(['256', '257'])
})

test('[EXT4] what waits for the accept is kept once', () => {
  const id = connect('a')
  for (const n of [2, 1, 2]) expect(table.keep(id, relay(String(n), n))).toBe('kept')
  expect(keptOf(id).map(({ source }) => source?.n)).toEqual([2, 1])
})

test('[REL2] what the one that answers has sent is kept, also where the others are told first', () => {
  const id = connect('a')
  table.append(id, { kind: 'ringing', call: 'call', version: 1, text: '{"n":"ring"}' })
  table.keep(id, relay('1', 1))
  table.appendRung(participant, { kind: 'stop', call: 'call', version: 2, text: '{"n":"stop"}' }, [id])
  expect(keptOf(id).map(({ source }) => source?.n)).toEqual([1])
})

test('[PLACE2] what is told late of an older version gives nobody a place', () => {
  const [from, to] = [connect('from'), connect('to')]
  stepsOf(table).hold(from, 'call', true, false, 2)
  expect(table.move('call', from, to, true, 4)).toBe(true)
  stepsOf(table).hold(from, 'call', true, false, 3)
  expect([table.holdsAny(from), table.holdsAny(to)]).toEqual([false, true])
  stepsOf(table).hold(from, 'call', true, false, 5)
  expect(table.holdsAny(from)).toBe(true)
})

test('[RES1] [RES2] whose place another session takes resumes exactly if it had a socket then, and not if it had none', () => {
  const lose = (id: string) => table.detach(id, table.sinkOf(id)!, false, 0)
  /** A session that has not acknowledged something when another session takes its place; `isThere`: with a socket. */
  const comeBack = (id: string, isThere: boolean) => {
    connect(id)
    const { identity } = table.get(id)!
    stepsOf(table).hold(id, 'call', true, false, 2)
    table.append(id, relay(id))
    if (!isThere) lose(id)
    table.move('call', id, connect(`taker of ${id}`), true, 3)
    if (isThere) lose(id)
    const open = table.resume({ sessionId: id, epoch: 'epoch', seq: 0 }, identity, sink(), 1)
    return (
      open &&
      table
        .get(id)!
        .log!.all()
        .map(({ push }) => push.text)
    )
  }
  expect(comeBack('there', true)).toEqual([relay('there').text])
  expect(comeBack('away', false)).toBeUndefined()
})

test('[PLACE2] what goes along to another process is given again, the same, until that one has it', () => {
  const id = connect('a')
  stepsOf(table).hold(id, 'call', true, false, 2)
  table.append(id, relay('1', 1))
  table.append(id, relay('2', 2))
  const parcel = table.give(id, 'call', 3)
  expect(parcel?.entries.map(({ push }) => push.source?.n)).toEqual([1, 2])
  expect(table.holdsAny(id)).toBe(false)
  expect(table.give(id, 'call', 3)).toEqual(parcel)
  const other = createSessionTable({ ...options, isShared: true })
  other.open({ sessionId: 'b', participant, deviceId: 'phone', extended: true }, sink(), 0)
  other.ready('b')
  handed = []
  other.accept('call', 'b', JSON.parse(JSON.stringify(parcel)), { settled: true, version: 3, gate: false })
  expect(handed).toEqual(['1', '2'])
  expect(other.append('b', relay('2', 2))).toBe('kept')
  table.gave(id, 'call')
  expect(table.give(id, 'call', 3)?.entries).toEqual([])
})

test('[PLACE2] what comes to the last place at once, and from place to place, is taken once there', () => {
  const id = connect('a', false)
  stepsOf(table).hold(id, 'call', true, false, 2)
  for (const text of ['1', '2']) table.append(id, relay(text))
  const parcel = table.give(id, 'call', 4)
  if (parcel === undefined) throw new Error('unreachable')
  // Two tell of it: the one that the place went from a to b, the other, which is late, that it is at c by now.
  for (const each of ['b', 'c']) connect(each, false)
  for (const order of [
    ['c', 'b'],
    ['b', 'c'],
  ]) {
    const other = createSessionTable({ ...options, isShared: true })
    for (const each of ['b', 'c']) {
      other.open({ sessionId: each, participant, deviceId: undefined, extended: false }, sink(), 0)
      other.ready(each)
    }
    const through = () => {
      other.accept('call', 'b', parcel, { settled: true, version: 4, gate: false })
      other.append('b', relay('3'))
      const next = JSON.parse(JSON.stringify(other.give('b', 'call', 6)))
      handed = []
      other.accept('call', 'c', next, { settled: true, version: 6, gate: false })
    }
    const atOnce = () => void other.accept('call', 'c', parcel, { settled: true, version: 4, gate: false })
    handed = []
    if (order[0] === 'c') {
      atOnce()
      const first = [...handed]
      through()
      expect([...first, ...handed]).toEqual(['1', '2', '3'])
    } else {
      through()
      atOnce()
      expect(handed).toEqual(['1', '2', '3'])
    }
  }
})

test('[PLACE2] what went along is taken once, also of base senders, when nobody knows whether it came', () => {
  const id = connect('a', false)
  stepsOf(table).hold(id, 'call', true, false, 2)
  for (const text of ['1', '2']) table.append(id, relay(text))
  const parcel = JSON.parse(JSON.stringify(table.give(id, 'call', 3)))
  const other = createSessionTable({ ...options, isShared: true })
  other.open({ sessionId: 'b', participant, deviceId: 'phone', extended: true }, sink(), 0)
  other.ready('b')
  handed = []
  const how = { settled: true, version: 3, gate: false }
  expect(other.accept('call', 'b', parcel, how)).toBe(true)
  other.append('b', relay('3'))
  // Told late, by another one, of a later version.
  for (const version of [3, 4]) expect(other.accept('call', 'b', parcel, { ...how, version })).toBe(true)
  expect(handed).toEqual(['1', '2', '3'])
  // It came back and goes again.
  table.gave(id, 'call')
  stepsOf(table).hold(id, 'call', true, false, 5)
  table.append(id, relay('4'))
  handed = []
  other.accept('call', 'b', JSON.parse(JSON.stringify(table.give(id, 'call', 6))), { ...how, version: 6 })
  expect(handed).toEqual(['4'])
})

test('[PLACE2] who is told late that a place passed on takes nothing from what comes by way of another session', () => {
  const [a, b, c] = [connect('a'), connect('b'), connect('c')]
  stepsOf(table).hold(a, 'call', true, false, 2)
  table.append(a, { kind: 'state', call: 'call', version: 2, text: '{"n":"accepted"}' })
  const how = { settled: true, gate: false }
  const first = table.give(a, 'call', 5)!
  table.accept('call', b, first, { ...how, version: 5 })
  table.gave(a, 'call')
  // By another one, to where the place is now.
  table.accept('call', c, JSON.parse(JSON.stringify(table.give(a, 'call', 5))), { ...how, version: 8 })
  handed = []
  table.accept('call', c, table.give(b, 'call', 8)!, { ...how, version: 8 })
  expect(handed).toEqual(['accepted'])
})

for (const kind of ['stop', 'final'] as const) {
  for (const extended of [true, false]) {
    test(`[WS4] a device that has heard of an end itself (${kind}) is not told what a session of before has, ${extended ? 'extended and over' : 'base'}`, () => {
      const ring: Push = { kind: 'ringing', call: 'call', version: 1, text: '{"n":"ring"}' }
      const end: Push = { kind, call: 'call', version: 2, text: '{"n":"end"}' }
      const comeBack = (id: string) => {
        connect(id, extended)
        table.collectFinals({ sessionId: id, participant, deviceId: 'phone', extended })
      }
      connect('a', extended)
      table.append('a', ring)
      table.detach('a', table.sinkOf('a')!, false, 0)
      const request = { sessionId: 'a', epoch: 'another', seq: 0 }
      table.resume(request, { sessionId: 'a', participant, deviceId: 'phone', extended }, sink(), 0)
      comeBack('b')
      table.append('b', ring)
      // It answered itself, or got the push.
      table.appendRung(participant, end, kind === 'stop' ? ['b'] : [])
      expect(handed).toEqual(kind === 'stop' ? ['ring', 'ring'] : ['ring', 'ring', 'end'])
      table.prove('b', handed.length - 1)
      table.detach('b', table.sinkOf('b')!, true, 0)
      handed = []
      comeBack('c')
      expect(handed).toEqual([])
    })
  }
}

test('[WS4] a new session hears that its device declined, from a session that its client never saw', () => {
  const ring: Push = { kind: 'ringing', call: 'call', version: 2, text: '{"n":"ring"}' }
  const declined: Push = { kind: 'stop', call: 'call', version: 3, text: '{"n":"declined"}' }
  connect('never seen')
  table.append('never seen', ring)
  table.detach('never seen', table.sinkOf('never seen')!, false, 0)
  connect('declines')
  table.append('declines', ring)
  table.appendRung(participant, declined, ['declines'])
  expect(handed).toEqual(['ring', 'ring'])
  table.detach('declines', table.sinkOf('declines')!, false, 0)
  connect('new')
  table.collectFinals({ sessionId: 'new', participant, deviceId: 'phone', extended: true })
  expect(handed).toEqual(['ring', 'ring', 'declined'])
})

test('[WS4] a device that answered is not told by a session that nobody came back to that another one did, whoever remembers', () => {
  const answered: Push = { kind: 'stop', call: 'call', version: 2, text: '{"n":"elsewhere"}', device: 'phone' }
  const identities = ['phone', 'desk'].map((deviceId) => ({
    sessionId: `${deviceId} 1`,
    participant,
    deviceId,
    extended: true,
  }))
  for (const identity of identities) {
    table.open(identity, sink(), 0)
    table.append(identity.sessionId, { kind: 'ringing', call: 'call', version: 1, text: '{"n":"ring"}' })
    table.detach(identity.sessionId, table.sinkOf(identity.sessionId)!, false, 0)
  }
  connect('answers')
  stepsOf(table).ring('answers', 'call')
  table.appendRung(participant, answered, ['answers'])
  table.forget('answers')
  const heard = identities.map((identity) => {
    handed = []
    const next = { ...identity, sessionId: `${identity.deviceId} 2` }
    table.open(next, sink(), 1)
    table.collectFinals(next)
    table.ready(next.sessionId)
    return handed
  })
  expect(heard).toEqual([[], ['elsewhere']])
})

test('[PLACE2] [ORD3] what who had the place was told, and has, is no news for who takes it, however late it is told again', () => {
  const [a, b] = [connect('a'), connect('b')]
  const state = (version: number): Push => ({ kind: 'state', call: 'call', version, text: `{"n":"state ${version}"}` })
  const peer = (version: number): Push => ({ kind: 'peer', call: 'call', version, text: `{"n":"peer ${version}"}` })
  stepsOf(table).hold(a, 'call', true, false, 2)
  table.append(a, state(2))
  table.prove(a, 1)
  table.append(a, peer(4))
  table.append(a, peer(6))
  handed = []
  table.move('call', a, b, true, 7)
  for (const push of [state(2), peer(4), peer(6)]) table.append(b, push)
  expect(handed).toEqual(['peer 4', 'peer 6'])
  for (const push of [state(8), peer(9)]) table.append(b, push)
  expect(handed.slice(2)).toEqual(['state 8', 'peer 9'])
})

test('[PLACE2] [ORD3] what was told of the call before a session had the place does not follow what came after, told late', () => {
  const to = connect('to')
  const of = (kind: 'notice' | 'peer', version: number): Push => {
    return { kind, call: 'call', version, text: `{"n":"${kind} ${version}"}` }
  }
  stepsOf(table).openDetached({ sessionId: 'left', participant, deviceId: 'desk', extended: false }, 0)
  stepsOf(table).hold('left', 'call', true, false, 2)
  table.move('call', 'left', to, true, 6)
  table.append(to, of('peer', 7))
  for (const push of [of('notice', 3), of('peer', 4), of('peer', 6), of('notice', 8)]) table.append(to, push)
  expect(handed).toEqual(['peer 7', 'notice 8'])
})

test('[PLACE2] what a device that has left is told of the end does not go along with the place, however often that is told', () => {
  const to = connect('to')
  stepsOf(table).openDetached({ sessionId: 'left', participant, deviceId: 'desk', extended: false }, 0)
  table.append('left', { kind: 'stop', call: 'call', version: 5, text: '{"n":"answered elsewhere"}' })
  table.move('call', 'left', to, true, 5)
  expect(handed).toEqual([])
  const back = { sessionId: 'back', participant, deviceId: 'desk', extended: false }
  table.open(back, sink(), 1)
  table.collectFinals(back)
  table.ready('back')
  expect(handed).toEqual(['answered elsewhere'])
})

test('[RES1] of too many sessions without a socket the one that was lost first is forgotten, not the one that came first', () => {
  const ids = Array.from({ length: 21 }, (_, i) => connect(`s${i}`))
  const lose = (id: string) => {
    const seen = table.sinkOf(id)
    if (seen !== undefined) table.detach(id, seen, false, 0)
  }
  const [first = '', ...others] = ids
  lose(first)
  for (const id of others.slice(0, 10)) lose(id)
  const { identity } = table.get(first)!
  table.resume({ sessionId: first, epoch: 'epoch', seq: 0 }, identity, sink(), 0)
  for (const id of [first, ...others]) lose(id)
  expect(ids.filter((id) => table.get(id) === undefined)).toEqual([others[0]!])
})

test('[WS4] who comes back hears no end again that its session was told of, also if there were 200', () => {
  const id = (n: number) => `call ${n}`
  const ends = Array.from({ length: 200 }, (_, n): Push => ({ ...final, call: id(n), text: `{"n":"${id(n)}"}` }))
  const tell = (push: Push, at: number) => {
    const identity = { sessionId: 'before', participant, deviceId: undefined, extended: false }
    table.apply('before', { call: push.call, version: 5, pushes: [push], isOver: true, orOpen: { identity, at } })
  }
  for (const push of ends) tell(push, 90_000)
  const here = { sessionId: 'here', participant, deviceId: 'phone', extended: true }
  table.open(here, sink(), 100_000)
  table.ready('here')
  table.collectFinals(here)
  expect(handed).toEqual(ends.map(({ call }) => call))
  const epoch = table.get('here')!.epoch
  table.detach('here', table.sinkOf('here')!, false, 110_000)
  handed = []
  expect(table.resume({ sessionId: 'here', epoch, seq: 200 }, here, sink(), 111_000)).toBeDefined()
  table.ready('here')
  table.collectFinals(here)
  expect(handed).toEqual([])
})

test('[WS4] a session that is made to say how a call ended, and that nobody needs any more, is gone', () => {
  const here = { sessionId: 'here', participant, deviceId: 'phone', extended: false }
  table.open(here, sink(), 1)
  table.ready('here')
  // It has looked, and nothing was there.
  table.collectFinals(here)
  const orOpen = { identity: { ...here, sessionId: 'before' }, at: 0 }
  table.apply('before', { call: 'call', version: 5, pushes: [final], isOver: true, orOpen })
  expect(handed).toEqual(['end'])
  expect(table.get('before')).toBeUndefined()
  expect(table.changes.take().map(({ session }) => session.identity.sessionId)).toEqual(['here'])
})

test('[ORD3] [TAKE1] what waited in a place is no news for a session that has heard a later version of the call', () => {
  const [a, b] = [connect('a'), connect('b')]
  const peer = (version: number): Push => ({
    kind: 'peer',
    call: 'call',
    version,
    text: JSON.stringify({ n: version }),
  })
  stepsOf(table).hold(a, 'call', true, false, 2)
  table.detach(a, table.sinkOf(a)!, false, 1)
  for (const version of [6, 11]) table.append(a, peer(version))
  table.append(b, { kind: 'stop', call: 'call', version: 10, text: '{"n":"taken"}' })
  table.move('call', a, b, true, 12)
  table.append(b, peer(12))
  expect(handed).toEqual(['taken', 11, 12] as unknown[] as string[])
})
