import type { Timers } from '../ports/clock.ts'
import { tagOfHash, tagOfSessionId } from '../ports/session-id.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Completeness } from './completeness.ts'
import type { Directory, Row } from './directory.port.ts'

/** Reads of the directory that can be believed. If the store was emptied, a missing row proves nothing, so the read waits. */
export interface BelievedDirectory extends Pick<Directory, 'claim' | 'forget'> {
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

/** `isWhole`: see `Completeness`. */
export function createBelievedDirectory(
  { row, rowsOf, claim, forget }: Directory,
  isWhole: Completeness['isWhole'],
  timers: Pick<Timers, 'monotonic'>,
): BelievedDirectory {
  return {
    claim,
    forget,
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
