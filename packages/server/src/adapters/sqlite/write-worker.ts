import type { Database } from 'bun:sqlite'
import { createBatchWriter } from './batch.ts'
import { openWriter, type SqlValue, type Synchronous, unavailable } from './connection.ts'

/*
 * The writer thread: every commit of calls happens here, so that no fsync and no checkpoint stalls the event loop that
 * relays. It does one message after another, and writes nothing that it was not sent.
 */

export type ToWriter =
  | { readonly type: 'open'; readonly path: string; readonly synchronous: Synchronous }
  | { readonly type: 'ping' }
  | { readonly type: 'close' }
  /** A batch. */
  | readonly SqlValue[]

export type FromWriter =
  | { readonly type: 'opened' | 'pong' | 'closed' }
  | {
      readonly type: 'failed'
      readonly of: 'batch' | 'ping'
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
  if ('type' in data && data.type === 'open') {
    const db = openWriter(data.path, data.synchronous)
    opened = { db, write: createBatchWriter(db), failing: false }
    return answer({ type: 'opened' })
  }
  if (opened === undefined) throw new Error('The writer has no database yet.')
  if (!('type' in data)) return answer(attempt(opened, 'batch', (it) => it.write(data)))
  if (data.type === 'ping') return answer(attempt(opened, 'ping', probe))
  opened.db.close()
  answer({ type: 'closed' })
}

function answer(message: FromWriter): void {
  self.postMessage(message)
}

function attempt(writer: Opened, of: 'batch' | 'ping', action: (writer: Opened) => FromWriter): FromWriter {
  try {
    const done = action(writer)
    writer.failing = false
    return done
  } catch (error) {
    writer.failing = true
    const { kind, message } = unavailable(error)
    return { type: 'failed', of, kind, message }
  }
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
