import { createHash } from 'node:crypto'
import type { MaybePromise } from '../../ports/maybe.ts'
import { auditColumns } from './audit-rows.ts'
import { callColumns, eventColumns, type RowValue } from './rows.ts'
import { timelineColumns } from './timeline-rows.ts'

/*
 * Everything that a store holds, as rows that mean the same in each of them: what a migration from one to another reads,
 * and compares afterwards.
 */

/** By column. Booleans are 1 or 0, bytes are hexadecimal. */
export type ContentRow = Readonly<Record<string, RowValue>>

/** Calls in the order of their creation, and all of their events, by call and version. */
export interface CallPage {
  /** Each with its `id`. */
  readonly calls: readonly ContentRow[]
  /** Each with the id of its call as `call_id`. */
  readonly events: readonly ContentRow[]
}

/** Product keys by key_id, their secrets by key_id and hash, settings by product. */
export interface ProductContent {
  readonly keys: readonly ContentRow[]
  readonly secrets: readonly ContentRow[]
  readonly settings: readonly ContentRow[]
}

export interface ContentCounts {
  readonly calls: number
  readonly events: number
}

/** A store as it is read for a migration; nothing of it changes meanwhile. */
export interface Content {
  counts(): MaybePromise<ContentCounts>
  /** The calls after an id, at most `pageSize`; none if there are no more. */
  callsAfter(id: number): MaybePromise<CallPage>
  products(): MaybePromise<ProductContent>
  webhookEndpoints(): MaybePromise<readonly ContentRow[]>
}

/** Equal for two contents exactly if their calls and events are equal, in the same order. */
export interface Fingerprint extends ContentCounts {
  readonly live: number
  /** SHA-256 of all calls with their events, hexadecimal. */
  readonly sha256: string
}

/** A page is some hundred KiB. */
export const pageSize = 500

export const keyColumns = ['key_id', 'products', 'disabled', 'origin', 'created_at']
export const secretColumns = ['key_id', 'secret_hash', 'valid_until']

/** Tables whose rows mean the same in both stores: each row is copied as it is. No column may be NULL. */
export const plainTables = {
  devices: ['product', 'role', 'user_id', 'device_id', 'address', 'address_hash', 'registered_at'],
  revocations: ['participant', 'not_before', 'changed_at'],
  call_timeline: timelineColumns,
  online: ['product', 'role', 'user_id', 'node'],
  call_groups: ['product', 'role', 'name', 'strategy', 'member_ring_ms', 'ring_ms'],
  call_group_members: ['product', 'role', 'group_name', 'turn', 'user_id'],
  audit: auditColumns,
} as const
export type PlainTable = keyof typeof plainTables

/** What a delivery that did not arrive is: its next attempt comes when it is copied. */
export const leftColumns = [
  'id',
  'endpoint_id',
  'subject',
  'version',
  'type',
  'body',
  'created_at',
  'status',
  'attempts',
  'ended_at',
  'response_status',
  'response',
]

/** All pages in order; one is in memory at a time. */
export async function* pagesOf(content: Content): AsyncGenerator<CallPage> {
  for (let last = 0; ; ) {
    const page = await content.callsAfter(last)
    const end = page.calls.at(-1)
    if (end === undefined) return
    yield page
    last = end.id as number
  }
}

export interface FingerprintTaker {
  add(page: CallPage): void
  finish(): Fingerprint
}

/** Of pages as they come. The ids of rows are not part of it: each store has its own. */
export function takeFingerprint(): FingerprintTaker {
  const hash = createHash('sha256')
  const counts = { calls: 0, events: 0, live: 0 }
  return {
    add({ calls, events }) {
      let next = 0
      for (const call of calls) {
        hash.update(lineOf(call, callColumns))
        counts.calls++
        if (call.ended_at === null) counts.live++
        for (let event = events[next]; event !== undefined && event.call_id === call.id; event = events[++next]) {
          hash.update(lineOf(event, eventColumns))
          counts.events++
        }
      }
      if (next !== events.length) throw new Error('An event is not of a call of its page.')
    },
    finish: () => ({ ...counts, sha256: hash.digest('hex') }),
  }
}

export async function fingerprintOf(content: Content): Promise<Fingerprint> {
  const fingerprint = takeFingerprint()
  for await (const page of pagesOf(content)) fingerprint.add(page)
  return fingerprint.finish()
}

/** JSON says by itself where a value ends. */
function lineOf(row: ContentRow, columns: readonly string[]): string {
  return `${JSON.stringify(columns.map((column) => row[column] ?? null))}\n`
}

export function sameRow(a: ContentRow, b: ContentRow, columns: readonly string[]): boolean {
  return lineOf(a, columns) === lineOf(b, columns)
}
