import { expect, test } from 'bun:test'
import type { Entry } from '../recording.ts'
import { headerOf } from './header-of.ts'
import { read } from './reading.ts'
import { checkRefusals } from './refusals.ts'

/** What is reported of a cancel that got CALL_NOT_FOUND after a resume whose snapshot lists the call. */
function reportsOf(isSentAgain: boolean): string[] {
  const active = { call_uuid: 'c', status: 'ringing', version: 1, direction: 'outgoing', holds_place: true }
  const comes = (at: number, socket: number, recovered: boolean, active_calls: readonly object[]): Entry[] => {
    const data = { session_id: 's', epoch: 'e', recovered, handled: 1, active_calls } as never
    return [
      { kind: 'open', at, socket, node: 0 },
      { kind: 'in', at: at + 1, socket, frame: { event: 'auth.ok', data } },
    ]
  }
  const cancel = { event: 'call.cancel', request_id: 'r', n: 1, data: { call_uuid: 'c' } }
  const refused = { event: 'call.error', request_id: 'r', error: { code: 'CALL_NOT_FOUND', message: '' } } as never
  const entries: Entry[] = [
    ...comes(1_000, 0, false, []),
    { kind: 'out', at: 2_000, socket: 0, frame: cancel },
    { kind: 'close', at: 5_000, socket: 0, code: 1006 },
    ...comes(6_000, 1, true, [active]),
    ...(isSentAgain ? [{ kind: 'out', at: 6_002, socket: 1, frame: cancel } as const] : []),
    { kind: 'in', at: 6_010, socket: 1, frame: refused },
  ]
  const found: string[] = []
  checkRefusals([read({ user: 'user-1', entries })], new Map(), headerOf(), (_, text) => found.push(text))
  return found
}

test('[RES2] the reply to a request that is not sent again is from before the resume, and so from before its snapshot', () => {
  expect(reportsOf(false)).toEqual([])
  expect(reportsOf(true)).toEqual(['call.cancel 1 got CALL_NOT_FOUND: the service had named it'])
})
