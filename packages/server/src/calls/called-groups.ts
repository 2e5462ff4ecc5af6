/** Whom an invite names, and the group that is called as it is by then [GROUP1]. */
import type { CallInvite } from '@ringwire/protocol/events/call'
import { type Participant, sameParticipant } from '../call/call.ts'
import type { CalledGroup } from '../call/invite.ts'
import type { LiveCallReads } from '../ports/call-store.ts'
import type { Groups } from '../ports/groups.ts'
import type { SessionLookup } from '../ports/sessions.ts'

/** Blank is the user_id of the callee where a group is called. */
export interface Named {
  readonly callee: { readonly userId: string; readonly role: string }
  readonly group: string | undefined
}

export interface GroupToCall {
  readonly group: CalledGroup
  /** The longest ring, in ms. */
  readonly ringMs: number
}

export interface CalledGroupsOptions {
  readonly groups: Pick<Groups, 'get'>
  readonly store: Pick<LiveCallReads, 'inCall' | 'lastAnswered'>
}

/** Whom the client calls. The parser of messages sees to it that exactly one of the two is named. */
export function readNamed({ callee_user_id: userId, callee_group: group, callee_role: role }: CallInvite): Named {
  return group == null
    ? { callee: { userId: userId ?? '', role }, group: undefined }
    : { callee: { userId: '', role }, group }
}

/** For whom an invite counts [INV8]. No user_id has a NUL in it. */
export function countedAs({ callee, group }: Named, product: string): Participant {
  return { product, role: callee.role, userId: group === undefined ? callee.userId : `\0${group}` }
}

/** The group that is named, as it is now. Undefined where a person is called. */
export type FindGroup = (caller: Participant, named: Named) => Promise<GroupToCall | 'unknown' | undefined>

export function createFindGroup({ groups, store }: CalledGroupsOptions): FindGroup {
  /** Somebody who answered no call yet is the most idle. Between equals, the order of the list decides. */
  async function longestIdleFirst(members: readonly Participant[]): Promise<readonly Participant[]> {
    const since = members.length === 0 ? [] : await store.lastAnswered(members)
    const sorted = members.map((member, n) => ({ member, since: since[n] ?? Number.NEGATIVE_INFINITY }))
    return sorted.sort((a, b) => (a.since === b.since ? 0 : a.since - b.since)).map(({ member }) => member)
  }

  return async (caller, named) => {
    if (named.group === undefined) return undefined
    const { product } = caller
    const { role } = named.callee
    const found = await groups.get({ product, role, name: named.group })
    if (found === undefined) return 'unknown'
    const all = found.members
      .map((userId): Participant => ({ product, role, userId }))
      .filter((member) => !sameParticipant(member, caller))
    const inCall = all.length === 0 ? [] : await store.inCall(all)
    const free = all.filter((_, n) => inCall[n] !== true)
    const called = { name: found.name, isBusy: all.length > 0 && free.length === 0 }
    const { strategy, memberRingMs, ringMs } = found
    if (strategy === 'all') return { group: { ...called, members: idsOf(free) }, ringMs }
    const members = idsOf(strategy === 'in_turn' ? all : await longestIdleFirst(all))
    return { group: { ...called, members, memberRingMs }, ringMs }
  }
}

const idsOf = (members: readonly Participant[]) => members.map(({ userId }) => userId)

/** The number of members whose sessions are read at once. */
const askedAtOnce = 50

/** Whether anybody of these has a session. */
export async function isAnybodyThere(
  sessions: Pick<SessionLookup, 'liveOf'>,
  participants: readonly Participant[],
  now: number,
): Promise<boolean> {
  for (let from = 0; from < participants.length; from += askedAtOnce) {
    const some = participants.slice(from, from + askedAtOnce)
    const found = await Promise.all(some.map(async (one) => sessions.liveOf(one, undefined, now)))
    if (found.some((ids) => ids.length > 0)) return true
  }
  return false
}
