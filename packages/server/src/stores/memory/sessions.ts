import { randomBytes } from 'node:crypto'
import type { AtOnce } from '../../ports/maybe.ts'
import type { Sessions, Sink } from '../../ports/sessions.ts'
import { turnAway } from '../../session/late.ts'
import { createSessionTable } from '../../session/table.ts'

export interface MemorySessionsOptions {
  /** How long final notices are worth telling, in ms [WS4]. */
  readonly windowMs: number
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly resumeWindowMs: number
}

/** The same port, with every answer at once, except when a socket has to be probed. */
export type MemorySessions = AtOnce<Omit<Sessions, 'sinkToReplace'>> &
  Pick<Sessions, 'sinkToReplace'> & {
    /** Sessions without a socket that are remembered. */
    countAway(): number
  }

/** The sessions of one process: the embedded default. Nothing is saved. */
export function createMemorySessions({ windowMs, resumeWindowMs }: MemorySessionsOptions): MemorySessions {
  const epoch = randomBytes(8).toString('base64url')
  const table = createSessionTable({ windowMs, resumeWindowMs, newEpoch: () => epoch })

  return {
    ...table,
    sinkToReplace(sessionId, identity, next, seq) {
      const ahead = next && table.socketAhead(sessionId, identity, seq)
      if (ahead === undefined) return table.sinkToReplace(sessionId, identity)
      return ahead.probe().then((isAlive) => {
        const here = table.sinkToReplace(sessionId, identity)
        // A client that came meanwhile is newer.
        if (isAlive || (here !== undefined && here !== ahead)) turnAway(next as Sink)
        return here
      })
    },
    resume(request, identity, sink, at, retired) {
      // Another one got the session while the previous socket was retired: that client is newer.
      const here = table.sinkToReplace(request.sessionId, identity)
      if (retired !== undefined && here !== undefined && here !== retired) turnAway(sink)
      return table.resume(request, identity, sink, at)
    },
    hasMoved(sessionId, sink) {
      const other = table.sinkOf(sessionId)
      return other !== undefined && other !== sink
    },
    // Nobody else has any.
    findAt: () => false,
    confirm() {},
  }
}
