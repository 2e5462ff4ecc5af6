import { StoreError } from '../../ports/store-error.ts'
import { answerWidth, type Encoded } from './batch.ts'
import type { SqlValue } from './connection.ts'
import type { EraseErrand } from './erasure.ts'
import type { OnlineErrand } from './online.ts'
import type { RowErrand } from './row-writes.ts'
import type { TimelineErrand } from './timeline.ts'
import type { HookErrand } from './webhook-writes.ts'
import type { FromWriter, Open, ToWriter } from './write-worker.ts'

/** What becomes of a transition: what is answered of each step, or the error. */
export interface Settle {
  done(results: readonly number[]): void
  failed(error: StoreError): void
}

export interface GroupCommitOptions {
  readonly startWorker: () => Worker
  readonly open: Open
  /**
   * A commit that takes longer is given up: its outcome is unknown. So are errands if the writer answers nothing for this time.
   * And a transition or an errand waits this long for a writer.
   */
  readonly limitMs: number
  /** Runs whenever a writer is there again, before anything is decided: what is stored may have changed. */
  readonly onOpened: () => Promise<void>
}

/** Figures since the start, for metrics and tests. */
export interface CommitCounts {
  readonly commits: number
  readonly transitions: number
  readonly writersStarted: number
}

/** A batch stays well within the time limit, whatever has piled up. */
const maxBatch = 1000
const firstBackoffMs = 50
const maxBackoffMs = 2000

interface Waiting {
  readonly encoded: Encoded
  readonly settle: Settle
}

