import { randomBytes } from 'node:crypto'
import type { Participant } from '../call/call.ts'
import type { MaybePromise } from './maybe.ts'

/** Who changed something. `name`: what an operator calls itself, the id of a product key, or the user of a command. */
export interface AuditActor {
  readonly kind: 'operator' | 'key' | 'cli'
  readonly name: string
}

/** A change that was made [ADM3]. */
export interface AuditEntry {
  /** Begins with the time: `auditIdAt`. */
  readonly id: string
  readonly actor: AuditActor
  /** `key.rotate`, `call.end`; what it is made to, and then what is made. */
  readonly action: string
  /** Empty where it is of no product. */
  readonly product: string
  /** Whom it is about; the user_id is empty once it was erased. */
  readonly participant: Pick<Participant, 'role' | 'userId'> | null
  /** The call_uuid, the key, the endpoint or the group that was changed; empty where there is none. */
  readonly subject: string
  /** Never a secret, and nothing that names a participant. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** Entries before an id, newest first. */
export interface AuditQuery {
  /** Of this product; undefined: of all, and of none. */
  readonly product: string | undefined
  readonly before: string | undefined
  readonly limit: number
}

/**
 * A change, with its author and its time.
 *
 * Guarantees: an entry is written once, however often it is written. What one process writes, the next read of any process
 * sees. Nothing of an entry changes but that the user_id goes when its participant is erased. Rejections are `StoreError`s.
 */
export interface AuditStore {
  add(entry: AuditEntry): MaybePromise<void>
  list(query: AuditQuery): MaybePromise<readonly AuditEntry[]>
  /** Those about a participant, newest first. */
  about(participant: Participant, query: Omit<AuditQuery, 'product'>): MaybePromise<readonly AuditEntry[]>
  /** Takes the user_id out of the entries about somebody; answers out of how many. */
  forget(participant: Participant): MaybePromise<number>
  /** Removes some of the entries before an id; answers how many, 0 when none is left. */
  prune(before: string): MaybePromise<number>
}

/** An id for an entry of this instant; `at` in ms since the epoch. */
export function newAuditId(at: number): string {
  return auditIdAt(at) + randomBytes(8).toString('hex')
}

/** Every id of an earlier instant is less. */
export function auditIdAt(at: number): string {
  return Math.max(0, Math.trunc(at)).toString(16).padStart(12, '0')
}

/** When an entry was written, in ms since the epoch. */
export function timeOfAudit({ id }: Pick<AuditEntry, 'id'>): number {
  return Number.parseInt(id.slice(0, 12), 16)
}
