import type { Cancel, Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import { createSessionTable, type SessionTable } from '../session/table.ts'
import type { Copies } from './copies.port.ts'
import { createLostSessions, type LostSessions } from './lost-sessions.ts'
import type { Post } from './post.port.ts'
import { createSaves, type Saves } from './saves.ts'

export interface OwnSessionsOptions {
  readonly copies: Copies
  readonly post: Pick<Post, 'readAgain'>
  readonly windowMs: number
  readonly resumeWindowMs: number
  readonly newEpoch: () => string
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

/** The sessions that this node owns. They are in its memory, and the store has a copy of each. */
export interface OwnSessions {
  readonly table: SessionTable
  readonly saves: Saves
  readonly lost: LostSessions
  /** The store may have lost these sessions. Resolves when it has them again. */
  writeAgain(isOf: (sessionId: string) => boolean): Promise<void>
  /** Other nodes may have taken sessions of this one: it could not say for a while that it lives. */
  doubt(): void
  /** A save failed, and is tried again. The connection says that the store is away, so only other errors are reported. */
  saveFailed(error: unknown): void
  /** Begins to look whether the store still has everything. */
  startLooks(): void
  /** Hands over what other nodes need to go on with these sessions. */
  close(): Promise<void>
}

/** Sessions with a socket are remembered for three times as long. */
const renewMs = 1_200_000
/** A key that was evicted, or lost with one master of several, is written again within this time. */
const checkMs = 20_000
/** The time after which a look at what was lost is tried again, in ms. */
const renewAgainMs = 1_000

export function createOwnSessions(options: OwnSessionsOptions): OwnSessions {
  const { copies, post, windowMs, resumeWindowMs, newEpoch, onError, timers } = options
  const table = createSessionTable({ windowMs, resumeWindowMs, newEpoch, isShared: true, onChanged: saveSoon })
  const lost = createLostSessions({ table, settle: () => saves.settle() })
  const longestMs = Math.max(windowMs, resumeWindowMs)
  const saves = createSaves({
    copies,
    table,
    longestMs,
    onRefused: lost.refused,
    onDiverged: lost.diverged,
    onError,
    timers,
  })
  let cancels: readonly Cancel[] = []
  let isChecking = false
  let isDoubted = false
  let isRenewing = false

  /** At the end of this turn of the event loop, whether somebody waits for it or not. */
  function saveSoon(): void {
    timers.turn(() => {
      saves.save()?.catch(saveFailed)
    })
  }

  function saveFailed(error: unknown): void {
    if (!(error instanceof StoreError)) onError(error)
  }

  async function check(): Promise<void> {
    if (isChecking || saves.isAway) return
    isChecking = true
    await saves.check().catch(saveFailed)
    isChecking = false
  }

  function doubt(): void {
    isDoubted = true
    if (!isRenewing) void renew()
  }

  async function renew(): Promise<void> {
    isRenewing = true
    while (isDoubted) {
      isDoubted = false
      await saves.renew().catch((error) => {
        saveFailed(error)
        // It reads the store again once the store answers.
        timers.after(renewAgainMs, doubt)
      })
    }
    isRenewing = false
  }

  return {
    ...{ table, saves, lost, doubt, saveFailed },
    async writeAgain(isOf) {
      post.readAgain()
      for (const session of table.all())
        if (session.saving.isSaved && isOf(session.identity.sessionId)) table.changes.tear(session)
      await saves.settle()
    },
    startLooks() {
      cancels = [
        timers.every(renewMs, () => void saves.renew().catch(onError)),
        timers.every(checkMs, () => void check()),
      ]
    },
    async close() {
      for (const cancel of cancels) cancel()
      await saves.release().catch(onError)
      saves.stop()
    },
  }
}
