import { expect, test } from 'bun:test'
import type { Entry } from '../recording.ts'
import { factsOf } from './facts.ts'
import { headerOf } from './header-of.ts'
import { checkNotices } from './notices.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'

const call = { call_uuid: 'c', caller: 'user-1', callee: 'user-2', version: 3, status: 'ended', end_reason: 'hangup' }
const times = { started_at: 1_000, ring_expires_at: 3_500, accepted_at: 2_000, connected_at: 20_000, ended_at: 90_000 }

/** What is reported where the call was connected at 20 s, and user-2 came at 10 s with a place or not, and again at 30 s. */
function reportsOf(hadPlace: boolean, status: string): string[] {
  const fact = factsOf({
    calls: [{ ...call, ...times }],
    events: [{ call_uuid: 'c', version: 3, type: 'connected', at: 20_000, by_user: 'user-1' }],
  })
  const comes = (at: number, socket: number, recovered: boolean, active: object): Entry[] => {
    const listed = { call_uuid: 'c', version: 2, direction: 'incoming', ...active }
    const data = { session_id: 's', epoch: 'e', recovered, handled: 0, active_calls: [listed] } as never
    return [
      { kind: 'open', at, socket, node: 0 },
      { kind: 'in', at, socket, frame: { event: 'auth.ok', data } },
    ]
  }
  const entries: Entry[] = [
    ...comes(10_000, 0, false, { status: 'accepted', holds_place: hadPlace }),
    { kind: 'close', at: 29_000, socket: 0, code: 1006 },
    ...comes(30_000, 1, true, { status, holds_place: true }),
    // It asked for the end, and had the place then.
    {
      kind: 'out',
      at: 30_001,
      socket: 1,
      frame: { event: 'call.end', request_id: 'r', n: 1, data: { call_uuid: 'c' } },
    },
    { kind: 'in', at: 30_050, socket: 1, frame: { event: 'call.ack', request_id: 'r', data: { call_uuid: 'c' } } },
    { kind: 'close', at: 99_000, socket: 1, code: 1006 },
  ]
  const found: string[] = []
  const report = (_: string, text: string) => void found.push(text)
  checkNotices([read({ user: 'user-2', entries })], fact, 0, createPatience(headerOf()), report)
  return found
}

test('[PLACE2] a session that had no place when its call was connected may read that in a snapshot', () => {
  const untold = ['user-2 never got call.status of version 3']
  expect(reportsOf(false, 'connected')).toEqual([])
  expect(reportsOf(true, 'connected')).toEqual(untold)
  expect(reportsOf(false, 'accepted')).toEqual(untold)
})
