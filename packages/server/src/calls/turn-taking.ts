/** Calls that ring at the members of a group one after another: whose turn is next, as things are at that moment [GROUP1]. */
import { type CallRef, callKey, type Participant } from '../call/call.ts'
import type { CallCommand, Decision } from '../call/command.ts'
import { awaitsTurn, isSecondTurn, nextMembers, type TakesTurns } from '../call/turns.ts'
import type { LiveCallReads } from '../ports/call-store.ts'
import type { Devices } from '../ports/devices.ts'
import type { SessionLookup } from '../ports/sessions.ts'
import type { SteadyClock } from '../time/steady-clock.ts'

export interface TurnTakingOptions {
  readonly store: Pick<LiveCallReads, 'inCall'>
  readonly sessions: Pick<SessionLookup, 'mayRing'>
  readonly devices: Pick<Devices, 'ofMembers'>
  readonly clock: Pick<SteadyClock, 'now'>
  /** Resolves when it is committed. */
  readonly begin: (ref: CallRef, command: CallCommand) => Promise<Decision>
}

/** Members that are looked for at once. */
const lookedForAtOnce = 20

/** The same as `begin`. When time comes to a call that rings at nobody, its next turn begins, too. */
export function createTurnTaking(options: TurnTakingOptions): TurnTakingOptions['begin'] {
  const { begin, clock } = options
  const findNext = createFindNext(options)
  /** By call: the next turn, which several timers may ask for. */
  const underWay = new Map<string, Promise<Decision>>()

  function beginTurn(call: TakesTurns): Promise<Decision> {
    const key = callKey(call)
    const before = underWay.get(key)
    if (before !== undefined) return before
    const turn = findNext(call)
      .then((member) => begin(call, { type: 'turn', member, seen: call.version }))
      .finally(() => underWay.delete(key))
    underWay.set(key, turn)
    return turn
  }

  return async (ref, command) => {
    const decision = await begin(ref, command)
    if (command.type !== 'time' || !decision.ok || !awaitsTurn(decision.call, clock.now())) return decision
    return beginTurn(decision.call)
  }
}

/** The first member of the rest of the round who can be rung: in no call, and connected or with a device. */
function createFindNext({ store, sessions, devices, clock }: TurnTakingOptions) {
  async function firstOf(call: TakesTurns, some: readonly Participant[]): Promise<Participant | undefined> {
    const isThere = await Promise.all(
      some.map(async (one) => {
        const needs = isSecondTurn(call, one.userId) ? 'group' : undefined
        return sessions.mayRing(one, call.startedAt, needs)
      }),
    )
    // A member who comes before the first one who is connected may have a device that can be woken.
    const firstThere = isThere.indexOf(true)
    const away = firstThere < 0 ? some : some.slice(0, firstThere)
    return (await firstWithDevice(call, away)) ?? some[firstThere]
  }

  async function firstWithDevice(call: TakesTurns, some: readonly Participant[]): Promise<Participant | undefined> {
    if (some.length === 0) return undefined
    const of = { product: call.product, role: call.callee.role }
    const ids = some.map(({ userId }) => userId)
    const found = await devices.ofMembers(of, ids, clock.now())
    const owners = new Set(found.map(({ participant }) => participant.userId))
    return some.find(({ userId }) => owners.has(userId))
  }

  return async (call: TakesTurns): Promise<string | null> => {
    const { product, callee, group } = call
    const all = nextMembers(group).map((userId): Participant => ({ product, role: callee.role, userId }))
    const inCall = all.length === 0 ? [] : await store.inCall(all)
    const free = all.filter((_, n) => inCall[n] !== true)
    for (let from = 0; from < free.length; from += lookedForAtOnce) {
      const found = await firstOf(call, free.slice(from, from + lookedForAtOnce))
      if (found !== undefined) return found.userId
    }
    return null
  }
}
