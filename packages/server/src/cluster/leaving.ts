import { isOpen, type Session } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Routes } from './routes.ts'
import type { Saves } from './saves.ts'

export interface LeavingOptions {
  readonly table: SessionTable
  readonly saves: Pick<Saves, 'give'>
  readonly routes: Routes
}

export type Leaving = ReturnType<typeof createLeaving>

/** The sessions that this node is just giving to other nodes. */
export function createLeaving({ table, saves, routes }: LeavingOptions) {
  const leaving = new Map<string, Promise<void>>()
  const isHere = (id: string) => table.get(id) !== undefined && !leaving.has(id)
  return {
    /** Whether this node has a session, and is not just giving it away. */
    isHere,
    /** Resolves when a session that is just being given away is gone, or stays. */
    underWay: (id: string) => leaving.get(id),
    /** Gives a session to another node. False if it stays, or if another node was faster. */
    async letGo(session: Session, to: string): Promise<boolean> {
      const { sessionId } = session.identity
      // Its client came back here in this very turn.
      if (!isHere(sessionId) || isOpen(session)) return false
      const { promise, resolve } = Promise.withResolvers<void>()
      leaving.set(sessionId, promise)
      try {
        // All of it, with the requests of its client: a server that took over may lack what was saved before.
        await saves.give(session, to)
        // Another node was faster.
        if (table.get(sessionId) !== session) return false
        table.drop(sessionId)
        routes.note(sessionId, to)
        return true
      } finally {
        leaving.delete(sessionId)
        resolve()
      }
    },
  }
}
