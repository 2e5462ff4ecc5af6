import type { GroupStrategy } from '@ringwire/protocol/groups'
import type { Participant } from '../call/call.ts'
import type { MaybePromise } from './maybe.ts'

/** A group of a product: members are participants of its role [GROUP1]. */
export interface GroupName {
  readonly product: string
  readonly role: string
  readonly name: string
}

/** How a group rings. */
export interface GroupSettings {
  readonly strategy: GroupStrategy
  /** How long one member rings before the next one, in ms. */
  readonly memberRingMs: number
  /** How long a call of the group rings in all, in ms. */
  readonly ringMs: number
}

export interface Group extends GroupName, GroupSettings {
  /** Their user_ids, each once, in the order of the list. */
  readonly members: readonly string[]
}

/** A group in a list. */
export interface GroupSummary extends GroupName, GroupSettings {
  readonly memberCount: number
}

/**
 * The groups of products.
 *
 * Guarantees: a group is put whole. Of two that put it at once the later one counts, with all of its members and no other's.
 * What one process writes, the next read of any process sees. Rejections are `StoreError`s.
 */
export interface Groups {
  put(group: Group): MaybePromise<void>
  get(name: GroupName): MaybePromise<Group | undefined>
  /** False where there was none. */
  remove(name: GroupName): MaybePromise<boolean>
  /** Groups of a product after a group, by role and name, so many at the most. The first ones come after a blank role. */
  list(after: GroupName, limit: number): MaybePromise<readonly GroupSummary[]>
  /** The names of the groups that somebody is a member of, in their order. */
  of(participant: Participant): MaybePromise<readonly string[]>
  /** Takes somebody out of all groups; answers out of how many. */
  forget(participant: Participant): MaybePromise<number>
}
