/**
 * What the rules say about an invite from alice's session `me` to bob [INV1, INV3, INV5–INV8], written down from
 * docs/protocol.md and not from the code. The first row that fits counts; `*` fits everything.
 *
 * uuid     the call_uuid that came with it: new; `other`: of alice's own call with another callee; `over`: of her earlier
 *          call with bob, for two minutes at most, and `old`: for longer [UUID1]; `asked`: of her live call with bob; `foreign`: of a call that is not hers to name: of
 *          strangers, or one in which she is the callee.
 * out      who has the caller's place of her ringing call to bob: me, `my-far` (me too, but my session is on another node
 *          now), another session of hers, the same but `loose` (its holder only took it by connecting and has not
 *          spoken), or nobody: `left` by a session of my device, or by one of another device just now (`tablet-left`) or 5 s
 *          ago (`tablet-gone`). `tablet-loose`: another device has it, only by connecting.
 * wish     whether the invite is for the same as that call: context_type, context_id and call_type.
 * in       bob's ringing call to her: his place held, or left.
 * talk     an answered call between the two: who has her place, in the same words; bob may be on either side.
 * limit    whether an invite limit is exceeded [INV8].
 * busy     whether bob is in a call with somebody else and the product refuses then [INV5].
 *
 * `same`: the reply names that call and nothing changes. `takes`, `settles`: the same, and the place is mine, here. A refusal by
 * its code. `rings`: a new call. `+ends` names what ends before: `out` and `talk` superseded, `in` as caller_lost.
 */
const rows = `
  uuid  | out         wish in   talk        limit busy | what
  other | *           *    *    *           *     *    | CALL_ID_CONFLICT
  over  | *           *    *    *           *     *    | same over
  old   | *           *    *    *           *     *    | CALL_ID_CONFLICT status
  out   | my-loose    *    *    *           *     *    | settles out
  out   | my-far      *    *    *           *     *    | settles out
  out   | loose       *    *    *           *     *    | takes out
  out   | left        *    *    *           *     *    | takes out
  out   | tablet-gone *    *    *           *     *    | takes out
  out   | *           *    *    *           *     *    | same out
  talk  | *           *    *    my-loose    *     *    | settles talk
  talk  | *           *    *    my-far      *     *    | settles talk
  talk  | *           *    *    loose       *     *    | takes talk
  talk  | *           *    *    left        *     *    | takes talk
  talk  | *           *    *    tablet-gone *     *    | takes talk
  talk  | *           *    *    *           *     *    | same talk
  *     | me          same *    *           *     *    | same out
  *     | my-loose    same *    *           *     *    | settles out
  *     | my-far      same *    *           *     *    | settles out
  *     | left        same *    *           *     *    | takes out
  *     | tablet-gone same *    *           *     *    | takes out
  *     | *           *    *    *           yes   *    | RATE_LIMITED
  *     | *           *    held *           *     *    | CALL_GLARE
  *     | *           *    *    *           *     yes  | CALLEE_BUSY
  *     | -           *    -    left        *     *    | rings +talk
  *     | -           *    -    tablet-left *     *    | rings +talk
  *     | -           *    -    tablet-gone *     *    | rings +talk
  *     | -           *    -    my-loose    *     *    | rings +talk
  *     | -           *    left left        *     *    | rings +in +talk
  *     | -           *    left tablet-left *     *    | rings +in +talk
  *     | -           *    left tablet-gone *     *    | rings +in +talk
  *     | -           *    left my-loose    *     *    | rings +in +talk
  *     | -           *    left *           *     *    | rings +in
  *     | -           *    -    *           *     *    | rings
  *     | *           *    -    left        *     *    | rings +out +talk
  *     | *           *    -    tablet-left *     *    | rings +out +talk
  *     | *           *    -    tablet-gone *     *    | rings +out +talk
  *     | *           *    -    my-loose    *     *    | rings +out +talk
  *     | *           *    -    *           *     *    | rings +out
`

export const placeKinds = [
  ...(['-', 'me', 'my-loose', 'my-far', 'other', 'loose', 'left'] as const),
  ...(['tablet-loose', 'tablet-left', 'tablet-gone'] as const),
] as const
/** The same, or what is another. */
export const wishes = ['same', 'context_type', 'context_id', 'call_type'] as const
type PlaceKind = (typeof placeKinds)[number]

export interface InviteCase {
  readonly uuid: 'new' | 'other' | 'over' | 'old' | 'out' | 'talk' | 'foreign'
  readonly out: PlaceKind
  readonly wish: (typeof wishes)[number]
  readonly in: '-' | 'held' | 'left'
  readonly talk: PlaceKind
  readonly limit: '-' | 'yes'
  readonly busy: '-' | 'yes'
}
type CallName = 'out' | 'in' | 'talk'

export type InviteOutcome =
  | { readonly kind: 'same' | 'settles' | 'takes'; readonly call: CallName | 'over' }
  | {
      readonly kind: 'refused'
      readonly code: 'CALL_ID_CONFLICT' | 'RATE_LIMITED' | 'CALL_GLARE'
      /** The error says what became of the call that the invite names. */
      readonly tellsStatus: boolean
    }
  | { readonly kind: 'busy' | 'rings'; readonly ends: readonly CallName[] }

const keys = ['uuid', 'out', 'wish', 'in', 'talk', 'limit', 'busy'] as const

const parsed = rows
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const words = line.replaceAll('|', ' ').trim().split(/\s+/)
    return { when: words.slice(0, keys.length), what: words.slice(keys.length) }
  })

export const inviteRowCount = parsed.length

/** The number of the row that fits, and what it says. */
export function inviteOutcome(situation: InviteCase): { row: number; outcome: InviteOutcome } {
  const row = parsed.findIndex(({ when }) => keys.every((key, i) => when[i] === '*' || when[i] === situation[key]))
  const what = parsed[row]?.what
  if (what === undefined) throw new Error(`No row fits ${JSON.stringify(situation)}`)
  return { row, outcome: outcomeOf(what) }
}

function outcomeOf([word = '', ...rest]: readonly string[]): InviteOutcome {
  if (word === 'same' || word === 'settles' || word === 'takes')
    return { kind: word, call: rest[0] as CallName | 'over' }
  const ends = rest.map((each) => each.slice(1) as CallName)
  if (word === 'rings') return { kind: 'rings', ends }
  if (word === 'CALLEE_BUSY') return { kind: 'busy', ends }
  return { kind: 'refused', code: word as 'RATE_LIMITED', tellsStatus: rest.includes('status') }
}
