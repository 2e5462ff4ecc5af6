import { randomBytes } from 'node:crypto'
import type { Sessions } from '../../ports/sessions.ts'
import { createSessionTable } from '../../session/table.ts'

export interface MemorySessionsOptions {
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
}

/** The same port, with every answer at once. */
export type MemorySessions = {
  readonly [Method in keyof Sessions]: (...args: Parameters<Sessions[Method]>) => Awaited<ReturnType<Sessions[Method]>>
} & {
  /** Sessions without a socket that are remembered. */
  countAway(): number
}

/** The sessions of one process: the embedded default. Nothing is saved. */
export function createMemorySessions({ windowMs, resumeWindowMs }: MemorySessionsOptions): MemorySessions {
  const epoch = randomBytes(8).toString('base64url')
  const table = createSessionTable({ windowMs, resumeWindowMs, newEpoch: () => epoch })

  return {
    ...table,
    hasMoved(sessionId, sink) {
      const other = table.sinkOf(sessionId)
      return other !== undefined && other !== sink
    },
    confirm() {},
  }
}
