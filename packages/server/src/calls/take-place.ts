import { type Call, isLive, nextOf } from '../call/call.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { CallSteps } from '../ports/call-store.ts'
import type { SessionLookup } from '../ports/sessions.ts'
import type { Calls } from './calls.ts'
import { ownPlace } from './own-place.ts'
import type { ClientSession } from './request.ts'

export interface TakePlaceOptions {
  readonly store: Pick<CallSteps, 'load'>
  readonly sessions: Pick<SessionLookup, 'heldHere' | 'sinkOf'>
  readonly delivery: Pick<Delivery, 'catchUp'>
  readonly calls: Pick<Calls, 'run'>
}

/** How a session that has just come gets the places of its device [PLACE2, PLACE4]. */
export interface TakePlace {
  /**
   * Takes what its own device left behind. The service asks a holder that looks alive, and the new session does not wait for its
   * answer [PLACE4]. Final notices do: one may say that the call was answered elsewhere, and elsewhere is perhaps here.
   * Again, because others arrive and die meanwhile: a session that lost its socket while it took the place leaves it to
   * this one. One whose socket is closed does not ask again, or hundreds that connected and dropped would wake each other.
   */
  takePlace(session: ClientSession, read: Call, resumes: string | undefined): Promise<void>
  /** Asks the client of a session for a sign of life. */
  isAlive(sessionId: string, node?: string): Promise<boolean>
}

export function createTakePlace({ store, sessions, delivery, calls }: TakePlaceOptions): TakePlace {
  /**
   * The call may be transferred after it was read. The new call has the places of this one, and the arriving session has not
   * read it, so its place is taken, too [XFER1].
   */
  async function takePlace(session: ClientSession, read: Call, resumes: string | undefined): Promise<void> {
    for (let call: Call | undefined = read; call !== undefined; ) {
      const known: string | undefined = nextOf(call)?.callUuid
      const next = nextOf(await takeIn(session, call, resumes))
      call = next === undefined || next.callUuid === known ? undefined : await store.load(next)
    }
  }

  /** Answers the call as it was found. */
  async function takeIn(session: ClientSession, read: Call, resumes: string | undefined): Promise<Call> {
    const { sessionId, deviceId } = session
    let call = read
    while (isLive(call) && (await isHere(sessionId))) {
      const place = ownPlace(session, call)
      if (place === null || place.sessionId === sessionId || place.deviceId !== deviceId) break
      const { state, node, sessionId: holder } = place
      // Its own last session cannot be resumed: nobody else is there.
      const isNamed = holder === resumes
      if (state === 'held' && !isNamed && (await isAlive(holder, node))) break
      const decision = await calls.run(
        call,
        state === 'held'
          ? { type: 'lose', sessionId: holder, node }
          : { type: 'arrive', actor: session, ...(isNamed && { resumes }) },
      )
      // Its holder is back at another node.
      if (!decision.ok || decision.call.version === call.version) break
      call = decision.call
      // The notice of its end may just be on its way to the previous session.
      if (!isLive(call)) await delivery.catchUp(call)
    }
    return call
  }

  /** Whether the session has an open socket here, be it another one than it came with [RES1]. */
  async function isHere(sessionId: string): Promise<boolean> {
    if (sessions.heldHere(sessionId) === undefined) return false
    return (await sessions.sinkOf(sessionId))?.isClosed === false
  }

  async function isAlive(sessionId: string, node?: string): Promise<boolean> {
    const sink = await sessions.sinkOf(sessionId, node)
    return (await sink?.probe()) ?? false
  }

  return { takePlace, isAlive }
}
