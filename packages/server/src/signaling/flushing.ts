import type { Connection } from './connection.ts'

export interface FlushingOptions {
  /** Resolves when what clients are told of until now is saved; undefined where nothing has to be waited for. */
  readonly save: () => Promise<void> | undefined
  /** Monotonic, ms. */
  readonly now: () => number
  /** Something went wrong with this one; the others are served all the same. */
  readonly onFailed: (connection: Connection, error: unknown) => void
}

/** When what clients are owed is written: once a turn of the event loop, and not before it is saved [EXT3]. */
export interface Flushing {
  /** This one is owed something: it is written at the end of this turn. */
  request(connection: Connection): void
  /** Whether everything that clients are told of is where another node finds it. */
  isSaved(): boolean
}

/** What has to be saved before it is told, and could not be, is tried again so much later, in ms. */
const heldMs = 100

export function createFlushing({ save, now, onFailed }: FlushingOptions): Flushing {
  let dirty: Connection[] = []
  const held = new Set<Connection>()
  let isSaving = false

  function request(connection: Connection): void {
    if (dirty.length === 0 && !isSaving) setImmediate(flushAll)
    dirty.push(connection)
  }

  /** Saves before anybody is told. One save is under way at a time: what comes meanwhile goes with the next one. */
  function flushAll(): void {
    const due = dirty
    dirty = []
    for (const connection of due) connection.seal()
    const saving = save()
    if (saving === undefined) {
      flush(due)
      return
    }
    isSaving = true
    const goOn = (isSaved: boolean) => {
      isSaving = false
      flush(due, isSaved)
      if (dirty.length > 0) flushAll()
    }
    // Where the store is away, who is here is served all the same [EXT3].
    saving.then(
      () => goOn(true),
      () => goOn(false),
    )
  }

  function flush(due: readonly Connection[], isSaved = true): void {
    const at = now()
    for (const connection of due) {
      try {
        if (connection.flush(at, isSaved)) hold(connection)
      } catch (error) {
        onFailed(connection, error)
      }
    }
  }

  /** What it has to be told could not be saved. */
  function hold(connection: Connection): void {
    if (held.size === 0) setTimeout(tryHeld, heldMs)
    held.add(connection)
  }

  function tryHeld(): void {
    const due = [...held]
    held.clear()
    due.forEach(request)
  }

  return {
    request,
    isSaved() {
      const saving = save()
      saving?.catch(() => {
        // Whoever waits for it hears of it.
      })
      return saving === undefined
    },
  }
}
