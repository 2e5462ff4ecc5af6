import { type Call, isLive, type Place, participantOf, placeOf, type Side } from '../call/call.ts'
import type { PlaceMove } from '../call/effects.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import { type AppendResult, isRelay, type Push } from '../ports/push.ts'
import type { SessionPlaces, SessionPushes, SessionStep } from '../ports/sessions.ts'
import { SessionMovedError, StoreError } from '../ports/store-error.ts'

export interface PlacesOptions {
  readonly sessions: SessionPushes & SessionPlaces
  readonly known: ReadonlyMap<string, Call>
  /** Whether another node that serves holds the socket: only that node writes the session, and nobody else begins it. */
  readonly isHeldElsewhere: (place: Place) => boolean
  /** See `NoticesOptions`. */
  readonly unjumped: (call: Call, at: number) => number
}

/** The effect of a step on the session that has a place. */
export interface PlaceStep extends Pick<SessionStep, 'gate' | 'isAnswered' | 'pushes' | 'early' | 'isOver'> {
  /** The session learns that it has the place. */
  readonly holds?: boolean
}

/** The places of calls in the sessions that have them. */
export interface Places {
  /** Does what a step means for a side where its session is. Answers what its client sent before the accept, where it is that. */
  apply(key: string, call: Call, side: Side, step: PlaceStep): MaybePromise<readonly Push[]>
  /** A place passes to another session, and its queue goes along [PLACE2]. */
  move(key: string, call: Call, move: PlaceMove, gate: boolean): MaybePromise<unknown>
  append(call: Call, side: Side, push: Push): MaybePromise<AppendResult>
}

export function createPlaces({ sessions, known, isHeldElsewhere, unjumped }: PlacesOptions): Places {
  /** A holder whose socket died while its request was being committed still needs a log [PLACE5]. */
  function apply(key: string, call: Call, side: Side, { holds, ...how }: PlaceStep): MaybePromise<readonly Push[]> {
    const place = placeOf(call, side)
    if (place === null) return []
    const { sessionId, deviceId } = place
    const settled = place.settled ? 'settled' : 'unsettled'
    const all = { ...how, call: key, version: call.version, isLost: isFoundLost(key, side, place) }
    const step: SessionStep = holds ? { ...all, place: settled } : all
    const done = sessions.apply(sessionId, step)
    return andThen(done, (early) => {
      if (early !== undefined) return early
      // If there is nothing to deliver, nobody misses it.
      if (!holds && how.pushes === undefined) return []
      const isElsewhere = isHeldElsewhere(place)
      return andThen(isElsewhere && isFoundAt(place), (isFound) =>
        andThen(isFound ? sessions.apply(sessionId, step) : undefined, (early) => {
          if (early !== undefined) return early
          // Its node is about to say that the place is lost. It never says so of a call that is over, whatever the step
          // says: then a client that comes back hears the end there.
          if (isElsewhere && isLive(known.get(key) ?? call)) throw holderGone()
          const identity = { sessionId, participant: participantOf(call, side), deviceId, extended: false }
          const gate = how.gate ?? call.status === 'ringing'
          const anew = {
            ...step,
            place: settled,
            gate,
            orOpen: { identity, at: unjumped(call, call.startedAt) },
          } as const
          return andThen(sessions.apply(sessionId, anew), (early) => early ?? [])
        }),
      )
    })
  }

  /** A later step than this one may have found that. */
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
      throw error instanceof StoreError ? holderGone() : error
    })
  }

  return {
    apply,
    move(key, call, { side, from, lost, taken }, gate) {
      const place = placeOf(call, side)
      if (place === null) return undefined
      const passOn = () => sessions.move(key, from, place.sessionId, place.settled, call.version, gate, lost, taken)
      return andThen(passOn(), (isThere) =>
        isThere ? undefined : andThen(apply(key, call, side, { holds: true, gate }), () => passOn()),
      )
    },
    append(call, side, push) {
      const place = placeOf(call, side)
      if (place === null) return 'dropped'
      const isLost = isFoundLost(push.call, side, place)
      const sent = sessions.append(place.sessionId, push, isLost)
      if (sent === 'sent') return sent
      return andThen(sent, (result) => {
        // The sender of a relay sends it again.
        if (result !== 'gone' || (isRelay(push) && (!isLive(call) || isHeldElsewhere(place)))) return result
        const step = { holds: true, gate: call.status === 'ringing' }
        return andThen(apply(push.call, call, side, step), () => sessions.append(place.sessionId, push))
      })
    },
  }
}

const holderGone = () => new SessionMovedError('the session that has the place is gone')
