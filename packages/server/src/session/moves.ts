import { isLast } from '../ports/push.ts'
import type { Sessions } from '../ports/sessions.ts'
import { callOf, rest } from './calls.ts'
import type { Parcel } from './parcel.ts'
import { accept, give, hold, release } from './places.ts'
import type { Registry } from './registry.ts'
import type { Sending } from './sending.ts'
import { isOpen, mayResume, newestVersion, type Session } from './session.ts'

export interface AcceptHow {
  readonly settled: boolean
  readonly version: number
  readonly gate: boolean
}

/** Places that pass from one session of a participant to another [PLACE2]. */
export interface Moves {
  /** See `Sessions`. */
  move(...move: Parameters<Sessions['move']>): boolean
  /** A place passes on to a session of another process: what goes along. Again the same, until `gave`. */
  give(sessionId: string, call: string, version: number, isTaken?: boolean): Parcel | undefined
  gave(sessionId: string, call: string): void
  /** The place, and what came along with it from another process. False if there is no such session. */
  accept(call: string, to: string, parcel: Parcel, how: AcceptHow): boolean
  /** A place passed on, or its call is over. */
  leave(session: Session, call: string): void
}

export function createMoves(
  { get, changing, changes: { changed }, forgetIfUnused }: Registry,
  sending: Sending,
): Moves {
  const { append } = sending

  function leave(session: Session, call: string): void {
    changed(session)
    release(session, call)
    if (isOpen(session)) return
    // A client that comes back hears how the call ended, and nothing else of it [WS4].
    if (!mayResume(session)) session.log?.retain(({ push }) => push.call !== call || isLast(push))
    forgetIfUnused(session)
  }

  return {
    move(call, from, to, settled, version = newestVersion, gate = false, _isLost = false, isTaken = false) {
      const source = get(from)
      const target = get(to)
      if (target === undefined) return false
      if (source === undefined || source === target) return true
      // If it has passed on again, it must not be taken back.
      if (!hold(target, call, settled, version)) return true
      changed(target)
      accept(target, call, give(source, call, version, isTaken), gate, append)
      leave(source, call)
      return true
    },
    give(sessionId, call, version, isTaken) {
      const source = changing(sessionId)
      if (source === undefined) return undefined
      const parcel = give(source, call, version, isTaken)
      callOf(source, call).parcel = parcel
      leave(source, call)
      return parcel
    },
    gave(sessionId, call) {
      const source = get(sessionId)
      if (source?.calls?.get(call)?.parcel === undefined) return
      changed(source)
      callOf(source, call).parcel = undefined
      rest(source, call)
      forgetIfUnused(source)
    },
    accept(call, to, parcel, { settled, version, gate }) {
      const target = get(to)
      if (target === undefined) return false
      if (!hold(target, call, settled, version)) return true
      changed(target)
      accept(target, call, parcel, gate, append)
      return true
    },
    leave,
  }
}
