/**
 * What the rules say about each verb, written down from docs/protocol.md and not from the code.
 *
 * - `may speak`: the actor holds the place, or the place is his to take [PLACE2]; `held by another` [PLACE3].
 *   The callee's side has no place while it rings: every session speaks for itself [PLACE1].
 * - `no`: CALL_NOT_PARTICIPANT. `late`: CALL_ALREADY_ANSWERED. `state`: CALL_INVALID_STATE naming the status.
 *   `same`: it succeeds and nothing changes. `seat`: it takes or settles the place and nothing else.
 * * - `status reason > who`: the call's new status, its end_reason (`*`: or the client's), and who hears of it.
 */
const rows = `
  from      side   verb      | may speak                              | held by another
  ringing   caller accept    | no                                     | no
  ringing   caller reject    | no                                     | no
  ringing   caller cancel    | cancelled caller_cancelled > rung      | no
  ringing   caller end       | cancelled caller_cancelled > rung      | no
  ringing   caller connected | state                                  | no
  ringing   caller relay     | seat                                   | no
  ringing   callee accept    | accepted > caller rung                 |
  ringing   callee reject    | rejected declined* > caller rung       |
  ringing   callee end       | rejected declined* > caller rung       |
  ringing   callee cancel    | no                                     |
  ringing   callee connected | state                                  |
  ringing   callee relay     | same                                   |
  accepted  caller accept    | no                                     | no
  accepted  caller reject    | no                                     | no
  accepted  caller cancel    | cancelled caller_cancelled > caller callee | no
  accepted  caller end       | ended hangup* > callee                 | no
  accepted  caller connected | connected > callee                     | no
  accepted  caller relay     | seat                                   | no
  accepted  callee accept    | seat                                   | late
  accepted  callee reject    | ended hangup* > caller callee          | no
  accepted  callee cancel    | no                                     | no
  accepted  callee end       | ended hangup* > caller                 | no
  accepted  callee connected | connected > caller                     | no
  accepted  callee relay     | seat                                   | no
  connected caller accept    | no                                     | no
  connected caller reject    | no                                     | no
  connected caller cancel    | ended hangup* > caller callee          | no
  connected caller end       | ended hangup* > callee                 | no
  connected caller connected | seat                                   | no
  connected caller relay     | seat                                   | no
  connected callee accept    | seat                                   | late
  connected callee reject    | ended hangup* > caller callee          | no
  connected callee cancel    | no                                     | no
  connected callee end       | ended hangup* > caller                 | no
  connected callee connected | seat                                   | no
  connected callee relay     | seat                                   | no
  over      caller accept    | no                                     | no
  over      callee accept    | state                                  | state
  over      either reject    | same                                   | same
  over      either cancel    | same                                   | same
  over      either end       | same                                   | same
  over      either connected | same                                   | same
`

/** One cell: a refusal, nothing, only a place, or a transition. */
export type Outcome =
  | { readonly kind: 'no' | 'late' | 'state' | 'same' | 'seat' }
  | {
      readonly kind: 'to'
      readonly status: 'accepted' | 'connected' | 'rejected' | 'cancelled' | 'ended' | 'missed'
      readonly reason: string | null
      /** The client's own reason counts. */
      readonly own: boolean
      readonly told: readonly ('caller' | 'callee' | 'rung')[]
    }
type To = Extract<Outcome, { kind: 'to' }>
type Plain = Exclude<Outcome, To>['kind']

export interface Row {
  readonly from: 'ringing' | 'accepted' | 'connected' | 'over'
  readonly side: 'caller' | 'callee' | 'either'
  readonly verb: 'accept' | 'reject' | 'cancel' | 'end' | 'connected' | 'relay'
  readonly speaks: Outcome
  readonly other: Outcome | null
}

export function parseOutcome(text: string): Outcome {
  if (/^(no|late|state|same|seat)$/.test(text)) return { kind: text as Plain }
  const [, status, reason, own, told] = /^(\w+) ?(\w+)?(\*)? >(.*)$/.exec(text) ?? []
  if (status === undefined || told === undefined) throw new Error(`This is no outcome: ${text}`)
  return {
    kind: 'to',
    status: status as To['status'],
    reason: reason ?? null,
    own: own !== undefined,
    told: told.split(' ').filter((who) => who !== '') as To['told'][number][],
  }
}

function parseRow(line: string): Row {
  const [head = '', speaks = '', other = ''] = line.split('|').map((cell) => cell.trim())
  const [from, side, verb] = head.split(/\s+/)
  return {
    from: from as Row['from'],
    side: side as Row['side'],
    verb: verb as Row['verb'],
    speaks: parseOutcome(speaks),
    other: other === '' ? null : parseOutcome(other),
  }
}

export const commandRows: readonly Row[] = rows.trim().split('\n').slice(1).map(parseRow)

/**
 * What time alone does: the places (`held`, or how long after the answer or the invite it fell vacant, and `closed` where its
 * client closed), when, and what.
 */
