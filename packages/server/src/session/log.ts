import { isRelay, type Push } from '../ports/push.ts'
import { sessionLogLimits, waitingLimits } from '../ports/sessions.ts'

/** Bounds of a log with a socket [RES1]; one that waits for a socket has those of `waitingLimits`. */
const attachedBounds = { entries: sessionLogLimits.events, bytes: sessionLogLimits.bytes } as const

export interface LogEntry {
  readonly seq: number
  readonly push: Push
  /** When it was first appended anywhere. */
  readonly at: number
  readonly bytes: number
}

/** The changes of a log since the last save: all of it, or its beginning and its end. */
export interface LogChange {
  /** It was changed in its middle: `added` is all of it. */
  readonly whole: boolean
  /** So many of the oldest that were saved are gone. */
  readonly dropped: number
  readonly added: readonly LogEntry[]
  /** How many there are after it. */
  readonly size: number
}

/**
 * The number of oldest entries that may be gone before a save says so: each time costs the rest of the session's state,
 * too.
 */
const mostUnsaid = 64

/**
 * The pushes that a session was sent and has not proven to have received, in order. A ring over an array: entries leave
 * at the head, so the array is cut only now and then.
 */
export class SessionLog {
  private entries: LogEntry[] = []
  private head = 0
  private bytes = 0
  private lastSeq = 0
  private provenSeq = 0
  /** The last that was saved, how many of those are gone since, and whether some that were not the oldest are. */
  private savedSeq = 0
  private savedDropped = 0
  private isTorn = false

  /** Whether everything after a seq is here: it was given out, and nothing after it was dropped. */
  reachesBackTo(seq: number): boolean {
    const first = this.entries[this.head]?.seq ?? this.lastSeq + 1
    return seq <= this.lastSeq && seq >= first - 1
  }

  /** The seq that was given out last; 0: none yet. */
  get last(): number {
    return this.lastSeq
  }

  get size(): number {
    return this.entries.length - this.head
  }

  /** Appends; with a socket the oldest entries make room. */
  append(push: Push, at: number): number {
    this.add(push, at)
    while (this.size > attachedBounds.entries || this.bytes > attachedBounds.bytes) this.dropHead()
    return this.lastSeq
  }

  /** Appends where nobody reads yet; undefined when it is full. Call events always have room: they are few. */
  appendWaiting(push: Push, at: number): number | undefined {
    const full = this.size >= waitingLimits.entries || this.bytes + push.text.length > waitingLimits.bytes
    if (full && isRelay(push)) return undefined
    this.add(push, at)
    return this.lastSeq
  }

  private add(push: Push, at: number): void {
    this.lastSeq++
    const bytes = push.text.length
    this.entries.push({ seq: this.lastSeq, push, at, bytes })
    this.bytes += bytes
  }

  private dropHead(): void {
    const entry = this.entries[this.head]
    if (entry === undefined) return
    this.bytes -= entry.bytes
    this.head++
    if (entry.seq <= this.savedSeq) this.savedDropped++
    if (this.head > 64 && this.head * 2 > this.entries.length) {
      this.entries = this.entries.slice(this.head)
      this.head = 0
    }
  }

  /** Everything up to `seq` was received. */
  prove(seq: number, keep: readonly string[] = []): void {
    this.provenSeq = Math.max(this.provenSeq, seq)
    this.forgetProven(keep)
  }

  /** Forgets what was received, but for the calls of `keep`. */
  forgetProven(keep: readonly string[] = []): void {
    if (keep.length > 0) {
      this.retain((entry) => entry.seq > this.provenSeq || keep.includes(entry.push.call))
      return
    }
    while (this.size > 0 && this.entries[this.head]!.seq <= this.provenSeq) this.dropHead()
    if (this.size === 0 && this.entries.length > 0) {
      this.entries = []
      this.head = 0
    }
  }

  /** Keeps the entries that pass. */
  retain(passes: (entry: LogEntry) => boolean): void {
    const before = this.size
    this.entries = this.all().filter(passes)
    this.head = 0
    if (this.entries.length < before) this.isTorn = true
    this.bytes = this.entries.reduce((sum, entry) => sum + entry.bytes, 0)
  }

  /** The entries that match, in order; they stay. */
  find(matches: (entry: LogEntry) => boolean): LogEntry[] {
    return this.all().filter(matches)
  }

  /** Takes the entries that match out of the log, in order. */
  take(matches: (entry: LogEntry) => boolean): LogEntry[] {
    const taken = this.all().filter(matches)
    if (taken.length > 0) this.retain((entry) => !matches(entry))
    return taken
  }

  all(): readonly LogEntry[] {
    return this.head === 0 ? this.entries : this.entries.slice(this.head)
  }

  /** Whether a save has to say which of the oldest are gone. */
  get isDueToTrim(): boolean {
    return this.savedDropped >= mostUnsaid
  }

  /** What a save has to write, which counts as saved then; undefined: nothing. `trims`: it says what is gone, too. */
  takeChange(trims: boolean): LogChange | undefined {
    const whole = this.isTorn
    const dropped = trims && !whole ? this.savedDropped : 0
    const added = whole ? this.all() : this.unsaved()
    if (!whole && dropped === 0 && added.length === 0) return undefined
    this.savedSeq = this.lastSeq
    this.isTorn = false
    this.savedDropped = whole ? 0 : this.savedDropped - dropped
    return { whole, dropped, added, size: this.size + this.savedDropped }
  }

  /** Entries after one seq come after a later one. */
  renumber(after: number, later: number): void {
    const by = later - after
    this.entries = this.all().map((entry) => (entry.seq > after ? { ...entry, seq: entry.seq + by } : entry))
    this.head = 0
    this.lastSeq = Math.max(this.lastSeq, after) + by
    this.isTorn = true
  }

  /** The next save writes all of it. */
  tear(): void {
    this.isTorn = true
  }

  private unsaved(): readonly LogEntry[] {
    const { entries, savedSeq } = this
    let first = entries.length
    while (first > this.head && entries[first - 1]!.seq > savedSeq) first--
    return entries.slice(first)
  }

  /** A log as it was saved: its entries, and the seq that was given out last. */
  static of(entries: readonly LogEntry[], lastSeq: number, provenSeq: number): SessionLog {
    const log = new SessionLog()
    log.entries = [...entries]
    log.bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
    log.lastSeq = Math.max(lastSeq, entries.at(-1)?.seq ?? 0)
    log.provenSeq = provenSeq
    log.isTorn = true
    return log
  }
}
