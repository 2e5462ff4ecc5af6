import type { Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import { hasAllOf } from '../session/branches.ts'
import type { Change } from '../session/changes.ts'
import { readSession } from '../session/copy.ts'
import type { Session } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Copies, EarlierCopy, Refusal } from './copies.port.ts'
import { inScripts, type Written, writtenOf } from './session-writes.ts'

/** Some of the sessions that were to be saved belong to other nodes by now, so what was done to them here is lost. */
export class RefusedError extends StoreError {
  constructor() {
    super('unknown', 'a session has another owner by now')
  }
}

export interface WriterOptions {
  readonly copies: Copies
  readonly table: SessionTable
  /** How long a session is remembered if nobody comes back to it, in ms. */
  readonly longestMs: number
  /** The node that gets a session by this write; '' for any node, undefined where this one keeps it. */
  readonly newOwnerOf: (session: Session) => string | undefined
  /** Another node has the session by now; `hasSocket`: with a socket of its own. */
  readonly onRefused: (session: Session, hasSocket: boolean) => void
  /** An earlier owner went on with the session, and took something that this node does not have. */
  readonly onDiverged: (session: Session) => void
  readonly timers: Pick<Timers, 'turn'>
}

/** Writes changes of sessions to the store. */
export interface Writer {
  /** The last write failed, and none has succeeded since. */
  isAway: boolean
  /**
   * `isLost`: something that was delivered meanwhile belongs to a session of another node by now. Rejects with a
   * `StoreError` if the store is away, and with a `RefusedError` if it saved everything but sessions of other nodes.
   */
  write(changes: readonly Change[], isLost: boolean): Promise<void>
}

/** Whether some sessions have to be written once more, and whether some belong to another node. */
interface Sent {
  readonly isMissing: boolean
  readonly isRefused: boolean
}

/** The store gets no more scripts at once, so that it answers the last one in time, too. */
const mostScripts = 8

export function createWriter(options: WriterOptions): Writer {
  const { copies, table, longestMs, newOwnerOf, onRefused, onDiverged, timers } = options
  const { changes } = table
  /** Sessions of which this node was shown what an earlier owner wrote. The next write is over that. */
  const shown = new WeakSet<Session>()
  const writer = { isAway: false, write }

  async function write(taken: readonly Change[], isLost: boolean): Promise<void> {
    const parts = scriptsOf(taken)
    const sent: Sent[] = []
    try {
      await someAtOnce(parts, async (part) => void sent.push(await send(part)))
    } catch (error) {
      writer.isAway = true
      throw error
    }
    writer.isAway = false
    // A session that the store does not have any more is written whole.
    if (sent.some(({ isMissing }) => isMissing)) await writeAgain()
    // A save that begins in this turn has to hear of the loss, too.
    if (parts.length === 0) await new Promise<void>((resolve) => timers.turn(resolve))
    if (isLost || sent.some(({ isRefused }) => isRefused)) throw new RefusedError()
  }

  function scriptsOf(taken: readonly Change[]): Written[][] {
    const all = taken.map((change) => {
      const { session, isGone } = change
      return writtenOf(change, isGone ? undefined : newOwnerOf(session), longestMs, shown.delete(session))
    })
    return [...Map.groupBy(all, ({ write }) => copies.partOf(write.sessionId)).values()].flatMap(inScripts)
  }

  /** Writes what has changed meanwhile as well. The next save reports what was refused of that. */
  async function writeAgain(): Promise<void> {
    try {
      await write(changes.take(), false)
    } catch (error) {
      if (error instanceof RefusedError) changes.lost()
      throw error
    }
  }

  async function send(part: readonly Written[]): Promise<Sent> {
    let refused: readonly Refusal[]
    try {
      refused = await copies.save(part.map(({ write }) => write))
    } catch (error) {
      for (const { change } of part) failed(change)
      throw error
    }
    let [isMissing, isRefused] = [false, false]
    for (const refusal of refused) {
      const { session } = (part[refusal.index] as Written).change
      if (refusal.why === 'moved' || refusal.why === 'other') {
        isRefused = true
        onRefused(session, refusal.why === 'moved')
      } else if (table.get(session.identity.sessionId) === session) {
        if (refusal.why === 'earlier') compare(session, refusal)
        changes.tear(session)
        isMissing = true
      }
    }
    return { isMissing, isRefused }
  }

  /** What the earlier owner acknowledged and this node lacks is lost, and the client of the session has to hear so [RES2]. */
  function compare(session: Session, { state, lastEntry }: EarlierCopy): void {
    shown.add(session)
    if (state === '') return
    const earlier = readSession(state, lastEntry === '' ? [] : [lastEntry], table.now)
    if (earlier === undefined || !hasAllOf(session, earlier)) onDiverged(session)
  }

  function failed(change: Change): void {
    const { session, isGone } = change
    if (isGone || table.get(session.identity.sessionId) === session) changes.failed(change)
  }

  return writer
}

/** Works on some parts at once. Goes on where one fails, and rejects with what failed first. */
export async function someAtOnce<T>(parts: readonly T[], work: (part: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = []
  for (let i = 0; i < parts.length; i += mostScripts) {
    const results = await Promise.allSettled(parts.slice(i, i + mostScripts).map(work))
    failures.push(...results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])))
  }
  if (failures.length > 0) throw failures[0]
}
