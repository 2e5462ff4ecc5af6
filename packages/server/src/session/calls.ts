import type { Push } from '../ports/push.ts'
import type { Holding } from '../ports/sessions.ts'
import type { Kept, Parcel } from './parcel.ts'

/** The knowledge of a session about one call. It is plain data: a copy of the session is its JSON. */
export interface SessionCall {
  isRinging?: boolean | undefined
  /** The session has the place of its side; `unsettled`: it took that place only by connecting [PLACE2]. */
  place?: Holding | undefined
  /** How it had the place when that passed on: it may come back for it [PLACE2]. */
  had?: Holding | undefined
  /** The version of the call by which it got its place, or lost it. Older news of the place changes nothing. */
  placeVersion?: number | undefined
  /** The last version of the call that was sent to the client. */
  version?: number | undefined
  /** The last version of the other side's absence that the client got [PEER1]. */
  peerVersion?: number | undefined
  /** A new session's client heard how the call ended, or that it rings no more, before the session had looked [WS4]. */
  wasToldFirst?: boolean | undefined
  /** The call is over, and the session knows. The session gets nothing of the call after that [ORD2]. */
  isOver?: boolean | undefined
  /** The peer's last word about its media [MEDIA1]. */
  media?: Push | undefined
  /** The media flows, so that the client has the pushes up to this seq, also without a pong [PLACE5]. */
  acknowledgedSeq?: number | undefined
  /** Relays of the client that wait for the accept [REL2]. */
  kept?: Kept | undefined
  /** Relays of the peer that wait until those from before the accept have gone; null once they went. */
  gate?: Push[] | null | undefined
  /** What the session gave to the next holder of its place, until that holder has it for sure [PLACE2]. */
  parcel?: Parcel | undefined
  /** The ids of the parcels that the session took, oldest first. */
  accepted?: string[] | undefined
}

/** A session, as far as this file knows it. */
interface Knowing {
  calls: Map<string, SessionCall> | undefined
}

/** A session remembers this many calls with which it has nothing to do any more. */
const mostRemembered = 256
/** A copy holds fewer, because it is written with every step of a call. */
const mostCopied = 64

/** All that is remembered of most calls that are over. Sessions share it, so nobody changes it. */
const over: SessionCall = Object.freeze({ isOver: true })

/** What the session knows of the call, to be changed. */
export function callOf(session: Knowing, call: string): SessionCall {
  session.calls ??= new Map()
  const known = session.calls.get(call)
  if (known !== undefined && known !== over) return known
  const fresh = newCall(known?.isOver)
  session.calls.set(call, fresh)
  return fresh
}

/** With every field, so that all of them have one shape. */
function newCall(isOver?: boolean): SessionCall {
  return {
    isRinging: undefined,
    place: undefined,
    had: undefined,
    placeVersion: undefined,
    version: undefined,
    peerVersion: undefined,
    wasToldFirst: undefined,
    isOver,
    media: undefined,
    acknowledgedSeq: undefined,
    kept: undefined,
    gate: undefined,
    parcel: undefined,
    accepted: undefined,
  }
}

/** A call from a copy, which lacks the fields that have no value. */
export function readCall(saved: SessionCall): SessionCall {
  return saved.isOver === true && Object.keys(saved).length === 1 ? over : { ...newCall(), ...saved }
}

/** Whether one of the session's calls is like that. */
export function someCall({ calls }: Knowing, test: (call: SessionCall) => boolean): boolean {
  if (calls === undefined) return false
  for (const call of calls.values()) if (test(call)) return true
  return false
}

/** The calls that are like that. */
export function callsThat({ calls }: Knowing, test: (call: SessionCall) => boolean): string[] {
  if (calls === undefined) return []
  return [...calls].filter(([, call]) => test(call)).map(([id]) => id)
}

