import { describe, expect, test } from 'bun:test'
import type { CallRow, EventRow, FaultRecord } from '../recording.ts'
import { factsOf } from './facts.ts'
import { headerOf } from './header-of.ts'
import { createPatience } from './patience.ts'
import { checkTurns } from './turns.ts'

const call = 'c'
const members = ['ann', 'bob', 'cas']
const times = { started_at: 20_000, ring_expires_at: 27_000, accepted_at: null, connected_at: null, ended_at: 27_000 }
const row: CallRow = {
  ...{ call_uuid: call, caller: 'dan', callee: '', group: 'desk', version: 8, ...times },
  ...{ status: 'missed', end_reason: 'no_answer' },
}
type What = readonly [type: string, at: number, more?: Partial<EventRow>]

/** What is wrong with a call to a group of three, whose turns last 1.5 s and to which this happened. */
function problems(
  happened: readonly What[],
  change: Partial<CallRow> = {},
  faults: readonly FaultRecord[] = [],
): string[] {
  const events = happened.map(([type, at, more], i): EventRow => {
    return { call_uuid: call, version: i + 1, type, at: 20_000 + at, by_user: null, ...more }
  })
  const facts = factsOf({ calls: [{ ...row, version: events.length, ...change }], events })
  const header = {
    ...headerOf(...faults),
    inTurns: [{ name: 'desk', strategy: 'in_turn' as const, members, memberRingMs: 1_500 }],
  }
  const found: string[] = []
  checkTurns(facts, header, createPatience(header), (kind, text) => found.push(`${kind}: ${text}`))
  return found
}

const turn = (member: string, at: number): What => ['turn', at, { member }]
const passed = (member: string, at: number): What => ['passed', at, { member }]
const declined = (user: string, at: number): What => ['declined', at, { by_user: user }]
const accepted = (user: string, at: number): What => ['accepted', at, { by_user: user }]
const invited: What = ['invited', 0, { by_user: 'dan' }]
const missed: What = ['missed', 7_000]

describe('[GROUP1] the turns of a call to a group', () => {
  test('each member after another, and another round: nothing is wrong', () => {
    const round = [turn('ann', 10), declined('ann', 900), turn('bob', 910), passed('bob', 2_410), turn('cas', 2_420)]
    const again = [passed('cas', 3_920), ['round_over', 3_930] as const, turn('bob', 3_940), passed('bob', 5_440)]
    expect(problems([invited, ...round, ...again, turn('cas', 5_450), missed])).toEqual([])
  })

  test('a member that is passed over, and one that answers in its turn: nothing is wrong', () => {
    const answered = { status: 'accepted', accepted_at: 22_000, end_reason: null, callee: 'cas' }
    expect(
      problems([invited, turn('bob', 10), passed('bob', 1_510), turn('cas', 1_520), accepted('cas', 2_000)], answered),
    ).toEqual([])
  })

  test('a turn that is too short', () => {
    expect(problems([invited, turn('ann', 10), passed('ann', 900), ['missed', 1_000]])).toContain(
      'group: ann had a turn of 890 ms',
    )
  })

  test('a member that has declined has another turn', () => {
    const found = problems([
      invited,
      turn('ann', 10),
      declined('ann', 500),
      ['round_over', 510],
      turn('ann', 520),
      ['missed', 1_000],
    ])
    expect(found).toEqual(['group: it rang at ann, who had declined'])
  })

  test('two members have their turn at once', () => {
    const found = problems([invited, turn('ann', 10), turn('bob', 20), ['missed', 1_000]])
    expect(found).toEqual(['group: it rang at ann and at bob at once'])
  })

  test('a member answers whose turn is over', () => {
    const events = [invited, turn('ann', 10), passed('ann', 1_510), turn('bob', 1_520), accepted('ann', 1_600)]
    expect(problems(events)).toEqual(['group: ann answered it, and it was not its turn'])
  })

  test('a round does not follow the list', () => {
    const found = problems([invited, turn('bob', 10), declined('bob', 300), turn('ann', 310), ['missed', 1_000]])
    expect(found).toEqual(['group: it rang at ann after bob'])
  })

  test('it is over for a member at whom it has not rung', () => {
    const rejected: What = ['rejected', 900, { by_user: 'bob' }]
    const found = problems([invited, turn('ann', 10), declined('ann', 300), turn('bob', 310), rejected], {
      end_reason: 'all_declined',
    })
    expect(found).toEqual(['group: it was over before cas declined it'])
  })

  test('it rings at its caller, or at the one who transferred it', () => {
    expect(problems([invited, turn('ann', 10), ['missed', 1_000]], { caller: 'ann' })).toEqual([
      'group: it rang at ann, who is in it',
    ])
    expect(problems([invited, turn('ann', 10), ['missed', 1_000]], { transferred_by: 'ann' })).toHaveLength(1)
  })

  test('no next turn begins: wrong where everything works, and not where a store is away', () => {
    const events = [invited, turn('ann', 10), passed('ann', 1_510), missed]
    expect(problems(events)).toEqual(['group: nothing happened for 5490 ms after passed'])
    const fault = { kind: 'PostgreSQL stopped', target: 'PostgreSQL', from: 22_000, until: 26_000 }
    expect(problems(events, {}, [fault])).toEqual([])
  })
})
