import { callKey, type RingingCall } from '../call/call.ts'
import type { LiveCallReads } from '../ports/call-store.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Departure, SessionLookup, SessionSockets, Sink } from '../ports/sessions.ts'
import type { Doubt } from '../push/waking.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { Calls } from './calls.ts'
import { ringsOf } from './late-rings.ts'
import { ownPlace } from './own-place.ts'
import type { ClientSession } from './request.ts'
import type { NoteSocket } from './socket-notes.ts'

export interface DeparturesOptions {
  readonly store: LiveCallReads
  readonly sessions: Pick<SessionSockets & SessionLookup, 'detach' | 'doubt' | 'heldHere'>
  readonly calls: Pick<Calls, 'run'>
  readonly recorder: Pick<Recorder, 'record'>
  readonly noteSocket: NoteSocket
  readonly clock: Pick<SteadyClock, 'unjumped'>
  /** A device of the callee lost a session while a call rings there, or does not answer there: it may sleep [PUSH2]. */
  readonly onDoubt: (call: RingingCall, doubt: Doubt) => void
}

/** How a socket was lost. */
export interface Loss extends Departure {
  /** Its client closed it, and will not come back to its session. */
  readonly forGood: boolean
  /** As the timelines of its calls say it [TRACE1]. */
  readonly cause: string
}

/** Sessions that lose their sockets, and sessions whose clients do not answer [END3, PING1]. */
export interface Departures {
  /** The socket of a session is gone; resolves when its places are vacant, unless it has another socket [END3]. */
  leave(session: ClientSession, sink: Sink, loss: Loss): Promise<void>
  /** The client of a session does not answer pings: calls that ring there may ring for nobody [PING1]. */
  doubt(session: ClientSession): MaybePromise<void>
}

export function createDepartures(options: DeparturesOptions): Departures {
  const { store, sessions, calls, recorder, noteSocket, clock, onDoubt } = options

  async function leave(session: ClientSession, sink: Sink, { forGood, cause, ...how }: Loss): Promise<void> {
    const { sessionId, node } = session
    if (!(await sessions.detach(sessionId, sink, forGood, clock.unjumped(), how))) return
    const live = await store.liveCallsOf(session.participant)
    noteSocket(session, live, 'socket_lost', { cause })
    for (const call of ringsOf(session, live))
      onDoubt(call, { participant: session.participant, deviceId: session.deviceId, cause: 'lost' })
    // It came back meanwhile: its places are its own again.
    if (sessions.heldHere(sessionId) !== undefined) return
    await Promise.all(
      live
        .filter((call) => ownPlace(session, call)?.sessionId === sessionId)
        // Said here as well: by then its client may be back at another node, which forgets how the last socket went.
        .map((call) => calls.run(call, { type: 'lose', sessionId, node, awaitedMs: how.awaitedMs })),
    )
  }

  function doubt(session: ClientSession): MaybePromise<void> {
    return andThen(sessions.doubt(session.sessionId), (keys) => (keys.length === 0 ? undefined : notice(session, keys)))
  }

  async function notice(session: ClientSession, keys: readonly string[]): Promise<void> {
    const { sessionId, participant, deviceId } = session
    for (const call of ringsOf(session, await store.liveCallsOf(session.participant))) {
      if (!keys.includes(callKey(call))) continue
      const whose = { sessionId, deviceId: deviceId ?? undefined, member: participant.userId }
      recorder.record(call, { what: 'unsure', side: 'callee', ...whose, detail: {} })
      onDoubt(call, { participant, deviceId, cause: 'unsure' })
    }
  }

  return { leave, doubt }
}
