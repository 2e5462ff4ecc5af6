import { beforeEach, expect, test } from 'bun:test'
import type { Push } from '../ports/push.ts'
import { openSink, stepsOf } from '../ports/sessions.fixture.ts'
import { readSession, writeEntry, writeState } from './copy.ts'
import { createSessionTable, type SessionTable } from './table.ts'

const participant = { product: 'shop', role: 'customer', userId: 'ann' }
const kinds = [true, false]

let table: SessionTable
let heard: string[]
beforeEach(() => {
  table = createSessionTable({ windowMs: 1_000, resumeWindowMs: 1_000, newEpoch: () => 'epoch', isShared: true })
  heard = []
})

const sink = () => openSink({ send: (text) => void heard.push(JSON.parse(text).data.name) })

function connect(sessionId: string, extended = false): string {
  table.open({ sessionId, participant, deviceId: 'phone', extended }, sink(), 0)
  table.ready(sessionId)
  return sessionId
}

/** The caller of an accepted call has got the accept; `early`: it had sent its offer before that. */
function callerOf(sessionId: string, { extended = false, early = false } = {}): string {
  connect(sessionId, extended)
  stepsOf(table).hold(sessionId, 'call', true, true, 1)
  if (early) table.keep(sessionId, relay('offer'))
  table.append(sessionId, accepted(2))
  stepsOf(table).answer(sessionId, 'call', true, 2)
  stepsOf(table).openGate(sessionId, 'call', [])
  return sessionId
}

const accepted = (version: number): Push => {
  const text = JSON.stringify({ event: 'call.accepted', data: { name: `accepted ${version}` } })
  return { kind: 'state', call: 'call', version, text }
}
const events = { offer: 'webrtc.offer', answer: 'webrtc.answer', candidate: 'webrtc.ice_candidate' } as const
const relay = (event: keyof typeof events, name: string = event): Push => {
  return {
    kind: 'relay',
    call: 'call',
    version: undefined,
    text: JSON.stringify({ event: events[event], data: { name } }),
  }
}

function tell(sessionId: string, ...pushes: readonly Push[]): void {
  for (const push of pushes) table.append(sessionId, push)
}

/** Its socket dies, and its device comes back as a new session; answers the pushes to that session. */
function comesBack(from: string, to: string, extended = false): string[] {
  const socket = table.sinkOf(from)
  if (socket !== undefined) table.detach(from, socket, false, 0)
  heard = []
  connect(to, extended)
  table.move('call', from, to, false, 9)
  return heard
}

test('[PLACE5] a caller that is told of the accept again gets no answer and no candidate for its offer of before', () => {
  for (const extended of kinds) {
    const id = callerOf(`a ${extended}`, { extended })
    tell(id, relay('candidate'), relay('answer'), relay('offer', 'the peer’s own offer'))
    table.detach(id, table.sinkOf(id)!, false, 0)
    tell(id, relay('candidate', 'late'))
    expect(comesBack(id, `b ${extended}`, extended)).toEqual(['accepted 2', 'the peer’s own offer'])
  }
})

test('[PLACE5] a session that is not told of the accept, because it knows more of the call, gets the answers', () => {
  const id = callerOf('a', { extended: true })
  tell(id, relay('candidate'), relay('answer'))
  table.detach(id, table.sinkOf(id)!, false, 0)
  connect('b', true)
  const status = {
    kind: 'notice',
    call: 'call',
    version: 3,
    text: '{"event":"call.status","data":{"name":"connected"}}',
  } as const
  tell('b', status)
  heard = []
  table.move('call', id, 'b', false, 9)
  expect(heard).toEqual(['candidate', 'answer'])
})

test('[PLACE5] candidates without an answer come again with the accept: they may belong to an offer of the peer', () => {
  for (const extended of kinds) {
    const id = callerOf(`a ${extended}`, { extended })
    tell(id, relay('offer'), relay('candidate'))
    expect(comesBack(id, `b ${extended}`, extended)).toEqual(['accepted 2', 'offer', 'candidate'])
  }
})

test('[PLACE5] the answer to an offer that came before the accept comes again', () => {
  for (const extended of kinds) {
    const id = callerOf(`a ${extended}`, { extended, early: true })
    tell(id, relay('candidate'), relay('answer'))
    expect(comesBack(id, `b ${extended}`, extended)).toEqual(['accepted 2', 'candidate', 'answer'])
    // Also where it comes back a second time.
    expect(comesBack(`b ${extended}`, `c ${extended}`, extended)).toEqual(['accepted 2', 'candidate', 'answer'])
  }
})

test('[PLACE5] who has the accept for sure, and not the answer, gets the answer', () => {
  const id = callerOf('a')
  table.prove(id, 1)
  tell(id, relay('answer'))
  expect(comesBack(id, 'b')).toEqual(['answer'])
})

test('[PLACE5] who was away when the call was accepted gets what the callee sent since', () => {
  connect('a')
  stepsOf(table).hold('a', 'call', true, true, 1)
  table.detach('a', table.sinkOf('a')!, true, 0)
  tell('a', accepted(2))
  stepsOf(table).openGate('a', 'call', [])
  tell('a', relay('candidate'))
  expect(comesBack('a', 'b')).toEqual(['accepted 2', 'candidate'])
})

test('[PLACE5] an accept that is told again takes the older answers of a base caller with it', () => {
  const id = callerOf('a')
  table.prove(id, 1)
  table.detach(id, table.sinkOf(id)!, false, 0)
  tell(id, relay('candidate'), relay('answer'), accepted(5), relay('candidate', 'of the new page'))
  expect(comesBack(id, 'b')).toEqual(['accepted 5', 'of the new page'])
})

test('[PLACE5] call.connected acknowledges the accept and the answer, an offer does not', () => {
  for (const extended of kinds) {
    const id = callerOf(`a ${extended}`, { extended })
    tell(id, relay('candidate'), relay('answer'), relay('candidate', 'late'))
    table.acknowledge(id, 'another call')
    table.acknowledge(id, 'call')
    expect(comesBack(id, `b ${extended}`, extended)).toEqual(['late'])
    expect(comesBack(callerOf(`c ${extended}`, { extended }), `d ${extended}`, extended)).toEqual(['accepted 2'])
  }
})

test('[PLACE5] call.connected acknowledges no answer to a later offer', () => {
  for (const extended of kinds) {
    const id = callerOf(`a ${extended}`, { extended })
    tell(id, relay('answer'), relay('answer', 'to an ICE restart'))
    table.acknowledge(id, 'call')
    expect(comesBack(id, `b ${extended}`, extended)).toEqual(['to an ICE restart'])
  }
})

test('[PLACE5] [RES1] what was acknowledged is still there for a resume, and another node knows of it', () => {
  const id = callerOf('a', { extended: true })
  tell(id, relay('answer'))
  table.acknowledge(id, 'call')
  const session = table.drop(id)!
  const copy = readSession(writeState(session), session.log!.all().map(writeEntry), 0)!
  table.adopt(copy)
  expect(copy.log?.all()).toHaveLength(2)
  expect(comesBack(id, 'b', true)).toEqual([])
})
