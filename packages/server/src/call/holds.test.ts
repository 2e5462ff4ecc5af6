import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type HoldRow, holdChanges, holdsOf, withoutRepeats } from './holds.ts'

const row = (at: number, what: HoldRow['what'], side: HoldRow['side'] = 'caller'): HoldRow => ({ at, what, side })
const span = { acceptedAt: 1_000, until: 10_000 }

describe('[HOLD1] for how long a side had the call on hold', () => {
  test('a call that nobody held, and one that nobody answered', () => {
    expect(holdsOf([row(2_000, 'relays')], span)).toEqual({ caller_ms: 0, callee_ms: 0 })
    expect(holdsOf([row(2_000, 'held')], { acceptedAt: null, until: 10_000 })).toEqual({ caller_ms: 0, callee_ms: 0 })
  })

  test('each side by itself; a hold that nobody took back lasts until the end', () => {
    const rows = [
      row(2_000, 'held'),
      row(3_000, 'held', 'callee'),
      row(4_500, 'resumed'),
      row(5_000, 'held'),
      row(5_250, 'resumed'),
    ]
    expect(holdsOf(rows, span)).toEqual({ caller_ms: 2_750, callee_ms: 7_000 })
  })

  test('what several nodes wrote of the same hold counts once', () => {
    const rows = [row(2_000, 'held'), row(3_000, 'held'), row(4_000, 'resumed'), row(5_000, 'resumed')]
    expect(holdsOf(rows, span)).toEqual({ caller_ms: 2_000, callee_ms: 0 })
    expect(withoutRepeats([row(1, 'relays'), row(2, 'resumed'), ...rows]).map(({ at }) => at)).toEqual([
      1, 2_000, 4_000,
    ])
  })

  test('a hold from before the accept counts from the accept', () => {
    expect(holdsOf([row(200, 'held'), row(3_000, 'resumed')], span)).toEqual({ caller_ms: 2_000, callee_ms: 0 })
    expect(holdsOf([row(200, 'held'), row(400, 'resumed')], span)).toEqual({ caller_ms: 0, callee_ms: 0 })
  })

  test('of whatever was written: what a clock with a step of 1 ms counts', () => {
    const rows = fc.array(
      fc.record({
        at: fc.integer({ min: 0, max: 60 }),
        what: fc.constantFrom<HoldRow['what']>('held', 'resumed', 'relays'),
        side: fc.constantFrom<HoldRow['side']>('caller', 'callee', null),
      }),
    )
    fc.assert(
      fc.property(rows, fc.integer({ min: 0, max: 40 }), fc.integer({ min: 40, max: 70 }), (all, acceptedAt, until) => {
        const ordered = all.toSorted((a, b) => a.at - b.at)
        const counted = (side: HoldRow['side']) => {
          let ms = 0
          for (let at = acceptedAt; at < until; at++) {
            const last = ordered.filter((row) => row.side === side && row.at <= at && row.what !== 'relays').at(-1)
            if (last?.what === 'held') ms++
          }
          return ms
        }
        const expected = { caller_ms: counted('caller'), callee_ms: counted('callee') }
        expect(holdsOf(ordered, { acceptedAt, until })).toEqual(expected)
        const changes = holdChanges(ordered).filter(({ side }) => side === 'caller')
        expect(changes.map(({ what }) => what)).toEqual(changes.map((_, i) => (i % 2 === 0 ? 'held' : 'resumed')))
      }),
    )
  })
})