export const hasPlace = ({ place }: SessionCall) => place !== undefined
export const isUnsettled = ({ place }: SessionCall) => place === 'unsettled'
export const isRinging = ({ isRinging }: SessionCall) => isRinging === true
/** The session has a place in the call, or it rings there. */
export const isThere = (call: SessionCall) => hasPlace(call) || isRinging(call)
export const hasParcel = ({ parcel }: SessionCall) => parcel !== undefined
/** The session has a part in the call, or something of it waits there. */
export const isLive = (call: SessionCall) => isThere(call) || call.kept !== undefined || hasParcel(call)

/** Whether the session has a place in this call. */
export function holdsPlace({ calls }: Knowing, call: string): boolean {
  return calls?.get(call)?.place !== undefined
}

/**
 * Whether the place of its side passed on from it to another session. News of that may overtake the news that it has the place
 * [TAKE1].
 */
export function hasLeft({ calls }: Knowing, call: string): boolean {
  const known = calls?.get(call)
  return known?.placeVersion !== undefined && known.place === undefined
}

/** Whether the call rings at the session. */
export function ringsAt({ calls }: Knowing, call: string): boolean {
  return calls?.get(call)?.isRinging === true
}

/** Whether the client has heard anything of the call, or has to do with it. */
export function isAware({ calls }: Knowing, call: string): boolean {
  const known = calls?.get(call)
  return known !== undefined && (isThere(known) || known.version !== undefined || known.isOver === true)
}

/** Whether the session knows that the call is over. */
export function knowsOver({ calls }: Knowing, call: string): boolean {
  return calls?.get(call)?.isOver === true
}

/** The call rings at the session no more, and what the client sent for it before the accept is for nobody. */
export function stopRinging(session: Knowing, call: string): void {
  const known = session.calls?.get(call)
  if (known === undefined || known === over) return
  known.isRinging = undefined
  known.kept = undefined
}

/** The call is over. The session hears no more of it. */
export function finish(session: Knowing, call: string): void {
  const known = callOf(session, call)
  known.isOver = true
  known.version = undefined
  known.peerVersion = undefined
  known.placeVersion = undefined
  known.had = undefined
  known.accepted = undefined
  rest(session, call)
}

/** The calls in which the session has the place of its side, or had it when that passed on. */
export function placesOf({ calls }: Knowing): ReadonlyMap<string, Holding> {
  const places = new Map<string, Holding>()
  for (const [id, { place, had }] of calls ?? []) {
    const how = place ?? had
    if (how !== undefined) places.set(id, how)
  }
  return places
}

/** The place passed on, or the call is over. */
export function leaveCall(session: Knowing, call: string): void {
  const known = session.calls?.get(call)
  if (known === undefined || known === over) return
  known.isRinging = undefined
  known.place = undefined
  known.media = undefined
  known.acknowledgedSeq = undefined
  known.kept = undefined
  known.gate = undefined
  rest(session, call)
}

function isOnlyOver({ isOver, placeVersion, wasToldFirst }: SessionCall): boolean {
  return isOver === true && placeVersion === undefined && wasToldFirst === undefined
}

/** The calls that a copy holds: all in which the session has a part, and of the others those that it left last. */
export function copiedCalls(calls: ReadonlyMap<string, SessionCall>): [string, SessionCall][] {
  const all = [...calls]
  let extra = all.length - mostCopied
  return extra <= 0 ? all : all.filter(([, each]) => isLive(each) || --extra < 0)
}

/** Of calls with which the session has nothing to do any more, it forgets the one that was left first. */
export function rest(session: Knowing, call: string): void {
  const { calls } = session
  const known = calls?.get(call)
  if (calls === undefined || known === undefined || isLive(known)) return
  calls.delete(call)
  calls.set(call, isOnlyOver(known) ? over : known)
  let extra = calls.size - mostRemembered
  if (extra <= 0) return
  for (const [id, each] of calls) {
    if (isLive(each)) continue
    calls.delete(id)
    if (--extra <= 0) return
  }
}
