import type { Cancel, Timers } from '../ports/clock.ts'
import type { Connection } from './connection.ts'

export interface FlushingOptions {
  /** Resolves when everything that clients have got until now is saved; undefined if there is nothing to wait for. */
  readonly save: () => Promise<void> | undefined
  /** Something went wrong with this one; the others are still served. */
  readonly onFailed: (connection: Connection, error: unknown) => void
  readonly timers: Timers
}

/**
 * When what clients are owed is written: once a turn of the event loop, and not before it is saved [EXT3], but for what
 * peers send to base sessions.
 */
export interface Flushing {
  /** This one is owed something: it is written at the end of this turn. */
  request(connection: Connection): void
  /** Whether another node finds everything that clients have got. */
  isSaved(): boolean
}

/**
 * While a save is under way no more than this many sockets are written to ahead of it at the end of a turn: more wait for
 * it, and more of their messages come into one write.
 */
const few = 8
/** Those wait no longer than this, in ms: the store may hang. */
const gatherMs = 10

type Write = (connection: Connection, at: number) => boolean
const writeAhead: Write = (connection, at) => connection.writeAhead(at)
const writeSaved: Write = (connection, at) => connection.flush(at, true)
const writeUnsaved: Write = (connection, at) => connection.flush(at, false)

/** If a save fails, a connection that has to wait for it is tried again after this time, in ms. */
const heldMs = 100

export function createFlushing({ save, onFailed, timers }: FlushingOptions): Flushing {
  const owed = createOwed(timers, onFailed, () => endTurn(true))
  const hold = createHeld(timers, owed.request)
  let isSaving = false
  /** Runs while many wait for a save under way. */
  let stopGathering: Cancel | undefined
  /** Something was written ahead of the save that it needs. */
  let isBehind = false

  const endOfGathering = () => endTurn(false)

  /** One save is under way at a time: what has to wait for one, and comes meanwhile, goes with the next. */
  function endTurn(mayGather: boolean): void {
    if (mayGather && isSaving && owed.requested() > few) {
      stopGathering ??= timers.after(gatherMs, endOfGathering)
      return
    }
    stopGathering?.()
    stopGathering = undefined
    if (owed.writeAhead()) isBehind = true
    if (!isSaving && (owed.waiting() > 0 || isBehind)) flushAll()
  }

  /** Saves before any socket is written to. */
  function flushAll(): void {
    isBehind = false
    const due = owed.takeSealed()
    const saving = save()
    if (saving === undefined) {
      flush(due, true)
      return
    }
    isSaving = true
    const goOn = (isSaved: boolean) => {
      isSaving = false
      flush(due, isSaved)
      if (!isSaved) flushUnsaved()
      endTurn(true)
    }
    // While the store is away, the service still serves the sockets of this node [EXT3].
    saving.then(
      () => goOn(true),
      () => goOn(false),
    )
  }

  /** A save that had to wait for another one has in it what changed until it began: who came meanwhile may have been in it. */
  function flushUnsaved(): void {
    if (owed.writeAhead()) isBehind = true
    const late = owed.takeSealed()
    if (late.length > 0) isBehind = true
    flush(late, false)
  }

  function flush(due: readonly Connection[], isSaved: boolean): void {
    const at = timers.monotonic()
    const write = isSaved ? writeSaved : writeUnsaved
    for (const connection of due) if (attempt(connection, write, at, onFailed)) hold(connection)
  }

  return {
    request: owed.request,
    isSaved() {
      const saving = save()
      saving?.catch(() => {
        // Those that wait for the save hear of the failure.
      })
      return saving === undefined
    },
  }
}

/** The connections that are owed something since the last end of a turn, and the earlier ones that wait for a save. */
function createOwed(timers: Timers, onFailed: FlushingOptions['onFailed'], endOfTurn: () => void) {
  let requested: Connection[] = []
  let waiting: Connection[] = []

  return {
    requested: () => requested.length,
    waiting: () => waiting.length,
    request(connection: Connection): void {
      if (requested.length === 0) timers.turn(endOfTurn)
      requested.push(connection)
    },
    /** Writes to the connections that need not wait for a save; the others wait. True if it wrote to any. */
    writeAhead(): boolean {
      const due = requested
      requested = []
      const at = timers.monotonic()
      let isAhead = false
      for (const connection of due) {
        if (attempt(connection, writeAhead, at, onFailed)) isAhead = true
        else waiting.push(connection)
      }
      return isAhead
    },
    /** Takes the connections that wait, each sealed at what it is owed now. */
    takeSealed(): readonly Connection[] {
      const due = waiting
      waiting = []
      for (const connection of due) connection.seal()
      return due
    },
  }
}

/** Requests connections again later, because what they are owed could not be saved. */
function createHeld(timers: Timers, request: (connection: Connection) => void) {
  const held = new Set<Connection>()
  function tryHeld(): void {
    const due = [...held]
    held.clear()
    due.forEach(request)
  }
  return (connection: Connection): void => {
    if (held.size === 0) timers.after(heldMs, tryHeld)
    held.add(connection)
  }
}

function attempt(connection: Connection, write: Write, at: number, onFailed: FlushingOptions['onFailed']): boolean {
  try {
    return write(connection, at)
  } catch (error) {
    onFailed(connection, error)
    return false
  }
}
