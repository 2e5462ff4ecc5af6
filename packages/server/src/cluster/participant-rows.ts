import type { Participant } from '../call/call.ts'
import { participantHash } from '../ports/session-id.ts'
import type { Session } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Row } from './directory.port.ts'
import type { BelievedDirectory } from './directory.ts'
import type { Owner } from './owner.ts'

export interface ParticipantRowsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly directory: BelievedDirectory
  readonly owner: Owner
  /** Another node has a session that this one takes for its own; `hasSocket`: with a socket of its own. */
  readonly onRefused: (session: Session, hasSocket: boolean) => void
}

export type ParticipantRows = ReturnType<typeof createParticipantRows>

/** Reads the directory for the sessions of a participant, and learns from it who owns them. */
export function createParticipantRows({ node, table, directory, owner, onRefused }: ParticipantRowsOptions) {
  async function all(participant: Participant): Promise<readonly Row[]> {
    const rows = await directory.rowsOf(participantHash(participant))
    for (const row of rows) {
      letGoIfTaken(row)
      // The nodes that were remembered as their owners may be gone since.
      if (!owner.isFree(row)) owner.noteRoute(row.sessionId, row.owner)
    }
    return rows
  }

  /** While this node stood still another one took the session: what came to it since is there. */
  function letGoIfTaken({ sessionId, owner: other, fence, hasSocket }: Row): void {
    const session = table.get(sessionId)
    if (session !== undefined && other !== node && Number(fence) > session.saving.fence) onRefused(session, hasSocket)
  }

  return {
    all,
    /** Without those of this node: it knows its own sessions better than the directory does. */
    async elsewhere(participant: Participant): Promise<readonly Row[]> {
      return (await all(participant)).filter(({ sessionId }) => !owner.isHere(sessionId))
    },
    /** True if a read that began at `since` found all rows, false if it has to be repeated. */
    areAll: (participant: Participant, since: number) => directory.areAll(participantHash(participant), since),
  }
}
