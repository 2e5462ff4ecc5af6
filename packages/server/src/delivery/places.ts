import { type Call, isLive, type Place, participantOf, placeOf, type Side } from '../call/call.ts'
import type { PlaceMove } from '../call/effects.ts'
import { allDone, andThen, bothOf, type MaybePromise } from '../ports/maybe.ts'
import { type AppendResult, isRelay, type Push } from '../ports/push.ts'
import type { SessionPlaces, SessionPushes } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'

export interface PlacesOptions {
  readonly sessions: SessionPushes & SessionPlaces
  readonly known: ReadonlyMap<string, Call>
  /** Whether another node that serves holds the socket: only that node writes the session, and nobody else begins it. */
  readonly isHeldElsewhere: (place: Place) => boolean
}

/** What each side sent before the accept. */
export type Kept = Readonly<Record<Side, readonly Push[]>>

/** The places of calls in the sessions that have them. */
export interface Places {
  /** The session that has the place of a side learns of it; with `gate`, relays wait until what was kept has gone out. */
  hold(key: string, call: Call, side: Side, gate: boolean): MaybePromise<unknown>
  /** The same of both sides once the call is answered, and what each of them has sent until now. */
  answer(key: string, call: Call): MaybePromise<Kept>
  /** A place passes to another session, and its queue goes along [PLACE2]. */
  move(key: string, call: Call, move: PlaceMove, gate: boolean): MaybePromise<unknown>
  append(call: Call, side: Side, push: Push): MaybePromise<AppendResult>
  /** Each side gets what the other sent before the accept, and then what the other sends after it [REL2]. */
  handOver(key: string, call: Call, kept: Kept): MaybePromise<void>
  release(key: string, call: Call): MaybePromise<unknown>[]
}

/** The session that has a place is not there any more. */
export class HolderGone extends StoreError {
  constructor() {
    super('unavailable', 'the session that has the place is gone')
  }
}

export function createPlaces({ sessions, known, isHeldElsewhere }: PlacesOptions): Places {
  /** A holder whose socket died while its request was being committed still needs a log [PLACE5]. */
  function remember(key: string, call: Call, side: Side, place: Place, gate: boolean): MaybePromise<unknown> {
    const isLost = isFoundLost(key, side, place)
    return whereItIs(call, side, place, () =>
      sessions.hold(place.sessionId, key, place.settled, gate, call.version, isLost),
    )
  }

  /** `work` answers false if there is no such session. Then its node is asked for it, or it is registered anew, for `work`. */
  function whereItIs<T>(
    call: Call,
    side: Side,
    place: Place,
    work: () => MaybePromise<T | false>,
  ): MaybePromise<T | false> {
    const { sessionId, deviceId } = place
    return andThen(work(), (done) => {
      if (done !== false) return done
      const isElsewhere = isHeldElsewhere(place)
      return andThen(isElsewhere && isFoundAt(place), (isFound) =>
        andThen(isFound && work(), (done) => {
          if (done !== false) return done
          // Its node is about to say that the place is lost. It never says so of a call that is over: then a client that
          // comes back is told there.
          if (isElsewhere && isLive(call)) throw new HolderGone()
          const identity = { sessionId, participant: participantOf(call, side), deviceId, extended: false }
          return andThen(sessions.openDetached(identity, call.startedAt), work)
        }),
      )
    })
  }

  function answerAt(key: string, call: Call, side: Side): MaybePromise<readonly Push[]> {
    const place = placeOf(call, side)
    if (place === null) return []
    const isLost = isFoundLost(key, side, place)
    const answer = () => sessions.answer(place.sessionId, key, place.settled, call.version, isLost)
    return andThen(whereItIs(call, side, place, answer), (kept) => kept || [])
  }

  /** A later step than the one that is told may have found that. */
  function isFoundLost(key: string, side: Side, { sessionId, state }: Place): boolean {
    const call = known.get(key)
    const now = call && placeOf(call, side)
    return state === 'vacant' || (now?.state === 'vacant' && now.sessionId === sessionId)
  }

  /** A node that does not answer now may have the session. */
  function isFoundAt({ sessionId, node }: Place): MaybePromise<boolean> {
    const found = sessions.findAt(sessionId, node)
    if (!(found instanceof Promise)) return found
    return found.catch((error) => {
      throw error instanceof StoreError ? new HolderGone() : error
    })
  }

  return {
    hold(key, call, side, gate) {
      const place = placeOf(call, side)
      return place === null ? undefined : remember(key, call, side, place, gate)
    },
    move(key, call, { side, from, lost }, gate) {
      const place = placeOf(call, side)
      if (place === null) return undefined
      const passOn = () => sessions.move(key, from, place.sessionId, place.settled, call.version, gate, lost)
      return andThen(passOn(), (isThere) =>
        isThere ? undefined : andThen(remember(key, call, side, place, gate), () => passOn()),
      )
    },
    append(call, side, push) {
      const place = placeOf(call, side)
      if (place === null) return 'dropped'
      const isLost = isFoundLost(push.call, side, place)
      const sent = sessions.append(place.sessionId, push, isLost)
      if (sent === 'sent') return sent
      return andThen(sent, (result) => {
        // Whoever asked for a relay sends it again.
        if (result !== 'gone' || (isRelay(push) && (!isLive(call) || isHeldElsewhere(place)))) return result
        return andThen(remember(push.call, call, side, place, call.status === 'ringing'), () =>
          sessions.append(place.sessionId, push),
        )
      })
    },
    answer(key, call) {
      // Once the caller's session has said what it kept, its relays go to the callee's place: that one is made first.
      const [ofCallee, ofCaller] = [answerAt(key, call, 'callee'), answerAt(key, call, 'caller')]
      return andThen(bothOf(ofCallee, ofCaller), ([callee, caller]) => ({ callee, caller }))
    },
    handOver(key, call, kept) {
      const caller = placeOf(call, 'caller')
      const callee = placeOf(call, 'callee')
      if (caller === null || callee === null) return
      return allDone([
        sessions.openGate(caller.sessionId, key, kept.callee),
        sessions.openGate(callee.sessionId, key, kept.caller),
      ])
    },
    release(key, call) {
      const places = [placeOf(call, 'caller'), placeOf(call, 'callee')]
      return places.map((place) => (place === null ? undefined : sessions.release(place.sessionId, key)))
    },
  }
}
