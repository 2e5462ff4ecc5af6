import type { Call, CallGroup, RingingCall, Turns } from './call.ts'
import { changed, type Decision, unchanged } from './command.ts'
import { type Address, elsewhereData, ringingData } from './effects.ts'

/*
 * Calls that ring at the members of a group one after another [GROUP1]. Between two turns such a call rings at nobody: what
 * ends a turn is committed by itself, and time begins the next one. So a turn is never lost with the node that would begin it.
 *
 *             the member can be rung
 *   between ───────────────────────▶ its turn
 *    │  ▲  ◀─────────────────────────┘   it declines, leaves the group, or its time is over
 *    └──┘
 *    nobody of the rest of the round can be rung
 */

/** How long the next round waits after one that rang nobody, in ms. */
const pauseMs = 1_000

/** Before the first turn. */
export function firstTurn(memberRingMs: number, now: number): Turns {
  return { member: null, until: now, memberRingMs, next: 0, count: 0, hasRung: false, rang: [] }
}

/** A call that rings at nobody until its next turn begins, and it is time for that. */
export function awaitsTurn(call: Call, now: number): call is TakesTurns {
  const turns = call.status === 'ringing' ? call.group?.turns : undefined
  return turns !== undefined && turns.member === null && turns.until <= now
}

export type TakesTurns = RingingCall & { readonly group: InTurns }
type InTurns = CallGroup & { readonly turns: Turns }

/** Whether it has rung at a member before: only clients that know groups understand that it rings again. */
export function isSecondTurn({ group }: TakesTurns, userId: string): boolean {
  return group.turns.rang.includes(userId)
}

/** The members who may have a turn in the rest of this round, in order. */
export function nextMembers({ members, declined, turns }: InTurns): readonly string[] {
  return members.slice(turns.next).filter((userId) => !declined.includes(userId))
}

/** The turn of a member begins; null: nobody of the rest of the round can be rung. `seen`: the version on which that was found. */
export function beginTurn(call: Call, member: string | null, seen: number, now: number): Decision {
  if (call.version !== seen || !awaitsTurn(call, now)) return unchanged(call)
  return member === null ? endRound(call, now) : ringMember(call, member, now)
}

function ringMember(call: TakesTurns, member: string, now: number): Decision {
  const { members, turns } = call.group
  const rang = turns.rang.includes(member) ? turns.rang : [...turns.rang, member]
  const until = Math.min(now + turns.memberRingMs, call.ringExpiresAt)
  const next = withTurns(
    { ...call, silenced: [] },
    { member, until, next: members.indexOf(member) + 1, count: turns.count + 1, hasRung: true, rang },
  )
  const to = { place: 'rung', except: [], member } as const
  const notices = [{ to, event: 'call.ringing', data: ringingData(next, now) }] as const
  return changed(next, { type: 'turn', at: now, by: null, notices })
}

function endRound(call: TakesTurns, now: number): Decision {
  const { hasRung } = call.group.turns
  const until = hasRung ? now : now + pauseMs
  const next = withTurns(call, { until, next: 0, hasRung: false })
  return changed(next, { type: 'round_over', at: now, by: null, notices: [] })
}

/** The time of a turn is over: its member hears that. Undefined where none is. */
export function passTurn(call: Call, now: number): Decision | undefined {
  if (call.status !== 'ringing' || call.group?.turns === undefined) return undefined
  const { group, silenced } = call
  const { member, until } = call.group.turns
  if (member === null || until > now) return undefined
  const next = { ...call, version: call.version + 1, group: withoutTurn(group, member, now) }
  const to = { place: 'rung', except: silenced, member } as const
  const notices = [{ to, event: 'call.cancelled', data: elsewhereData(next, 'next_member', null) }] as const
  return changed(next, { type: 'passed', at: now, by: null, notices })
}

/** Everybody at whom a call rings now; undefined: nobody, between two turns. */
export function rungAddress({ group, silenced: except }: RingingCall): Address | undefined {
  if (group?.turns === undefined) return { place: 'rung', except }
  const { member } = group.turns
  return member === null ? undefined : { place: 'rung', except, member }
}

/** Ends the turn of this member, if it has one. */
export function withoutTurn(group: CallGroup, userId: string, now: number): CallGroup {
  const { turns } = group
  if (turns?.member !== userId) return group
  return { ...group, turns: { ...turns, member: null, until: now } }
}

/** Somebody is no member any more. */
export function withoutMember(group: CallGroup, userId: string): CallGroup {
  const { members, turns } = group
  const left = { ...group, members: members.filter((member) => member !== userId) }
  if (turns === undefined) return left
  const next = members.indexOf(userId) < turns.next ? turns.next - 1 : turns.next
  return { ...left, turns: { ...turns, next, rang: turns.rang.filter((member) => member !== userId) } }
}

/** The clock jumped: what remained of the turn, or until the next one, still remains. */
export function shiftTurn(call: RingingCall, ms: number): RingingCall {
  const { group } = call
  if (group?.turns === undefined) return call
  return { ...call, group: { ...group, turns: { ...group.turns, until: group.turns.until + ms } } }
}

/** The call is over: of the members only those are kept at whom it rang. */
export function withoutTurns({ turns, ...group }: CallGroup): CallGroup {
  return turns === undefined ? group : { ...group, members: turns.rang }
}

function withTurns(call: TakesTurns, change: Partial<Turns>): RingingCall {
  const { group } = call
  return { ...call, version: call.version + 1, group: { ...group, turns: { ...group.turns, ...change } } }
}
