import { expect, test } from 'bun:test'
import type { Entry } from '../recording.ts'
import { factsOf } from './facts.ts'
import { read } from './reading.ts'
import { checkRings } from './rings.ts'

/** The problems that the checker finds if a client hears of a cancelled call, but not of its ring from 20 to 21 s. */
function problems(...meanwhile: Entry[]): string[] {
  const times = { started_at: 20_000, ring_expires_at: 65_000, accepted_at: null, connected_at: null, ended_at: 21_000 }
  const call = { call_uuid: 'c', caller: 'user-1', callee: 'user-2', version: 2, ...times }
  const facts = factsOf({ calls: [{ ...call, status: 'cancelled', end_reason: 'caller_cancelled' }], events: [] })
  const cancelled = { event: 'call.cancelled', seq: 1, version: 2, data: { call_uuid: 'c', status: 'cancelled' } }
  const entries = [...hello(0, 10_000, false), ...meanwhile]
  const socket = entries.at(-1)?.socket ?? 0
  const reading = read({ user: 'user-2', entries: [...entries, { kind: 'in', at: 22_500, socket, frame: cancelled }] })
  const found: string[] = []
  checkRings([reading], facts, 0, (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

function hello(socket: number, at: number, recovered: boolean): Entry[] {
  const data = { session_id: 's', epoch: 'e', recovered }
  return [
    { kind: 'open', at, socket, node: 0 },
    { kind: 'in', at: at + 1, socket, frame: { event: 'auth.ok', data } },
  ]
}

test('[ORD2] who is there when a call begins, and stays, hears it ring first', () => {
  expect(problems()).toEqual(['order: call.cancelled came before the ring'])
})

test('[WS4] who comes back when it is over may hear the end alone, also where its session goes on', () => {
  expect(problems({ kind: 'close', at: 22_000, socket: 0, code: 1006 }, ...hello(1, 22_400, true))).toEqual([])
})
