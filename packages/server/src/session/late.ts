import type { Sink } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Session } from './session.ts'

/** Of several sockets that come back to a session, another one is newer [RES1]. */
export class LateError extends StoreError {
  constructor() {
    super('unavailable', 'the session has a newer socket meanwhile')
  }
}

/** Says so to its client. */
export function turnAway(sink: Sink): never {
  sink.close(4409, 'replaced by a newer connection')
  throw new LateError()
}

/**
 * The socket of a session, where it is sure to have received more than whoever comes back has seen. Nobody forgets: one that
 * comes back so is of before, and was on its way for long, or the socket is dead, and its client began again.
 */
export function socketAhead({ sink, provenSeq }: Session, seq: number | undefined): Sink | undefined {
  return seq !== undefined && seq < provenSeq ? sink : undefined
}
