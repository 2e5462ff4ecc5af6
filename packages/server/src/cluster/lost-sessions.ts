import { forgetOldest } from '../ports/oldest.ts'
import { SessionMovedError } from '../ports/store-error.ts'
import { callsOf, type Session, sinkOf, sinkToRetire } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'

export interface LostSessionsOptions {
  readonly table: SessionTable
  readonly settle: () => Promise<void> | undefined
}

/** Sessions that this node loses to other nodes. */
export interface LostSessions {
  /** Another node has the session, so what this node has of it, or said to it, is worth nothing. `hasSocket`: with a socket of its own. */
  refused(session: Session, hasSocket: boolean): void
  /** An earlier owner took something for the session that this node does not have: its client begins again [RES2]. */
  diverged(session: Session): void
  /** Other nodes could not tell these sessions what came meanwhile: their clients begin again. */
  giveUp(isOf: (sessionId: string) => boolean): Promise<void>
  /** Throws a `SessionMovedError` if a session of the call was lost: it has not heard what this node told it since. */
  confirm(call: string): void
}

/** Calls with a step that has to be delivered once more. */
const mostDoubted = 20_000

export function createLostSessions({ table, settle }: LostSessionsOptions): LostSessions {
  /** Calls of which this node appended something to a session after another node had taken that session. */
  const doubted = new Map<string, true>()

  function doubt(session: Session): void {
    for (const call of callsOf(session)) doubted.set(call, true)
    forgetOldest(doubted, mostDoubted)
  }

  return {
    refused(session, hasSocket) {
      doubt(session)
      if (table.get(session.identity.sessionId) !== session) return
      table.drop(session.identity.sessionId)
      const sink = sinkOf(session)
      // At once: the number of what its client got here belongs to something else in the log there.
      if (hasSocket) sink?.close(4409, 'replaced by a newer connection')
      else sink?.close(1013, 'try again later', 'its node was taken for dead')
      // Its client sends the requests without a reply again there, in order [EXT4] [ORD2].
      if (session.identity.extended) void sinkToRetire(session)?.retire()
    },
    diverged(session) {
      session.broken = true
      sinkOf(session)?.close(1013, 'try again later', 'its node was taken for dead')
    },
    async giveUp(isOf) {
      for (const session of [...table.all()]) {
        const { sessionId } = session.identity
        if (!isOf(sessionId)) continue
        doubt(session)
        sinkOf(session)?.close(1013, 'try again later', 'its node was taken for dead')
        table.forget(sessionId)
      }
      await settle()
    },
    confirm(call) {
      if (doubted.delete(call)) throw new SessionMovedError('a session of the call has another owner by now')
    },
  }
}
