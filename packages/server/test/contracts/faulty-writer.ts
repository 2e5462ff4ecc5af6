import { Database } from 'bun:sqlite'
import '../../src/stores/sqlite/write-worker.ts'
import type { ToWriter } from '../../src/stores/sqlite/write-worker.ts'

/*
 * The real writer thread with a fault, chosen by the environment variable FAULT:
 *   before     dies when a batch comes, before it is written
 *   after      dies when a batch is written, before it says so
 *   hang       never answers a batch, and does not write it
 *   idle       never answers an errand, and does not write it
 *   deaf       never opens the database
 *   (none)     no fault; like all the others it takes pragmas for its connection
 */

/** max_page_count brings real SQLITE_FULL, query_only a file that cannot be written. */
export interface Pragma {
  readonly type: 'pragma'
  readonly pragma: string
}

declare const self: Worker
const fault = Bun.env.FAULT
const opened: Database[] = []

const run = Database.prototype.run
Database.prototype.run = function (this: Database, ...args) {
  if (!opened.includes(this)) opened.push(this)
  return run.apply(this, args)
} as typeof run

const real = self.onmessage as (event: MessageEvent) => void
const answer = self.postMessage.bind(self)

self.onmessage = (event: MessageEvent<ToWriter | Pragma>) => {
  const { data } = event
  if ('type' in data) {
    if (data.type === 'pragma') opened[0]?.run(`PRAGMA ${data.pragma}`)
    else if (fault !== 'deaf' && (fault !== 'idle' || data.type === 'open')) real(event)
    return
  }
  if (fault === 'before') throw new Error('FAULT before')
  if (fault === 'after') self.postMessage = () => {}
  if (fault !== 'hang') real(event)
  self.postMessage = answer
  if (fault === 'after') throw new Error('FAULT after')
}
