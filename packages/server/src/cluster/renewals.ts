import type { Session } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Copies } from './copies.port.ts'
import { hashOf } from './rows.ts'
import { ttlOf } from './session-writes.ts'
import { someAtOnce, type WriterOptions } from './writer.ts'

export type RenewalsOptions = Pick<WriterOptions, 'copies' | 'table' | 'longestMs' | 'onRefused'>

/** Looks after saved sessions. The next save writes those again that the store has lost. */
export interface Renewals {
  /** The store remembers the sessions for longer. Those that other nodes have by now are let go. */
  renew(): Promise<void>
  /** Looks whether everything is still there: one command looks for hundreds. */
  check(): Promise<void>
}

/** Sessions in one command. */
const mostSessions = 500

export function createRenewals({ copies, table, longestMs, onRefused }: RenewalsOptions): Renewals {
  const { changes } = table
  const isHere = (session: Session) => table.get(session.identity.sessionId) === session

  async function renewPart(part: readonly Session[]): Promise<void> {
    const remembered = part.map((session) => ({
      sessionId: session.identity.sessionId,
      fence: session.saving.fence,
      ttlMs: ttlOf(session, longestMs),
    }))
    for (const { index, why } of await copies.renew(remembered)) {
      const session = part[index] as Session
      if (!isHere(session) || session.saving.isListed) continue
      if (why === 'missing') changes.tear(session)
      else onRefused(session, why === 'moved')
    }
  }

  async function checkPart(part: readonly Session[]): Promise<void> {
    if (await areThere(copies, part)) return
    for (const session of part) {
      // A session that has changed meanwhile is written anyway.
      if (!isHere(session) || session.saving.isListed || (await areThere(copies, [session]))) continue
      if (isHere(session)) changes.tear(session)
    }
  }

  return {
    renew: () => someAtOnce(partsOf(table, copies), renewPart),
    check: () => someAtOnce(partsOf(table, copies), checkPart),
  }
}

function areThere(copies: Copies, part: readonly Session[]): Promise<boolean> {
  return copies.areThere(
    part.map((session) => ({
      sessionId: session.identity.sessionId,
      hash: hashOf(session),
      hasLog: session.log !== undefined && session.log.size > 0,
    })),
  )
}

/** The saved sessions of this node, by the server that has them. */
function partsOf(table: SessionTable, copies: Copies): Session[][] {
  const saved = [...table.all()].filter(({ saving }) => saving.isSaved && !saving.isListed)
  return [...Map.groupBy(saved, ({ identity }) => copies.partOf(identity.sessionId)).values()].flatMap((all) => {
    const parts: Session[][] = []
    for (let i = 0; i < all.length; i += mostSessions) parts.push(all.slice(i, i + mostSessions))
    return parts
  })
}
