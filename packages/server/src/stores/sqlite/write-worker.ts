import type { Database } from 'bun:sqlite'
import { createBatchWriter } from './batch.ts'
import { openWriter, type SqlValue, type Synchronous, unavailable } from './connection.ts'
import { createEraseWriter, type EraseErrand } from './erasure.ts'
import { createOnlineWriter, type OnlineErrand } from './online.ts'
import { createRemoval } from './outbox.ts'
import { createPruning } from './retention.ts'
import { createRowWriter, type RowErrand } from './row-writes.ts'
import { createTimelineWriter, type TimelineErrand } from './timeline.ts'
import { createHookWriter, type HookErrand } from './webhook-writes.ts'

/*
 * The writer thread: every commit of calls happens here, so that no fsync and no checkpoint stalls the event loop that
 * relays. It does one message after another, and writes nothing that it was not sent.
 */

export interface Open {
  readonly type: 'open'
  readonly path: string
  readonly synchronous: Synchronous
}

export type ToWriter =
  | Open
  | { readonly type: 'try' }
  /** Calls that ended before an instant are removed, the oldest first. */
  | { readonly type: 'prune'; readonly before: number; readonly most: number; readonly past: number }
  /** Rows of the outbox are removed. */
  | { readonly type: 'told'; readonly rows: readonly number[] }
  | HookErrand
  | TimelineErrand
  | EraseErrand
  | OnlineErrand
  | RowErrand
  | { readonly type: 'close' }
  /** A batch. */
  | readonly SqlValue[]

export type FromWriter =
  | { readonly type: 'opened' | 'closed' }
  | { readonly type: 'written'; readonly count: number }
  | {
      readonly type: 'failed'
      readonly of: 'open' | 'batch' | 'errand'
      readonly kind: 'unavailable' | 'unknown'
      readonly message: string
    }
  /** The result of the batch. */
  | readonly number[]

interface Opened {
  readonly db: Database
  readonly write: (batch: readonly SqlValue[]) => number[]
  readonly prune: (before: number, count: number, past: number) => number
  readonly removeTold: (rows: readonly number[]) => number
  readonly writeHooks: (errand: HookErrand) => number
  readonly writeTimeline: (errand: TimelineErrand) => number
  readonly erase: (errand: EraseErrand) => number
  readonly writeOnline: (errand: OnlineErrand) => number
  readonly writeRows: (errand: RowErrand) => number
}

declare const self: Worker
let opened: Opened | undefined

self.onmessage = ({ data }: MessageEvent<ToWriter>) => {
  if (!('type' in data)) answer(attempt('batch', (writer) => writer.write(data)))
  else answer(errand(data))
}

function errand(data: Exclude<ToWriter, readonly SqlValue[]>): FromWriter {
  switch (data.type) {
    case 'open':
      return open(data)
    case 'try':
      return attempt('errand', tryWrite)
    case 'prune':
      return counted(({ prune }) => prune(data.before, data.most, data.past))
    case 'told':
      return counted(({ removeTold }) => removeTold(data.rows))
    case 'settle':
    case 'putOff':
    case 'pruneHooks':
    case 'dropHooks':
    case 'forgetRemovals':
      return counted(({ writeHooks }) => writeHooks(data))
    case 'timeline':
    case 'forgetSide':
    case 'forgetRefused':
    case 'pruneRefused':
      return counted(({ writeTimeline }) => writeTimeline(data))
    case 'eraseCalls':
    case 'eraseHooks':
    case 'countErased':
    case 'forgetErased':
      return counted(({ erase }) => erase(data))
    case 'online':
    case 'eraseOnline':
      return counted(({ writeOnline }) => writeOnline(data))
    case 'rows':
      return counted(({ writeRows }) => writeRows(data))
    case 'close':
      opened?.db.close()
      return { type: 'closed' }
  }
}

const counted = (write: (writer: Opened) => number) =>
  attempt('errand', (writer) => ({ type: 'written', count: write(writer) }))

function answer(message: FromWriter): void {
  self.postMessage(message)
}

function open({ path, synchronous }: Open): FromWriter {
  try {
    const db = openWriter(path, synchronous)
    opened = {
      db,
      write: createBatchWriter(db),
      prune: createPruning(db),
      removeTold: createRemoval(db),
      writeHooks: createHookWriter(db),
      writeTimeline: createTimelineWriter(db),
      erase: createEraseWriter(db),
      writeOnline: createOnlineWriter(db),
      writeRows: createRowWriter(db),
    }
    return { type: 'opened' }
  } catch (error) {
    return failed('open', error)
  }
}

function attempt(of: 'batch' | 'errand', action: (writer: Opened) => FromWriter): FromWriter {
  if (opened === undefined) throw new Error('The writer has no database yet.')
  try {
    return action(opened)
  } catch (error) {
    return failed(of, error)
  }
}

function failed(of: 'open' | 'batch' | 'errand', error: unknown): FromWriter {
  const { kind, message } = unavailable(error)
  return { type: 'failed', of, kind, message }
}

/** Commits the first page as it is [HEALTH1]; nothing reads this number. */
function tryWrite({ db }: Opened): FromWriter {
  db.run('PRAGMA user_version = 1')
  return { type: 'written', count: 1 }
}
