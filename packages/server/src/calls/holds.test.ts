import { describe, expect, test } from 'bun:test'
import type { Side } from '../call/call.ts'
import { holdsOf } from '../call/holds.ts'
import type { TimelineRow } from '../call/observed.ts'
import { accepted, ringing } from '../ports/call-store.fixture.ts'
import { createHolds, mostChanges } from './holds.ts'

const session = { sessionId: 's1', deviceId: 'phone' }
const answered = (version = 2) => ({ ...accepted(ringing()).call, version })

/** `rows`: of all nodes of one service, in the order in which they wrote. */
function setUp() {
  const rows: TimelineRow[] = []
  let clock = 0
  const now = () => ++clock
  const node = () =>
    createHolds({
      now,
      recorder: {
        record: ({ product, callUuid }, entry) =>
          void rows.push({ product, callUuid, id: String(rows.length), at: now(), ...entry }),
      },
    })
  const written = (side: Side = 'caller') => rows.filter((row) => row.side === side).map(({ what }) => what)
  return { rows, node, written, later: (ms: number) => (clock += ms) }
}

describe('[HOLD1] what is written down of holds', () => {
  test('changes only: what every other message says of them is not written', () => {
    const { rows, node, written } = setUp()
    const holds = node()
    const call = answered()
    for (const held of [undefined, undefined, true, true, false, undefined, false, true])
      holds.said(call, 'caller', session, held)
    expect(written()).toEqual(['held', 'resumed', 'held'])
    expect(rows[0]).toMatchObject({ side: 'caller', sessionId: 's1', deviceId: 'phone', detail: {} })
    expect([holds.hasWritten(call), holds.hasWritten(answered())]).toEqual([true, false])
  })

  test('nothing of a call that nobody holds, however often its sides mute', () => {
    const { rows, node } = setUp()
    const holds = node()
    const call = answered()
    for (const version of [2, 3])
      for (const side of ['caller', 'callee'] as const)
        for (let n = 0; n < 5; n++) holds.said({ ...call, version }, side, session, undefined)
    expect(rows).toEqual([])
  })

  test('nor of a callee while the call rings: no session has its place', () => {
    const { rows, node } = setUp()
    node().said(ringing(), 'callee', session, true)
    expect(rows).toEqual([])
  })

  test('a session that moves between nodes, and back: the sum is right whatever each of them knows', () => {
    const { rows, node } = setUp()
    const [one, two] = [node(), node()]
    const call = answered()
    one.said(call, 'caller', session, true)
    const from = rows.at(-1)?.at ?? 0
    two.said({ ...call, version: 5 }, 'caller', session, undefined)
    const until = rows.at(-1)?.at ?? 0
    // The first node believes that it still holds the call.
    one.said({ ...call, version: 7 }, 'caller', session, true)
    const again = rows.at(-1)?.at ?? 0
    expect(again).toBeGreaterThan(until)
    expect(holdsOf(rows, { acceptedAt: 0, until: 100 }).caller_ms).toBe(until - from + 100 - again)
    // And the second one that it does not.
    two.said({ ...call, version: 9 }, 'caller', session, false)
    expect(holdsOf(rows, { acceptedAt: 0, until: 100 }).caller_ms).toBe(until - from + (rows.at(-1)?.at ?? 0) - again)
  })

  test('of each side no more than a bounded number; a hold that was written is ended in writing', () => {
    const { written, node } = setUp()
    const holds = node()
    const call = answered()
    for (let n = 0; n < 1_000; n++) {
      holds.said(call, 'caller', session, n % 2 === 0)
      holds.said(call, 'callee', session, n % 2 === 1)
    }
    for (const side of ['caller', 'callee'] as const) {
      expect(written(side).length).toBeWithin(mostChanges, mostChanges + 2)
      expect(written(side).at(-1)).toBe('resumed')
    }
  })

  test('a side that says nothing for an hour is forgotten, and its hold is not', () => {
    const { rows, node, later, written } = setUp()
    const holds = node()
    const call = answered()
    holds.said(call, 'caller', session, true)
    later(4_000_000)
    holds.said(answered(), 'caller', session, true)
    expect(holds.hasWritten(call)).toBe(false)
    holds.said(call, 'caller', session, false)
    expect(written()).toEqual(['held', 'held', 'resumed'])
    expect(rows[2]?.callUuid).toBe(call.callUuid)
  })
})
