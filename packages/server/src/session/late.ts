import type { Sink } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { type Session, sinkOf } from './session.ts'

/** Of several sockets that come back to a session, another one is newer [RES1]. */
export class LateError extends StoreError {
  constructor() {
    super('unavailable', 'the session has a newer socket meanwhile')
  }
}

/** The client that came back is gone again. */
export class ClosedError extends StoreError {
  constructor() {
    super('unavailable', 'the connection was closed meanwhile')
  }
}

/** Says to the client of a socket that another one is newer. */
export function turnAway(sink: Sink): never {
  sink.close(4409, 'replaced by a newer connection')
  throw new LateError()
}

/**
 * The socket of a session, if it has proven to have received more than the client that comes back has seen: that client's
 * attempt was long on its way, or the socket is dead, and its client began again from what it had kept.
 */
export function socketAhead(session: Session, seq: number | undefined): Sink | undefined {
  return seq !== undefined && seq < session.provenSeq ? sinkOf(session) : undefined
}
