import { isLive, someCall } from '../session/calls.ts'
import type { Change } from '../session/changes.ts'
import { writeEntry, writeState } from '../session/copy.ts'
import { isOpen, type Session } from '../session/session.ts'
import type { SessionWrite } from './copies.port.ts'
import { hashOf, rowFields } from './rows.ts'

/** A change of a session, and what the store is to write for it. */
export interface Written {
  readonly change: Change
  readonly write: SessionWrite
  readonly bytes: number
}

/** A session with a socket is renewed by its owner; what a dead owner leaves behind goes after this time. In ms. */
const socketMs = 3_600_000
/** Longer than a call lasts. */
const placeMs = 90_000_000
const marginMs = 60_000
/** One script writes no more sessions and bytes than these, because everybody else waits for it. */
const mostSessions = 200
const mostBytes = 512 * 1024

const nothing = { isWhole: false, dropped: 0, added: [] }

/** `newOwner`, `longestMs`: see `SessionWrite` and `SavesOptions`. `isOver`: this node was shown what an earlier owner wrote. */
export function writtenOf(change: Change, newOwner: string | undefined, longestMs: number, isOver: boolean): Written {
  const { session, isGone, isChanged, isWhole, hasCopy, log } = change
  const { sessionId } = session.identity
  const about = { sessionId, hash: hashOf(session), fence: session.saving.fence }
  if (isGone) {
    const gone = { row: undefined, state: '', newOwner: undefined, ttlMs: undefined, log: nothing }
    return { change, write: { ...about, what: 'gone', ...gone }, bytes: 0 }
  }
  const state = isChanged && hasCopy ? writeState(session) : ''
  const added = log?.added.map(writeEntry) ?? []
  const write: SessionWrite = {
    ...about,
    what: isOver ? 'over' : isWhole ? 'all' : 'part',
    row: isChanged ? rowFields(session) : undefined,
    state,
    newOwner,
    ttlMs: isChanged ? ttlOf(session, longestMs) : undefined,
    log: log === undefined ? nothing : { isWhole: log.whole, dropped: log.dropped, added },
  }
  return { change, write, bytes: added.reduce((sum, entry) => sum + entry.length, state.length) }
}

/** How long the store remembers a session, in ms. */
export function ttlOf(session: Session, longestMs: number): number {
  if (someCall(session, isLive)) return placeMs
  return isOpen(session) ? socketMs : longestMs + marginMs
}

/** In order, in parts that one script can write each. */
export function inScripts(all: readonly Written[]): Written[][] {
  const parts: Written[][] = []
  let bytes = mostBytes
  for (const each of all) {
    const last = parts.at(-1)
    if (last === undefined || bytes + each.bytes > mostBytes || last.length >= mostSessions) {
      parts.push([each])
      bytes = each.bytes
    } else {
      last.push(each)
      bytes += each.bytes
    }
  }
  return parts
}
