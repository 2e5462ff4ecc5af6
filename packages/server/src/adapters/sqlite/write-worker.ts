import type { Database } from 'bun:sqlite'
import { createBatchWriter } from './batch.ts'
import { openWriter, type SqlValue, type Synchronous, unavailable } from './connection.ts'

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
  | { readonly type: 'ping' }
  | { readonly type: 'close' }
  /** A batch. */
  | readonly SqlValue[]

export type FromWriter =
  | { readonly type: 'opened' | 'pong' | 'closed' }
  | {
      readonly type: 'failed'
      readonly of: 'open' | 'batch' | 'ping'
      readonly kind: 'unavailable' | 'unknown'
      readonly message: string
    }
  /** What became of the batch. */
  | readonly number[]

interface Opened {
  readonly db: Database
  readonly write: (batch: readonly SqlValue[]) => number[]
  failing: boolean
}

declare const self: Worker
let opened: Opened | undefined

self.onmessage = ({ data }: MessageEvent<ToWriter>) => {
  if (!('type' in data)) answer(attempt('batch', (writer) => writer.write(data)))
  else if (data.type === 'open') answer(open(data))
  else if (data.type === 'ping') answer(attempt('ping', probe))
  else {
    opened?.db.close()
    answer({ type: 'closed' })
  }
}

function answer(message: FromWriter): void {
  self.postMessage(message)
}

function open({ path, synchronous }: Open): FromWriter {
  try {
    const db = openWriter(path, synchronous)
    opened = { db, write: createBatchWriter(db), failing: false }
    return { type: 'opened' }
  } catch (error) {
    return failed('open', error)
  }
}

function attempt(of: 'batch' | 'ping', action: (writer: Opened) => FromWriter): FromWriter {
  if (opened === undefined) throw new Error('The writer has no database yet.')
  try {
    const done = action(opened)
    opened.failing = false
    return done
  } catch (error) {
    opened.failing = true
    return failed(of, error)
  }
}

function failed(of: 'open' | 'batch' | 'ping', error: unknown): FromWriter {
  const { kind, message } = unavailable(error)
  return { type: 'failed', of, kind, message }
}

/** Whether a write could begin; after one that failed, whether one can be committed again [HEALTH1]. */
function probe({ db, failing }: Opened): FromWriter {
  db.run('BEGIN IMMEDIATE')
  try {
    // Writes the first page; nothing reads this number.
    if (failing) db.run('PRAGMA user_version = 1')
    db.run('COMMIT')
  } catch (error) {
    if (db.inTransaction) db.run('ROLLBACK')
    throw error
  }
  return { type: 'pong' }
}
