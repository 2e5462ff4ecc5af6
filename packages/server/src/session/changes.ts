import type { LogChange } from './log.ts'
import type { Session } from './session.ts'

/** What a save has to write of a session. */
export interface Change {
  readonly session: Session
  /** It is there no more. */
  readonly isGone: boolean
  /** More than its log has changed: all of that is written. */
  readonly isChanged: boolean
  readonly log: LogChange | undefined
}

/** Which sessions have changed since the last save. */
export interface Changes {
  /** More of it than its log has changed. */
  changed(session: Session): void
  logged(session: Session): void
  forgotten(session: Session): void
  /** It is another process' to save. */
  dropped(session: Session): void
  /** The next save writes it whole. */
  tear(session: Session): void
  readonly isEmpty: boolean
  /** What a save has to write; it counts as saved then. */
  take(): Change[]
}

export function createChanges(isNoted: boolean): Changes {
  let listed: Session[] = []
  let gone: Session[] = []

  function logged(session: Session): void {
    if (!isNoted || session.isListed) return
    session.isListed = true
    listed.push(session)
  }

  function changed(session: Session): void {
    if (!isNoted) return
    session.isChanged = true
    logged(session)
  }

  /** Nothing is written of a base session that is idle: nobody needs it elsewhere. */
  function isWorthSaving({ identity, isSaved, log, places, ringing, kept }: Session): boolean {
    if (identity.extended || isSaved || (log?.size ?? 0) > 0) return true
    return (places?.size ?? 0) > 0 || (ringing?.size ?? 0) > 0 || (kept?.size ?? 0) > 0
  }

  function changeOf(session: Session): Change | undefined {
    session.isListed = false
    if (!isWorthSaving(session)) return undefined
    const { log } = session
    // What is gone of a log is in the rest of its state: which requests were taken, and up to where it is proven.
    const isChanged = session.isChanged || !session.isSaved || log?.isDueToTrim === true
    const change = log?.takeChange(isChanged)
    session.isChanged = false
    session.isSaved = true
    return { session, isGone: false, isChanged, log: change }
  }

  return {
    changed,
    logged,
    forgotten(session) {
      if (isNoted && session.isSaved) gone.push(session)
      session.isListed = false
    },
    dropped(session) {
      session.isListed = false
    },
    tear(session) {
      session.log?.tear()
      changed(session)
    },
    get isEmpty() {
      return listed.length === 0 && gone.length === 0
    },
    take() {
      // Not what was forgotten, or went elsewhere, meanwhile.
      const due = listed.filter(({ isListed }) => isListed)
      const over = gone.map((session) => ({ session, isGone: true, isChanged: false, log: undefined }))
      listed = []
      gone = []
      return [...over, ...due.map(changeOf).filter((change) => change !== undefined)]
    },
  }
}
