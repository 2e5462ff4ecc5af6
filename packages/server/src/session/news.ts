import { baseText, isRelay, type Push } from '../ports/push.ts'
import { callOf, finish, knowsOver, rest, ringsAt, stopRinging } from './calls.ts'
import { heardSeq, newestVersion, type Session } from './session.ts'

/** Whether a push tells the session something that it may know and does not know yet [ORD3, PLACE1]. */
export function isNews(session: Session, push: Push): boolean {
  const isForExtended = push.kind === 'notice' || push.kind === 'peer' || push.kind === 'media'
  if (isForExtended && !session.identity.extended) return false
  if (!understands(session, push)) return false
  if (isRelay(push)) return true
  // The session took the place after this version, and the messages that waited in the place came with it [ORD3].
  if (isForExtended && isOlderThanItsPlace(session, push)) return false
  if (push.kind === 'peer') return isPeerNews(session, push)
  if (knowsOf(session, push)) return false
  const { call } = push
  if (push.kind === 'final') {
    stopRinging(session, call)
    noteTold(session, call)
    finish(session, call)
    return true
  }
  // A call rings once at a session, however often its session comes back.
  if (push.kind === 'ringing' && (ringsAt(session, call) || ignoresRing(session, call))) return false
  noteVersion(session, push)
  if (push.kind === 'ringing') callOf(session, call).isRinging = true
  if (push.kind === 'stop') {
    stopRinging(session, call)
    noteTold(session, call)
    rest(session, call)
  }
  return true
}

/** A push that its client did not list is never sent to it, nor kept for it [EXT6]. */
function understands({ identity: { can = [] } }: Session, { needs }: Push): boolean {
  return needs === undefined || can.includes(needs)
}

/** A second ring of the same call is only understood by clients that know groups: others took the first for the whole [GROUP1]. */
function ignoresRing({ calls, identity: { can = [] } }: Session, call: string): boolean {
  return calls?.get(call)?.version !== undefined && !can.includes('group')
}

function noteTold(session: Session, call: string): void {
  if (!session.hasLooked) callOf(session, call).wasToldFirst = true
}

/** Whether it has heard that version of the call, or a later one, or its end. */
export function knowsOf({ calls }: Session, { call, version }: Push): boolean {
  const known = calls?.get(call)
  if (known === undefined) return false
  return known.isOver === true || (version !== undefined && known.version !== undefined && version <= known.version)
}

function isOlderThanItsPlace({ calls }: Session, { call, version, parcel }: Push): boolean {
  const since = calls?.get(call)?.placeVersion
  if (since === undefined || since === newestVersion) return false
  return version !== undefined && parcel === undefined && version < since
}

function isPeerNews(session: Session, { call, version = 0 }: Push): boolean {
  const known = session.calls?.get(call)
  if (known?.isOver || version <= (known?.peerVersion ?? 0)) return false
  // It waited in a place, and the session heard later that another one had taken that place [ORD3].
  if (version < (known?.version ?? 0)) return false
  notePeerVersion(session, call, version)
  return true
}

/** Notes the last version of the other side's absence that it heard. */
export function notePeerVersion(session: Session, call: string, version: number): void {
  const known = callOf(session, call)
  known.peerVersion = Math.max(version, known.peerVersion ?? 0)
}

/** Remembers the last word of a peer about its media: the next holder of the place hears it [MEDIA1]. */
export function noteMedia(session: Session, push: Push): void {
  if (push.kind === 'media' && !knowsOver(session, push.call)) callOf(session, push.call).media = push
}

/**
 * The last words of its peers about their media that its client, which saw everything up to `seq`, does not find in its
 * log.
 */
export function untoldMedia({ calls, log }: Session, seq: number): readonly Push[] {
  const told = log?.find((entry) => entry.seq > seq && entry.push.kind === 'media') ?? []
  const media = [...(calls?.values() ?? [])].flatMap(({ media }) => media ?? [])
  return media.filter(({ call }) => !told.some(({ push }) => push.call === call))
}

/** Forgets what `untoldMedia` says: its client may have heard later words that were not saved [MEDIA1]. */
export function forgetUntoldMedia(session: Session, seq: number): void {
  for (const { call } of untoldMedia(session, seq)) callOf(session, call).media = undefined
}

/** Whether a session has yet to hear that its call was accepted: told twice, its client would offer twice [PLACE5]. */
export function awaitsState(session: Session, { kind, call }: Push): boolean {
  if (kind !== 'state') return false
  const from = heardSeq(session)
  const waits = session.log?.find(({ seq, push }) => seq > from && push.kind === 'state' && push.call === call)
  return waits !== undefined && waits.length > 0
}

/** Notes the last version of a call that it heard. */
export function noteVersion(session: Session, { call, version }: Pick<Push, 'call' | 'version'>): void {
  if (version === undefined) return
  const known = callOf(session, call)
  known.version = Math.max(version, known.version ?? 0)
}

/** A push as the session's client reads it: extended ones are numbered [EXT1]. */
export function render(session: Session, seq: number, push: Push): string {
  if (!session.identity.extended) return baseText(push)
  const version = push.version === undefined ? '' : `,"version":${push.version}`
  return `${push.text.slice(0, -1)},"seq":${seq}${version}}`
}
