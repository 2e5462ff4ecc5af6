import { type Participant, participantKey } from '../call/call.ts'
import type { SessionIdentity } from '../ports/sessions.ts'
import { isOpen, type Session, seenOf } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Row } from './directory.port.ts'
import type { Living } from './living.ts'
import type { Owner } from './owner.ts'
import type { ParticipantRows } from './participant-rows.ts'
import { deviceOf } from './rows.ts'

export interface LiveSessionsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly rows: ParticipantRows
  readonly owner: Pick<Owner, 'isStillFree' | 'claim'>
  readonly living: Pick<Living, 'isThere'>
}

/** A session with a socket. */
export interface Live extends Pick<SessionIdentity, 'sessionId' | 'deviceId' | 'extended'> {
  readonly appVersion: string | null
  readonly openedAt: number
  readonly expiresAt: number
  readonly isUnsure: boolean
  readonly can: readonly string[]
}

/** The sessions of a participant that have a socket, on any node: oldest first. */
export type LiveSessions = (participant: Participant) => Promise<readonly Live[]>

export function createLiveSessions({ node, table, rows, owner, living }: LiveSessionsOptions): LiveSessions {
  /** A dead node left the session. If that node lives after all, it has to find that nothing rings there any more [INV4]. */
  function takeOver(row: Row): void {
    owner.claim(row).catch(() => {
      // The next look tries again.
    })
  }

  return async (participant) => {
    const read = await rows.all(participant)
    const areStillFree = await Promise.all(read.map(owner.isStillFree))
    const all: Live[] = []
    for (const [i, row] of read.entries()) {
      const own = table.get(row.sessionId)
      if (own !== undefined) {
        if (isOpen(own)) all.push(liveOfSession(own))
      } else if (!row.hasSocket || row.owner === node || row.owner === '') continue
      else if (areStillFree[i]) takeOver(row)
      else if (await living.isThere(row.owner)) all.push(liveOfRow(row))
    }
    // The store may have lost the rows of this node's own sessions.
    const known = new Set(read.map(({ sessionId }) => sessionId))
    for (const session of table.ofParticipant(participantKey(participant)))
      if (isOpen(session) && !known.has(session.identity.sessionId)) all.push(liveOfSession(session))
    return all.sort((one, other) => one.openedAt - other.openedAt)
  }
}

function liveOfSession(session: Session): Live {
  const { expiresAt = Number.POSITIVE_INFINITY, can = [] } = session.identity
  return { ...seenOf(session), expiresAt, can }
}

function liveOfRow({ sessionId, device, extended, appVersion, openedAt, expiresAt, isUnsure, can }: Row): Live {
  const version = appVersion === '' ? null : appVersion
  const listed = can.split(',')
  return {
    sessionId,
    deviceId: deviceOf(device),
    extended,
    appVersion: version,
    openedAt,
    expiresAt,
    isUnsure,
    can: listed,
  }
}
