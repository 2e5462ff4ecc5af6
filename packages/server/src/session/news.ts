import { baseText, isRelay, type Push } from '../ports/push.ts'
import { heardSeq, newestVersion, type Session } from './session.ts'

/** So many calls that are over, or were answered elsewhere, are remembered. */
const mostOver = 64
const mostPassed = 32

/** Whether a push tells the session something that it may know and does not know yet [ORD3, PLACE1]. */
export function isNews(session: Session, push: Push): boolean {
  const isForExtended = push.kind === 'notice' || push.kind === 'peer' || push.kind === 'media'
  if (isForExtended && !session.identity.extended) return false
  if (isRelay(push)) return true
  // This news is late, or is told once more, and the session has taken the place since. What waited in the place came with it [ORD3].
  if (isForExtended && isOlderThanItsPlace(session, push)) return false
  if (push.kind === 'peer') return isPeerNews(session, push)
  if (knowsOf(session, push)) return false
  const { call } = push
  if (push.kind === 'stop') {
    session.ringing?.delete(call)
    session.kept?.delete(call)
    session.overSinceOpen?.add(call)
  }
  if (push.kind === 'final') {
    session.ringing?.delete(call)
    session.kept?.delete(call)
    session.overSinceOpen?.add(call)
    finish(session, call)
    return true
  }
  if (push.kind === 'ringing') {
    // A call rings once at a session, however often its session comes back.
    if (session.ringing?.has(call)) return false
    session.ringing ??= new Set()
    session.ringing.add(call)
  }
  noteVersion(session, push)
  if (push.kind === 'stop') pass(session, call)
  return true
}

/** Whether it was told that version of the call, or a later one, or its end. */
export function knowsOf(session: Session, { call, version }: Push): boolean {
  const last = session.versions?.get(call)
  if (version !== undefined && last !== undefined && version <= last) return true
  return session.over?.includes(call) ?? false
}

function isOlderThanItsPlace({ placeVersions }: Session, { call, version, parcel }: Push): boolean {
  const since = placeVersions?.get(call)
  if (since === undefined || since === newestVersion) return false
  return version !== undefined && parcel === undefined && version < since
}

function isPeerNews(session: Session, { call, version = 0 }: Push): boolean {
  if (session.over?.includes(call) || version <= (session.peerVersions?.get(call) ?? 0)) return false
  notePeerVersion(session, call, version)
  return true
}

/** What it was told last of the other side's absence. */
export function notePeerVersion(session: Session, call: string, version: number): void {
  session.peerVersions ??= new Map()
  session.peerVersions.set(call, Math.max(version, session.peerVersions.get(call) ?? 0))
}

/** Remembers what a peer said last of its media: whoever comes to have the place is told [MEDIA1]. */
export function noteMedia(session: Session, push: Push): void {
  if (push.kind !== 'media' || session.over?.includes(push.call)) return
  session.media ??= new Map()
  session.media.set(push.call, push)
}

/** What the peers of its calls said last of their media, and its client, which saw everything up to `seq`, does not find in its log. */
export function untoldMedia(session: Session, seq: number): readonly Push[] {
  const told = session.log?.find((entry) => entry.seq > seq && entry.push.kind === 'media') ?? []
  return [...(session.media?.values() ?? [])].filter(({ call }) => !told.some(({ push }) => push.call === call))
}

/** Whether a session has yet to hear that its call was accepted: told twice, its client would offer twice [PLACE5]. */
export function awaitsState(session: Session, { kind, call }: Push): boolean {
  if (kind !== 'state') return false
  const from = heardSeq(session)
  const waits = session.log?.find(({ seq, push }) => seq > from && push.kind === 'state' && push.call === call)
  return waits !== undefined && waits.length > 0
}

/** It hears no more of a call. */
export function finish(session: Session, call: string): void {
  session.versions?.delete(call)
  session.peerVersions?.delete(call)
  session.placeVersions?.delete(call)
  session.over ??= []
  if (session.over.includes(call)) return
  if (session.over.push(call) > mostOver) session.over.shift()
}

/** A call goes on elsewhere, and the session hears no more of it: of so many the version is remembered. */
export function pass(session: Session, call: string): void {
  session.passed ??= []
  if (session.passed.push(call) <= mostPassed) return
  const oldest = session.passed.shift() as string
  if (session.passed.includes(oldest) || session.places?.has(oldest)) return
  session.versions?.delete(oldest)
  session.peerVersions?.delete(oldest)
}

/** What it was told last of a call. */
export function noteVersion(session: Session, { call, version }: Pick<Push, 'call' | 'version'>): void {
  if (version === undefined) return
  session.versions ??= new Map()
  session.versions.set(call, Math.max(version, session.versions.get(call) ?? 0))
}

/** A push as the session's client reads it: extended ones are numbered [EXT1]. */
export function render(session: Session, seq: number, push: Push): string {
  if (!session.identity.extended) return baseText(push)
  const version = push.version === undefined ? '' : `,"version":${push.version}`
  return `${push.text.slice(0, -1)},"seq":${seq}${version}}`
}