export const timeRows: readonly {
  readonly from: 'ringing' | 'accepted' | 'connected'
  readonly caller: 'held' | number
  readonly callee: 'held' | number
  readonly closed?: 'caller' | 'callee' | 'both'
  readonly due: number
  readonly does: string
}[] = [
  { from: 'ringing', caller: 'held', callee: 'held', due: 45_000, does: 'missed no_answer > caller rung' },
  { from: 'ringing', caller: 0, callee: 'held', due: 20_000, does: 'cancelled caller_lost > caller rung' },
  { from: 'ringing', caller: 10_000, callee: 'held', due: 30_000, does: 'cancelled caller_lost > caller rung' },
  { from: 'ringing', caller: 24_999, callee: 'held', due: 44_999, does: 'cancelled caller_lost > caller rung' },
  {
    from: 'ringing',
    caller: 10_000,
    callee: 'held',
    closed: 'caller',
    due: 30_000,
    does: 'cancelled caller_lost > caller rung',
  },
  { from: 'ringing', caller: 40_000, callee: 'held', due: 45_000, does: 'missed no_answer > caller rung' },
  ...(['accepted', 'connected'] as const).flatMap((from) => [
    { from, caller: 'held', callee: 'held', due: 43_200_000, does: 'ended max_duration > caller callee' } as const,
    { from, caller: 1_000, callee: 'held', due: 121_000, does: 'ended peer_lost > caller callee' } as const,
    { from, caller: 'held', callee: 1_000, due: 121_000, does: 'ended peer_lost > caller callee' } as const,
    { from, caller: 1_000, callee: 2_000, due: 121_000, does: 'ended peer_lost > caller callee' } as const,
    { from, caller: 3_000, callee: 2_000, due: 122_000, does: 'ended peer_lost > caller callee' } as const,
    {
      from,
      caller: 1_000,
      callee: 2_000,
      closed: 'both',
      due: 22_000,
      does: 'ended peer_lost > caller callee',
    } as const,
    {
      from,
      caller: 3_000,
      callee: 2_000,
      closed: 'both',
      due: 23_000,
      does: 'ended peer_lost > caller callee',
    } as const,
    {
      from,
      caller: 1_000,
      callee: 101_500,
      closed: 'both',
      due: 121_000,
      does: 'ended peer_lost > caller callee',
    } as const,
    {
      from,
      caller: 3_000,
      callee: 2_000,
      closed: 'caller',
      due: 122_000,
      does: 'ended peer_lost > caller callee',
    } as const,
    {
      from,
      caller: 3_000,
      callee: 2_000,
      closed: 'callee',
      due: 122_000,
      does: 'ended peer_lost > caller callee',
    } as const,
    {
      from,
      caller: 'held',
      callee: 2_000,
      closed: 'callee',
      due: 122_000,
      does: 'ended peer_lost > caller callee',
    } as const,
    {
      from,
      caller: 2_000,
      callee: 'held',
      closed: 'caller',
      due: 122_000,
      does: 'ended peer_lost > caller callee',
    } as const,
    {
      from,
      caller: 43_190_000,
      callee: 43_180_001,
      closed: 'both',
      due: 43_200_000,
      does: 'ended max_duration > caller callee',
    } as const,
    { from, caller: 43_190_000, callee: 'held', due: 43_200_000, does: 'ended max_duration > caller callee' } as const,
  ]),
]

/** When a session that says it is busy ends the ringing: when every session that was rung said so. */
const gone = (count: number) => Array.from({ length: count }, (_, i) => `gone-${i}`)

export const busyRows: readonly {
  readonly silenced: readonly string[]
  readonly rung: readonly string[]
  readonly does: 'silenced' | 'same' | 'rejected'
  /** The silenced sessions that stay so; all of them by default. */
  readonly left?: readonly string[]
}[] = [
  { silenced: [], rung: ['b-1'], does: 'rejected' },
  { silenced: [], rung: ['b-1', 'b-2'], does: 'silenced' },
  { silenced: [], rung: ['b-2', 'b-1'], does: 'silenced' },
  { silenced: ['b-2'], rung: ['b-1', 'b-2'], does: 'rejected' },
  { silenced: ['b-2'], rung: ['b-1', 'b-2', 'b-3'], does: 'silenced' },
  { silenced: ['b-1'], rung: ['b-1', 'b-2'], does: 'same' },
  { silenced: ['b-1'], rung: ['b-1'], does: 'rejected' },
  { silenced: ['b-1', 'b-2'], rung: ['b-1', 'b-2', 'b-3'], does: 'same' },
  { silenced: [], rung: [], does: 'rejected' },
  { silenced: gone(31), rung: ['b-1', 'b-2'], does: 'silenced' },
  { silenced: gone(32), rung: ['b-1', 'b-2'], does: 'silenced', left: [] },
  { silenced: [...gone(31), 'b-2'], rung: ['b-1', 'b-2', 'b-3'], does: 'silenced', left: ['b-2'] },
  { silenced: [...gone(31), 'b-2'], rung: ['b-1', 'b-2'], does: 'rejected', left: ['b-2'] },
  { silenced: [...gone(31), 'b-1'], rung: ['b-1', 'b-2'], does: 'same' },
]

/** What a backend that ends a call does in each state [SRV2]. */
export const stopRows = {
  ringing: 'cancelled ended_by_server > caller rung',
  accepted: 'ended ended_by_server > caller callee',
  connected: 'ended ended_by_server > caller callee',
} as const
