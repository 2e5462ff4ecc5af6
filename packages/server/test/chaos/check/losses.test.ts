import { expect, test } from 'bun:test'
import type { Entry, Frame, Trace } from '../recording.ts'
import { factsOf } from './facts.ts'
import { headerOf } from './header-of.ts'
import { lossesOf } from './losses.ts'
import { read } from './reading.ts'

const times = { started_at: 5_000, ring_expires_at: 7_500, accepted_at: 6_000, connected_at: 6_100, ended_at: 80_000 }
const call = { call_uuid: 'c', caller: 'user-0', callee: 'user-1', version: 4, status: 'ended', end_reason: 'hangup' }
const facts = factsOf({ calls: [{ ...call, ...times }], events: [] })

const answerOf = (counter: number, length?: number): Frame => {
  const sdp = `c ${counter}${length === undefined ? '' : ` ${length}`}`
  return { event: 'webrtc.answer', data: { call_uuid: 'c', sdp: { type: 'answer', sdp } } }
}

/** The answers 1 to `count` of one phone of user-1. */
function phone(count: number, at: number, length?: number): Trace {
  const entries = Array.from({ length: count }, (_, i): Entry => {
    return { kind: 'out', at, socket: 0, frame: { ...answerOf(i + 1, length), n: i + 1 } }
  })
  const hello = { event: 'auth.ok', data: { session_id: `s${at}`, epoch: 'e', recovered: false } }
  return { user: 'user-1', entries: [{ kind: 'in', at: 1_000, socket: 0, frame: hello }, ...entries] }
}

/**
 * The reason for a session that began at 60 s, where user-0 had got 20 short answers of one phone and was away since 20 s.
 * Meanwhile a second phone of the peer sent as many long ones as `count` says.
 */
function reasonFor(count: number): string | undefined {
  const helloOf = (socket: number, at: number): Entry[] => [
    { kind: 'open', at, socket, node: 0 },
    {
      kind: 'in',
      at,
      socket,
      frame: { event: 'auth.ok', data: { session_id: `u${at}`, epoch: 'e', recovered: false } },
    },
  ]
  const came = Array.from({ length: 20 }, (_, i): Entry => {
    const { event, data } = answerOf(i + 1)
    return { kind: 'in', at: 8_100, socket: 0, frame: { event, seq: i + 1, data: { ...data, from_user_id: 'user-1' } } }
  })
  const close: Entry = { kind: 'close', at: 20_000, socket: 0, code: 1006 }
  const reading = read({ user: 'user-0', entries: [...helloOf(0, 1_000), ...came, close, ...helloOf(1, 60_000)] })
  const [loss] = lossesOf([reading], [phone(20, 8_000), phone(count, 30_000, 48_000)], facts, headerOf())
  return loss?.reason
}

test('[RES1] two phones of the peer count their messages each for itself, and all of them fill the log', () => {
  expect(reasonFor(25)).toBe('more missed than a log keeps')
  expect(reasonFor(19)).toBeUndefined()
})
