import type { Timers } from '../ports/clock.ts'
import { tagOfHash, tagOfSessionId } from '../ports/session-id.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Completeness } from './completeness.ts'
import type { Copy, Directory, Row } from './directory.port.ts'
import { changing, mostTries } from './retries.ts'

/** A session with its fence, and its last owner as the row has it; without it if the owner itself gave the session away. */
export type Taken = Pick<Row, 'sessionId' | 'fence'> & Partial<Pick<Row, 'owner'>>

/**
 * Reads of the directory that can be believed. If the store was emptied, a missing row proves nothing, so the read waits. If a
 * server with older data took over, a row proves nothing either: it may name an owner from before the last one.
 */
export interface BelievedDirectory extends Pick<Directory, 'forget'> {
  /**
   * As in `Directory`. If the row may be old, this waits until every node but the owner has written what it owns: the last owner
   * may live, and stand still. Rejects with a `StoreError` if that takes too long. `freshFence`: see `Claiming`.
   */
  claim(taken: Taken, freshFence: number): Promise<Copy | 'gone' | undefined>
  /** Undefined if there is no such session. */
  row(sessionId: string): Promise<Row | undefined>
  /**
   * The rows of the sessions of a participant, in the order in which they were written first: those that are there. If
   * the store was emptied, some may be missing.
   */
  rowsOf(hash: string): Promise<readonly Row[]>
  /**
   * True where those that were just read are all, false where they have to be read again. `since`: when that read began; see
   * `Completeness`.
   */
  areAll(hash: string, since: number): Promise<boolean>
}

/** Nodes that live write again what they own in less, in ms. */
const soonMs = 300

/** `isWhole`, `writtenAt`, `look`: see `Completeness`. */
export function createBelievedDirectory(
  { row, rowsOf, claim, forget }: Directory,
  { isWhole, writtenAt, look }: Pick<Completeness, 'isWhole' | 'writtenAt' | 'look'>,
  timers: Pick<Timers, 'monotonic'>,
): BelievedDirectory {
  return {
    forget,
    async claim({ sessionId, fence, owner }, freshFence) {
      let origin: string | undefined
      for (let tries = 0; tries < mostTries; tries++) {
        const copy = await claim(sessionId, fence, owner === undefined ? undefined : { origin, freshFence })
        if (copy !== 'unsure') return copy
        // Another server may have taken over a moment ago.
        await look()
        origin = await writtenAt(tagOfSessionId(sessionId) ?? '', owner ?? '')
      }
      throw changing()
    },
    async row(sessionId) {
      const tag = tagOfSessionId(sessionId)
      if (tag === undefined) return undefined
      const since = timers.monotonic()
      const found = await row(sessionId)
      return found !== undefined || (await isWhole(tag, since)) ? found : row(sessionId)
    },
    async rowsOf(hash) {
      const isSure = isWhole(tagOfHash(hash), timers.monotonic(), soonMs).catch((error) => {
        if (!(error instanceof StoreError)) throw error
        return false
      })
      const rows = await rowsOf(hash)
      return (await isSure) ? rows : rowsOf(hash)
    },
    areAll: (hash, since) => isWhole(tagOfHash(hash), since),
  }
}
