import { isLive, someCall } from './calls.ts'
import type { LogChange } from './log.ts'
import type { Session } from './session.ts'

/** What a save has to write of a session. */
export interface Change {
  readonly session: Session
  /** It is there no more. */
  readonly isGone: boolean
  /** More than its log has changed: all of that is written. */
  readonly isChanged: boolean
  /** It was never saved, or is to be saved once more: all of it is written. */
  readonly isWhole: boolean
  /** Another node may have to go on with it: its pushes are written, and not only that it is there. */
  readonly hasCopy: boolean
  readonly log: LogChange | undefined
}

/** Which sessions have changed since the last save. `onFirst`: one has, and none had before. */
export interface Changes {
  /** More of it than its log has changed. */
  changed(session: Session): void
  logged(session: Session): void
  forgotten(session: Session): void
  /** It is another process' to save: what changed here since the last save is lost. */
  dropped(session: Session): void
  /** The next save writes it whole. */
  tear(session: Session): void
  /** It could not be written: the next save does. */
  failed(change: Change): void
  /** Whether nothing has to wait for a save, or to hear of a loss. */
  readonly isEmpty: boolean
  /** Something that was sent is lost: everything that waits for the next save hears so. */
  lost(): void
  /** Whether that was so since the last call of this. */
  takeLost(): boolean
  /** What a save has to write; it counts as saved then. */
  take(): Change[]
}

export function createChanges(isNoted: boolean, onFirst: () => void = () => {}): Changes {
  let listed: Session[] = []
  let gone: Session[] = []
  let isLost = false

  function list(session: Session, list: Session[]): void {
    if (listed.length + gone.length === 0) onFirst()
    list.push(session)
  }

  function logged(session: Session): void {
    if (!isNoted || session.saving.isListed) return
    session.saving.isListed = true
    list(session, listed)
  }

  function changed(session: Session): void {
    if (!isNoted) return
    session.saving.isChanged = true
    logged(session)
  }

  function tear(session: Session): void {
    session.saving.isStale = true
    changed(session)
  }

  return {
    changed,
    logged,
    tear,
    forgotten(session) {
      if (isNoted && session.saving.isSaved) list(session, gone)
      session.saving.isListed = false
    },
    dropped(session) {
      if (session.saving.isListed) isLost = true
      session.saving.isListed = false
    },
    lost() {
      isLost = true
    },
    takeLost() {
      const wasLost = isLost
      isLost = false
      return wasLost
    },
    failed({ session, isGone }) {
      if (isGone) list(session, gone)
      else tear(session)
    },
    get isEmpty() {
      return listed.length === 0 && gone.length === 0 && !isLost
    },
    take() {
      // Not what was forgotten, or went elsewhere, meanwhile.
      const due = listed.filter(({ saving }) => saving.isListed)
      const over = gone.map((session) => ({
        session,
        isGone: true,
        isChanged: false,
        isWhole: false,
        hasCopy: false,
        log: undefined,
      }))
      listed = []
      gone = []
      return [...over, ...due.map(changeOf)]
    },
  }
}

/** Of a base session that is idle only that it is there: nobody goes on with it elsewhere. */
function needsCopy(session: Session): boolean {
  const { identity, log } = session
  return identity.extended || (log?.size ?? 0) > 0 || someCall(session, isLive)
}

function changeOf(session: Session): Change {
  session.saving.isListed = false
  const { log } = session
  const isWhole = !session.saving.isSaved || session.saving.isStale
  if (isWhole) log?.tear()
  // The rest of the session's state covers removed entries of a log: which requests were taken, and up to where it is
  // proven.
  const isChanged = session.saving.isChanged || isWhole || log?.isDueToTrim === true
  const change = log?.takeChange(isChanged)
  session.saving.isChanged = false
  session.saving.isSaved = true
  session.saving.isStale = false
  return { session, isGone: false, isChanged, isWhole, hasCopy: needsCopy(session), log: change }
}
