import type { Cancel, Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import { isOpen, type Session } from '../session/session.ts'
import { createRenewals, type Renewals } from './renewals.ts'
import { createWriter, RefusedError, type Writer, type WriterOptions } from './writer.ts'

export interface SavesOptions extends Omit<WriterOptions, 'newOwnerOf' | 'timers'> {
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

/** Saves what changes in the sessions of this node: all of a turn of the event loop in one write. */
export interface Saves extends Renewals {
  /**
   * Resolves when everything that has changed until now is saved; undefined if there is nothing to wait for. Rejects with a
   * `StoreError` while the store is away: the changes are saved when it is back. Rejects with a `RefusedError` if all is saved
   * except sessions of other nodes.
   */
  save(): Promise<void> | undefined
  /** The same, and resolves also if sessions of other nodes were refused. */
  settle(): Promise<void> | undefined
  /** The last save failed, and none has succeeded since. */
  readonly isAway: boolean
  /** Saves a session in the name of another node, which owns it from then on. */
  give(session: Session, to: string): Promise<void>
  /** This node stops: any node may take its sessions. */
  release(): Promise<void>
  start(): void
  stop(): void
}

/** How long a store that was away is left alone before it is tried again, in ms. */
const againMs = 100

export function createSaves(options: SavesOptions): Saves {
  const { copies, table, onError, timers } = options
  const { changes } = table
  /** The new owners of sessions that are just being given away, and how often each session was written for that. */
  const newOwners = new Map<Session, { readonly to: string; writes: number }>()
  let isReleased = false
  const writer = createWriter({ ...options, newOwnerOf })
  const { save, settle, saveNow, tryAgain } = createSaveQueue(table.changes, writer)
  const renewals = createRenewals(options)
  let stopTrying: Cancel | undefined

  function newOwnerOf(session: Session): string | undefined {
    const newOwner = newOwners.get(session)
    if (newOwner !== undefined) newOwner.writes++
    return newOwner?.to ?? (isReleased && !isOpen(session) ? '' : undefined)
  }

  /** The connection reports that the store is away. */
  function onSaveFailed(error: unknown): void {
    if (!(error instanceof StoreError)) onError(error)
  }

  return {
    save,
    settle,
    get isAway() {
      return writer.isAway
    },
    async give(session, to) {
      const newOwner = { to, writes: 0 }
      newOwners.set(session, newOwner)
      changes.tear(session)
      try {
        // A change that comes meanwhile may be on its way in a save of somebody else.
        const isOwn = () => table.get(session.identity.sessionId) === session
        for (let seen = -1; (seen !== newOwner.writes || session.saving.isListed) && isOwn(); ) {
          seen = newOwner.writes
          const { final } = session.upstream
          await settle()
          // The replies that its client got are final by now, so it need not ask for them again.
          if (session.upstream.final !== final) changes.tear(session)
        }
      } finally {
        newOwners.delete(session)
      }
    },
    async release() {
      isReleased = true
      for (const session of table.all()) changes.changed(session)
      await (writer.isAway ? saveNow() : settle())
    },
    renew: () => renewals.renew().then(settle),
    check: () => renewals.check().then(settle),
    start() {
      stopTrying = timers.every(againMs, () => {
        if (writer.isAway && copies.isConnected()) tryAgain()?.catch(onSaveFailed)
      })
    },
    stop() {
      stopTrying?.()
    },
  }
}

/** One save at a time. All who ask during a save share the next one. */
function createSaveQueue(changes: SavesOptions['table']['changes'], writer: Writer) {
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined

  function save(): Promise<void> | undefined {
    if (writer.isAway) return away()
    if (changes.isEmpty) return current
    if (current === undefined) return saveNow()
    next ??= current.then(follow, follow)
    return next
  }

  function settle(): Promise<void> | undefined {
    return save()?.catch((error) => {
      if (!(error instanceof RefusedError)) throw error
    })
  }

  /** Nobody's save tries a store that is away: `tryAgain` does. */
  function away(): Promise<void> | undefined {
    // A save that is just being tried again is not through.
    if (changes.isEmpty && current === undefined) return undefined
    return Promise.reject(new StoreError('unavailable', 'Redis is away: sessions are saved when it is back'))
  }

  function follow(): Promise<void> {
    next = undefined
    return save() ?? Promise.resolve()
  }

  function saveNow(): Promise<void> {
    const mine = writer.write(changes.take(), changes.takeLost()).finally(() => {
      if (current === mine) current = undefined
    })
    current = mine
    return mine
  }

  function tryAgain(): Promise<void> | undefined {
    if (current !== undefined) return undefined
    if (!changes.isEmpty) return saveNow()
    writer.isAway = false
    return undefined
  }

  return { save, settle, saveNow, tryAgain }
}