/**
 * The writer thread, as seen by the main thread. A transition is posted at once when no commit is in flight; what
 * comes meanwhile goes together with the next one. One batch is in flight at most.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions
  /** `down`: between writers; transitions wait. `failed`: that lasts too long; they are refused. */
  #state: 'down' | 'failed' | 'up' | 'closed' = 'down'
  #worker: Worker | undefined
  #queue: Waiting[] = []
  #inFlight: Waiting[] | undefined
  #limit: ReturnType<typeof setTimeout> | undefined
  /** Work that is not a batch, in the order in which it was sent: so the writer answers. */
  #errands: { resolve(count: number): void; reject(error: StoreError): void }[] = []
  #errandLimit: ReturnType<typeof setTimeout> | undefined
  #whenUp: { resolve(): void; reject(error: StoreError): void }[] = []
  #whenIdle: (() => void) | undefined
  #patience: ReturnType<typeof setTimeout> | undefined
  #restart: ReturnType<typeof setTimeout> | undefined
  #backoffMs = firstBackoffMs
  #lastError: StoreError | undefined
  #counts = { commits: 0, transitions: 0, writersStarted: 0 }

  constructor(options: GroupCommitOptions) {
    this.#options = options
  }

  get isUp(): boolean {
    return this.#state === 'up'
  }

  get counts(): CommitCounts {
    return { ...this.#counts }
  }

  start(): Promise<void> {
    this.#startWorker()
    return this.whenUp()
  }

  /** Resolves once a writer is there and what is stored was read again; rejects where that takes too long. */
  whenUp(): Promise<void> {
    if (this.#state === 'up') return Promise.resolve()
    if (this.#state !== 'down') return Promise.reject(this.#refusal())
    this.#patience ??= setTimeout(() => this.#refuseAll(), this.#options.limitMs)
    return new Promise((resolve, reject) => this.#whenUp.push({ resolve, reject }))
  }

  submit(encoded: Encoded, settle: Settle): void {
    if (this.#state === 'closed' || this.#state === 'failed') {
      settle.failed(this.#refusal())
    } else {
      this.#queue.push({ encoded, settle })
      if (this.#inFlight === undefined) this.#post()
    }
  }

  async tryWrite(): Promise<void> {
    await this.#run({ type: 'try' })
  }

  /** Removes some of the calls that ended before an instant: `most` at the most, after the first `past`; answers how many. */
  prune(before: number, most: number, past: number): Promise<number> {
    return this.#run({ type: 'prune', before, most, past })
  }

  /** Removes rows of the outbox; answers how many were there. */
  told(rows: readonly number[]): Promise<number> {
    return this.#run({ type: 'told', rows })
  }

  /** Writes what became of webhooks; answers how many rows. */
  hooks(errand: HookErrand): Promise<number> {
    return this.#run(errand)
  }

  /** Adds entries to timelines; answers how many. */
  timeline(errand: TimelineErrand): Promise<number> {
    return this.#run(errand)
  }

  /** Blanks what names a participant; answers how many rows. */
  erase(errand: EraseErrand): Promise<number> {
    return this.#run(errand)
  }

  /** Writes who comes and goes; answers for how many that is news. */
  online(errand: OnlineErrand): Promise<number> {
    return this.#run(errand)
  }

  /** Writes rows that are seldom written; answers how many the first statement changed. */
  rows(errand: RowErrand): Promise<number> {
    return this.#run(errand)
  }

  async #run(errand: ToWriter): Promise<number> {
    while (this.#state !== 'up') await this.whenUp()
    return new Promise((resolve, reject) => {
      if (this.#errands.push({ resolve, reject }) === 1) this.#awaitErrand()
      this.#send(errand)
    })
  }

  /** The limit counts from the writer's last answer: of many errands that wait in it, none is given up for that. */
  #awaitErrand(): void {
    clearTimeout(this.#errandLimit)
    const [first] = this.#errands
    if (first === undefined) return
    const isMissing = () => this.#errands[0] === first
    this.#errandLimit = setTimeout(() => this.#giveUp(isMissing, 'The write took too long.'), this.#options.limitMs)
  }

  /** Commits what is waiting, then ends the writer. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    while (this.#state === 'up' && (this.#inFlight !== undefined || this.#queue.length > 0)) {
      await new Promise<void>((resolve) => {
        this.#whenIdle = resolve
      })
    }
    const graceful = this.#state === 'up'
    const worker = this.#worker
    this.#state = 'closed'
    clearTimeout(this.#restart)
    this.#refuseAll()
    if (worker === undefined) return
    await new Promise<void>((resolve) => {
      // A writer that hangs in the disk is not waited for: nobody waits for its answer any more.
      const patience = setTimeout(resolve, this.#options.limitMs)
      worker.addEventListener('close', () => {
        clearTimeout(patience)
        resolve()
      })
      worker.onmessage = ({ data }: MessageEvent<FromWriter>) => {
        // Errands that were sent before are answered first.
        if ('type' in data && data.type === 'closed') worker.terminate()
        else this.#receive(data)
      }
      if (graceful) this.#send({ type: 'close' })
      else worker.terminate()
    })
  }

  #send(message: ToWriter): void {
    this.#worker?.postMessage(message)
  }

  #post(): void {
    if (this.#state !== 'up' || this.#queue.length === 0) return
    const batch = this.#queue.length <= maxBatch ? this.#queue : this.#queue.slice(0, maxBatch)
    this.#queue = batch === this.#queue ? [] : this.#queue.slice(maxBatch)
    this.#inFlight = batch
    const values: SqlValue[] = []
    for (const { encoded } of batch) {
      values.push(encoded.size)
      for (const value of encoded.values) values.push(value)
    }
    const isMissing = () => this.#inFlight === batch
    this.#limit = setTimeout(() => this.#giveUp(isMissing, 'The commit took too long.'), this.#options.limitMs)
    this.#send(values)
  }

  #receive(message: FromWriter): void {
    if (!('type' in message)) this.#committed(message)
    else if (message.type === 'opened') void this.#opened()
    else if (message.type === 'written') this.#errands.shift()?.resolve(message.count)
    else if (message.type === 'failed') {
      const error = new StoreError(message.kind, message.message)
      if (message.of === 'errand') this.#errands.shift()?.reject(error)
      else if (message.of === 'open' || error.kind === 'unknown') this.#lost(error)
      else this.#notCommitted(error)
    }
    this.#awaitErrand()
  }

  #committed(results: readonly number[]): void {
    const batch = this.#taken()
    this.#backoffMs = firstBackoffMs
    this.#counts.commits++
    this.#counts.transitions += batch.length
    this.#post()
    let from = 0
    for (const { encoded, settle } of batch) {
      const width = answerWidth * encoded.size
      settle.done(width === results.length ? results : results.slice(from, from + width))
      from += width
    }
    this.#idle()
  }

  #notCommitted(error: StoreError): void {
    const batch = this.#taken()
    this.#post()
    for (const { settle } of batch) settle.failed(error)
    this.#idle()
  }

  #taken(): Waiting[] {
    clearTimeout(this.#limit)
    const batch = this.#inFlight ?? []
    this.#inFlight = undefined
    return batch
  }

  #idle(): void {
    if (this.#inFlight === undefined && this.#queue.length === 0) this.#whenIdle?.()
  }

  /** The answer may be waiting behind a main thread that was itself held up: it gets one more turn. */
  #giveUp(isMissing: () => boolean, message: string): void {
    setTimeout(() => {
      if (isMissing()) this.#lost(new StoreError('unknown', message))
    }, 50)
  }

  #startWorker(): void {
    const worker = this.#options.startWorker()
    this.#worker = worker
    this.#counts.writersStarted++
    worker.onmessage = ({ data }: MessageEvent<FromWriter>) => this.#receive(data)
    worker.onerror = (event) => {
      event.preventDefault()
      this.#lost(new StoreError('unknown', 'The writer thread failed.', { cause: event.error }))
    }
    worker.addEventListener('close', () => {
      this.#worker = undefined
      this.#lost(new StoreError('unknown', 'The writer thread ended.'))
      // Only now: a writer that is still at its last commit must not be overtaken by the next one.
      this.#startLater()
    })
    this.#send(this.#options.open)
  }

  async #opened(): Promise<void> {
    const worker = this.#worker
    try {
      await this.#options.onOpened()
    } catch (error) {
      if (worker === this.#worker) this.#lost(new StoreError('unavailable', String(error)))
      return
    }
    // It may have ended while the calls were read, or nobody waits for it any more.
    if (worker !== this.#worker || this.#state === 'closed') return
    this.#state = 'up'
    this.#lastError = undefined
    clearTimeout(this.#patience)
    this.#patience = undefined
    const waiting = this.#whenUp
    this.#whenUp = []
    for (const { resolve } of waiting) resolve()
    this.#post()
  }

  /** The writer is of no more use. Steps that were not posted yet stay in the queue for the next one. */
  #lost(error: StoreError): void {
    if (this.#state === 'up') this.#state = 'down'
    this.#lastError ??= error
    const worker = this.#worker
    if (worker !== undefined) {
      worker.onmessage = null
      worker.terminate()
    }
    const batch = this.#taken()
    const errands = this.#errands
    this.#errands = []
    this.#awaitErrand()
    for (const { reject } of errands) reject(error)
    for (const { settle } of batch) settle.failed(error)
    this.#idle()
    if (this.#state === 'down') this.#patience ??= setTimeout(() => this.#refuseAll(), this.#options.limitMs)
  }

  #startLater(): void {
    if (this.#state === 'closed') return
    this.#restart = setTimeout(() => this.#startWorker(), this.#backoffMs)
    this.#backoffMs = Math.min(maxBackoffMs, this.#backoffMs * 2)
  }

  /** Nothing of it was written. */
  #refuseAll(): void {
    if (this.#state === 'down') this.#state = 'failed'
    clearTimeout(this.#patience)
    this.#patience = undefined
    const queue = this.#queue
    const waiting = this.#whenUp
    this.#queue = []
    this.#whenUp = []
    for (const { settle } of queue) settle.failed(this.#refusal())
    for (const { reject } of waiting) reject(this.#refusal())
    this.#idle()
  }

  #refusal(): StoreError {
    if (this.#state === 'closed') return new StoreError('unavailable', 'The store is closed.')
    const why = this.#lastError === undefined ? '' : `: ${this.#lastError.message}`
    return new StoreError('unavailable', `The store has no writer${why}`)
  }
}
