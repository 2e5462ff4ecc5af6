import { randomBytes } from 'node:crypto'
import type { SessionIdentity, Sessions } from '../../ports/sessions.ts'
import { loseLog } from '../../session/session.ts'
import { createSessionTable } from '../../session/table.ts'
import { createMemoryTold } from './told.ts'

export interface MemorySessionsOptions {
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
  /** The log of a session was lost while its socket is open, and these calls ring there [RES4]. */
  readonly onLogLost: (identity: SessionIdentity, epoch: string, ringing: readonly string[]) => void
}

/** The same port, with every answer at once. */
export type MemorySessions = {
  readonly [Method in keyof Sessions]: (...args: Parameters<Sessions[Method]>) => Awaited<ReturnType<Sessions[Method]>>
} & {
  /** Loses every log, as a store does that is emptied. */
  loseLogs(): void
  /** Sessions without a socket that are remembered. */
  countAway(): number
}

/** The sessions of one process: the embedded default. Nothing is saved. */
export function createMemorySessions({ windowMs, resumeWindowMs, onLogLost }: MemorySessionsOptions): MemorySessions {
  let epoch = newEpoch()
  const table = createSessionTable({ windowMs, resumeWindowMs, newEpoch: () => epoch })
  const told = createMemoryTold(windowMs)

  return {
    ...table,
    ...told,
    hasMoved(sessionId, sink) {
      const other = table.sinkOf(sessionId)
      return other !== undefined && other !== sink
    },
    reset(sessionId, named, text) {
      const session = table.get(sessionId)
      if (session?.sink === undefined || session.due?.epoch !== named) return
      session.due.text = text
      table.handOut(session)
    },
    confirm() {},
    sweep(at) {
      told.sweep(at)
      table.sweep(at)
    },
    loseLogs() {
      epoch = newEpoch()
      for (const session of table.all()) {
        loseLog(session, epoch)
        if (session.sink !== undefined) onLogLost(session.identity, epoch, [...(session.ringing ?? [])])
      }
    },
  }
}

function newEpoch(): string {
  return randomBytes(8).toString('base64url')
}
