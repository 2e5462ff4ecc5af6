import { expect, test } from 'bun:test'
import type { Entry, EventRow, Frame } from '../recording.ts'
import { factsOf } from './facts.ts'
import { headerOf } from './header-of.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'
import { checkRelays } from './relays.ts'

const call = { call_uuid: 'c', caller: 'user-1', callee: 'user-2', version: 6, status: 'ended', end_reason: 'hangup' }
const times = { started_at: 5_000, ring_expires_at: 7_500, accepted_at: 6_000, connected_at: 6_100, ended_at: 26_000 }
const facts = factsOf({ calls: [{ ...call, ...times }], events: [] })

const hello = (id: string) => ({ event: 'auth.ok', data: { session_id: id, epoch: 'e', recovered: false } })

/** What the checker says of a message that never came, whose receiver had heard this and came back with a new session. */
function reportsOf(heard: Frame): string[] {
  const data = { call_uuid: 'c', candidate: { candidate: 'c 1', sdpMid: '0', sdpMLineIndex: 0 } }
  const reply = { event: 'call.ack', request_id: 'r', data: { call_uuid: 'c', status: 'connected' } }
  const sender = read({
    user: 'user-1',
    entries: [
      { kind: 'open', at: 1_000, socket: 0, node: 0 },
      { kind: 'in', at: 1_000, socket: 0, frame: hello('s') },
      {
        kind: 'out',
        at: 25_000,
        socket: 0,
        frame: { event: 'webrtc.ice_candidate', request_id: 'r', n: 1, data },
      },
      { kind: 'in', at: 25_050, socket: 0, frame: reply },
    ],
  })
  const entries: Entry[] = [
    { kind: 'open', at: 1_000, socket: 0, node: 0 },
    { kind: 'in', at: 1_000, socket: 0, frame: hello('t') },
    { kind: 'in', at: 24_000, socket: 0, frame: heard },
    { kind: 'close', at: 24_500, socket: 0, code: 1006 },
    { kind: 'open', at: 30_000, socket: 1, node: 0 },
    { kind: 'in', at: 30_000, socket: 1, frame: hello('u') },
  ]
  const found: string[] = []
  checkRelays({
    readings: [sender, read({ user: 'user-2', entries })],
    ...{ facts, startedAt: 0, apart: new Set<string>(), mayComeAgain: () => false },
    patience: createPatience(headerOf()),
    report: (kind, text) => found.push(`${kind}: ${text}`),
  })
  return found
}

test('[REL1] a loss that was declared excuses no message to who has heard the end of the call before', () => {
  const ended = { event: 'call.ended', seq: 1, version: 6, data: { call_uuid: 'c', status: 'ended' } }
  const lost = 'lost: webrtc.ice_candidate 1 of user-1 was acknowledged (connected) and never came'
  expect(reportsOf(ended)).toEqual([lost])
})

test('[XFER1] how a transfer failed is not the end of the call', () => {
  const failed = { event: 'call.transfer_failed', seq: 1, version: 5, data: { call_uuid: 'c', status: 'missed' } }
  expect(reportsOf(failed)).toEqual([])
})

/** What the checker says of a message that a member sent at an instant, and that never came, though it answered in its second turn. */
function reportsOfMember(at: number): string[] {
  const happened = [
    ['invited', 5_000],
    ['turn', 5_010],
    ['passed', 6_510],
    ['turn', 7_000],
    ['accepted', 8_000],
  ] as const
  const events = happened.map(([type, at], i): EventRow => {
    return {
      call_uuid: 'c',
      version: i + 1,
      type,
      at,
      by_user: type === 'accepted' ? 'user-2' : null,
      member: 'user-2',
    }
  })
  const row = { ...call, ...times, accepted_at: 8_000, group: 'desk', members: ['user-2'] }
  const data = { call_uuid: 'c', candidate: { candidate: 'c 1', sdpMid: '0', sdpMLineIndex: 0 } }
  const reply = { event: 'call.ack', request_id: 'r', data: { call_uuid: 'c', status: 'ringing' } }
  const came = (user: string, more: readonly Entry[] = []) =>
    read({
      user,
      entries: [
        { kind: 'open', at: 1_000, socket: 0, node: 0 },
        { kind: 'in', at: 1_000, socket: 0, frame: hello(user) },
        ...more,
      ],
    })
  const member = came('user-2', [
    { kind: 'out', at, socket: 0, frame: { event: 'webrtc.ice_candidate', request_id: 'r', n: 1, data } },
    { kind: 'in', at: at + 50, socket: 0, frame: reply },
  ])
  const found: string[] = []
  checkRelays({
    readings: [member, came('user-1')],
    ...{ facts: factsOf({ calls: [row], events }), startedAt: 0, apart: new Set<string>(), mayComeAgain: () => false },
    patience: createPatience(headerOf()),
    report: (kind, text) => found.push(`${kind}: ${text}`),
  })
  return found
}

test('[REL2] what a member sent before the turn in which it answered does not come, and what it sent then does', () => {
  expect([reportsOfMember(6_000), reportsOfMember(6_600)]).toEqual([[], []])
  expect(reportsOfMember(7_500)).toEqual([
    'lost: webrtc.ice_candidate 1 of user-2 was acknowledged (ringing) and never came, though the call was answered',
  ])
})
