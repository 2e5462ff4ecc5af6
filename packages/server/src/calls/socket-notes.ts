import { type LiveCall, placeOf, sideAbout } from '../call/call.ts'
import type { Detail } from '../call/observed.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { ClientSession } from './request.ts'

/** Notes in the timelines of calls that a session lost its socket, or found one. */
export type NoteSocket = (
  session: ClientSession,
  live: readonly LiveCall[],
  what: 'socket_lost' | 'socket_found',
  detail: Detail,
) => void

export function createNoteSocket(recorder: Pick<Recorder, 'record'>): NoteSocket {
  /** Of the calls that it has to do with: those that ring there, and those in which its device has the place [TRACE1]. */
  return (session, live, what, detail) => {
    for (const call of live) {
      const side = sideAbout(call, session.participant)
      if (side === undefined) continue
      const place = placeOf(call, side)
      const { sessionId, deviceId } = session
      if (place !== null && place.sessionId !== sessionId && place.deviceId !== deviceId) continue
      const member = side === 'callee' ? session.participant.userId : undefined
      recorder.record(call, { what, side, sessionId, deviceId: deviceId ?? undefined, member, detail })
    }
  }
}
