import { expect, test } from 'bun:test'
import { headerOf } from '../chaos/check/header-of.ts'
import type { Entry, FaultRecord, Frame, Trace } from '../chaos/recording.ts'
import { checkApart } from './apart.ts'

const call = { call_uuid: 'c', caller: 'user-0', callee: 'user-1', version: 4, status: 'ended', end_reason: 'hangup' }
const times = { started_at: 5_000, ring_expires_at: 7_500, accepted_at: 6_000, connected_at: 6_100, ended_at: 80_000 }

/** A phone of user-1 that asked for this from that time on, and got each of it acknowledged. */
function phone(at: number, ...events: readonly string[]): Trace {
  const hello = { event: 'auth.ok', data: { session_id: `s${at}`, epoch: 'e', recovered: false } }
  const asked = events.flatMap((event, i): Entry[] => {
    const [time, request_id] = [at + i * 100, `r${i}`]
    const reply = { event: 'call.ack', request_id, data: { call_uuid: 'c', status: 'accepted' } }
    return [
      { kind: 'out', at: time, socket: 0, frame: { event, request_id, n: i + 1, data: { call_uuid: 'c' } } },
      { kind: 'in', at: time + 50, socket: 0, frame: reply },
    ]
  })
  const open: Entry = { kind: 'open', at: 1_000, socket: 0, node: 0 }
  return { user: 'user-1', entries: [open, { kind: 'in', at: 1_001, socket: 0, frame: hello }, ...asked] }
}

/** What the checker says of these phones. */
function reportsOf(...traces: readonly Trace[]): string[] {
  const header = { ...headerOf(), apart: ['user-1'] }
  const found: string[] = []
  const rows = { calls: [{ ...call, ...times }], events: [] }
  const recording = { header, traces: [], tracesApart: [...traces], histories: [], hooks: [], ...rows }
  checkApart(traces, recording, (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

test('[PLACE3] two phones of one person do not answer one call', () => {
  expect(reportsOf(phone(6_000, 'call.accept'))).toEqual([])
  const both = reportsOf(phone(6_000, 'call.accept'), phone(8_000, 'call.accept'))
  expect(both).toEqual(['effect: two phones of user-1 answered it'])
})

test('[TAKE1] a phone that has taken the call may answer it: that changes nothing', () => {
  expect(reportsOf(phone(6_000, 'call.accept'), phone(8_000, 'call.take', 'call.accept'))).toEqual([])
  // Also before the one that answered hears that it did.
  expect(reportsOf(phone(9_000, 'call.accept'), phone(8_000, 'call.take', 'call.accept'))).toEqual([])
})

test('[EXT4] an answer that is sent again after a take may find that the phone has the call', () => {
  // Both took effect in a session that another node had by then, and the call was over before the take came again.
  const comesBack = (isSentAgain: boolean): Trace => {
    const { user, entries } = phone(8_000)
    const send = (at: number, socket: number, event: string, n: number): Entry => {
      return { kind: 'out', at, socket, frame: { event, request_id: `r${n}`, n, data: { call_uuid: 'c' } } }
    }
    const hello = { event: 'auth.ok', data: { session_id: 's8000', epoch: 'e', recovered: true, handled: 0 } }
    const reply = (at: number, socket: number, n: number, more: object): Entry => {
      return { kind: 'in', at, socket, frame: { event: 'call.ack', request_id: `r${n}`, ...more } as Frame }
    }
    const refused = { event: 'call.error', error: { code: 'CALL_INVALID_STATE', message: '', retryable: false } }
    const again = [send(9_000, 1, 'call.accept', 1), send(9_000, 1, 'call.take', 2)]
    return {
      user,
      entries: [
        ...entries,
        send(8_000, 0, 'call.accept', 1),
        send(8_500, 0, 'call.take', 2),
        { kind: 'close', at: 8_800, socket: 0, code: 1006 },
        { kind: 'open', at: 8_900, socket: 1, node: 1 },
        { kind: 'in', at: 8_901, socket: 1, frame: hello },
        ...(isSentAgain ? again : []),
        reply(9_050, 1, 1, { data: { call_uuid: 'c', status: 'connected' } }),
        reply(9_060, 1, 2, refused),
      ],
    }
  }
  expect(reportsOf(phone(6_000, 'call.accept'), comesBack(true))).toEqual([])
  const both = ['effect: two phones of user-1 answered it']
  expect(reportsOf(phone(6_000, 'call.accept'), comesBack(false))).toEqual(both)
})

/** What the checker says of user-1's phone, which got a relay twice. user-0 sent it on both of its sockets, or once. */
function ofRelayTwice(isSentAgain: boolean, ...faults: readonly FaultRecord[]): string[] {
  const candidate = { candidate: 'c 1', sdpMid: '0', sdpMLineIndex: 0 }
  const relay = { event: 'webrtc.ice_candidate', data: { call_uuid: 'c', candidate } }
  const hello = (at: number, socket: number, recovered: boolean, session_id: string): Entry[] => [
    { kind: 'open', at, socket, node: socket },
    { kind: 'in', at: at + 1, socket, frame: { event: 'auth.ok', data: { session_id, epoch: 'e', recovered } } },
  ]
  const send = (at: number, socket: number): Entry => {
    return { kind: 'out', at, socket, frame: { ...relay, request_id: 'r', n: 1 } }
  }
  const sender: Entry[] = [
    ...hello(1_000, 0, false, 's'),
    send(7_000, 0),
    { kind: 'close', at: 7_020, socket: 0, code: 1006 },
    ...hello(7_500, 1, true, 's'),
    ...(isSentAgain ? [send(7_600, 1)] : []),
  ]
  const came = (at: number, seq: number): Entry => {
    return { kind: 'in', at, socket: 0, frame: { ...relay, data: { ...relay.data, from_user_id: 'user-0' }, seq } }
  }
  const phone: Trace = {
    user: 'user-1',
    entries: [...hello(1_000, 0, false, 't'), came(7_010, 1), came(7_650, 2)],
  }
  const found: string[] = []
  const header = { ...headerOf(...faults), apart: ['user-1'] }
  const rows = { calls: [{ ...call, ...times }], events: [], histories: [], hooks: [] }
  const recording = { header, traces: [{ user: 'user-0', entries: sender }], tracesApart: [phone], ...rows }
  checkApart([phone], recording, (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

test('[EXT3] a relay that was written without Redis, and sent again elsewhere, may come twice to a phone of several', () => {
  const cut = { kind: 'node cut from Redis', target: 'node-0', from: 6_900, until: 7_300 } as const
  const twice = ['double: webrtc.ice_candidate c from user-0 1 came twice']
  expect(ofRelayTwice(true, cut)).toEqual([])
  expect(ofRelayTwice(false, cut)).toEqual(twice)
  expect(ofRelayTwice(true)).toEqual(twice)
})
