import { isLast, isRelay, type Push } from '../ports/push.ts'
import { type KeepResult, waitingLimits } from '../ports/sessions.ts'
import { hasOldAnswers, withoutOldAnswers } from './answers.ts'
import { callOf, callsThat, isUnsettled, knowsOver, leaveCall } from './calls.ts'
import type { LogEntry } from './log.ts'
import { notePeerVersion, noteVersion } from './news.ts'
import type { Kept, Parcel } from './parcel.ts'
import { isOpen, newestVersion, type Session } from './session.ts'
import { Taken } from './taken.ts'

/** Appends to a session. */
export type Append = (session: Session, push: Push, at?: number) => unknown

/** Senders whose requests are remembered. */
const mostSenders = 16
/** Parcels of a call that may come again. */
const mostAccepted = 16

/**
 * The messages about a call that its client was not proven to have received, for the next holder of its place [PLACE2].
 * Its calls do not ring there any more: only an answered call has places.
 */
export function takeUnproven(session: Session, wanted: (push: Push) => boolean): LogEntry[] {
  const { log } = session
  if (log === undefined) return []
  const matches = (push: Push) => push.kind !== 'ringing' && wanted(push)
  if (!session.identity.extended) return log.take(({ push }) => matches(push))
  const isUnproven = (seq: number, push: Push) => {
    const call = session.calls?.get(push.call)
    // Messages to a session that took the place only by connecting may have come to the wrong tab.
    return (seq > session.provenSeq && seq > (call?.acknowledgedSeq ?? 0)) || call?.place === 'unsettled'
  }
  const isUndelivered = ({ seq, push }: LogEntry) => isUnproven(seq, push) && matches(push)
  const undelivered = log.find(isUndelivered)
  // With a socket they stay in its log, too: whoever resumes it misses nothing [RES1].
  if (isOpen(session) || undelivered.length === 0) return undelivered
  session.broken = true
  log.retain((entry) => !isUndelivered(entry))
  return undelivered
}

/** The session has a place, again or for the first time; false where that is old news. */
export function hold(session: Session, call: string, settled: boolean, version: number): boolean {
  const before = session.calls?.get(call)
  if (before?.isOver || version < (before?.placeVersion ?? 0)) return false
  const known = callOf(session, call)
  known.placeVersion = version
  if (settled) settle(session, call)
  known.place = settled ? 'settled' : 'unsettled'
  return true
}

/** A place that does not pass on any more: what its holder has received is for nobody else [PLACE2]. */
export function settle(session: Session, call: string): void {
  const known = session.calls?.get(call)
  if (known?.place !== 'unsettled') return
  known.place = 'settled'
  if (!session.identity.extended) session.log?.forgetProven(callsThat(session, isUnsettled))
}

/** The session has the place no more, or its call is over. */
export function release(session: Session, call: string): void {
  const known = session.calls?.get(call)
  if (known?.place !== undefined && known.isOver !== true) known.had = known.place
  settle(session, call)
  leaveCall(session, call)
}

/** Keeps a relay until its call is accepted [REL2]. */
export function keep(session: Session, push: Push): KeepResult {
  const before = session.calls?.get(push.call)
  if (before?.isOver || before?.kept?.taken) return 'closed'
  const kept = before?.kept ?? { pushes: [], bytes: 0, taken: false }
  const n = push.source?.n
  if (n !== undefined && kept.pushes.some(({ source }) => source?.n === n)) return 'kept'
  if (kept.pushes.length >= waitingLimits.entries || kept.bytes + push.text.length > waitingLimits.bytes) return 'full'
  kept.pushes.push(saveFirst(push))
  kept.bytes += push.text.length
  callOf(session, push.call).kept = kept
  return 'kept'
}

export function takeKept(session: Session, call: string): readonly Push[] {
  if (knowsOver(session, call)) return []
  const known = callOf(session, call)
  known.kept ??= { pushes: [], bytes: 0, taken: true }
  known.kept.taken = true
  return known.kept.pushes
}

/** Relays of the call are held back from now on; not where they were before. */
export function closeGate(session: Session, call: string, version = newestVersion): void {
  const known = callOf(session, call)
  // A session that knows a version after the answer has the answer's gate behind it.
  if (known.gate === undefined && (known.version ?? 0) <= version) known.gate = []
}

/** Appends `first`, then the relays that were held back; nothing if there is no gate. */
export function openGate(session: Session, call: string, first: readonly Push[], append: Append): void {
  const held = session.calls?.get(call)?.gate
  if (held === undefined || held === null) return
  // A late delivery of the same answer does not close it again.
  callOf(session, call).gate = null
  for (const push of first) append(session, push)
  appendHeld(session, held, append)
}

function appendHeld(session: Session, held: readonly Push[], append: Append): void {
  for (const push of held) append(session, untaken(push))
}

/** A step of the call brings its relays again until they are saved. */
export function saveFirst(push: Push): Push {
  return isRelay(push) ? { ...push, saveFirst: true } : push
}

/** The session gets it even if it knows the request, which was taken when it first came [EXT4]. */
export function untaken(push: Push): Push {
  return { ...push, source: undefined }
}

/** Whether it took a request before [EXT4]. */
export function hasTaken(session: Session, { source }: Push): boolean {
  return source !== undefined && session.taken?.get(source.sessionId)?.has(source.n) === true
}

/** Whether it took a later one of the same sender, but not this one: it may not come after that [ORD2]. */
export function isLate(session: Session, { source }: Push): boolean {
  return source !== undefined && session.taken?.get(source.sessionId)?.isLate(source.n) === true
}

/** Whether the one that it comes after was not taken [ORD1]. */
export function isEarly(session: Session, push: Push): boolean {
  const { source } = push
  if (source?.after === undefined || hasTaken(session, push)) return false
  return session.taken?.get(source.sessionId)?.has(source.after) !== true
}

export function noteTaken(session: Session, { source }: Push): void {
  if (source === undefined) return
  session.taken ??= new Map()
  const known = session.taken.get(source.sessionId)
  if (known !== undefined) return void known.take(source.n)
  const taken = new Taken()
  taken.take(source.n)
  session.taken.set(source.sessionId, taken)
  if (session.taken.size > mostSenders) session.taken.delete(session.taken.keys().next().value!)
}

/** Takes out of a session what goes along with a place that passes on; `isTaken`: nothing that the peer signalled. */
export function give(source: Session, call: string, version: number, isTaken = false): Parcel {
  const before = source.calls?.get(call)
  if (before?.parcel !== undefined) return before.parcel
  // Told before, perhaps by another node: what an extended one with a socket had stays in its log.
  const isHeld = before?.place !== undefined
  const isPassed = !isHeld && (before?.placeVersion ?? -1) >= version
  // How it ended for a device that has left is for that one [PLACE2].
  const isWanted = (push: Push) => push.call === call && push.kind !== 'media' && (isHeld || !isLast(push))
  const unproven = isPassed ? [] : takeUnproven(source, isWanted)
  const wanted = isTaken ? unproven.filter(({ push }) => push.kind !== 'relay') : unproven
  const entries = wanted.map(({ push, at }) => ({ push, at }))
  const staying = stayingOf(source, call)
  const taken = [...(source.taken ?? [])].map(([sender, taken]) => {
    const left = staying.get(sender)
    return [sender, (left === undefined ? taken : taken.without(left)).write()] as const
  })
  const parcel = {
    id: `${source.identity.sessionId}-${version}-${encodeURIComponent(call)}`,
    ...(isPassed && { isPassed }),
    ...(hasOldAnswers(source, call, wanted) && { hasOldAnswers: true as const }),
    entries,
    told: [before?.version ?? 0, before?.peerVersion ?? 0] as const,
    media: before?.media,
    kept: isTaken && before?.kept ? { ...before.kept, pushes: [], bytes: 0 } : before?.kept,
    gate: isTaken && before?.gate ? [] : before?.gate,
    taken,
  }
  callOf(source, call).placeVersion = version
  return parcel
}

/** The requests of each sender that wait for other calls. The session that gets this place has yet to take them. */
function stayingOf({ log }: Session, call: string): Map<string, number[]> {
  const staying = new Map<string, number[]>()
  for (const { push } of log?.all() ?? []) {
    const { source } = push
    if (source === undefined || push.call === call) continue
    const requests = staying.get(source.sessionId)
    if (requests === undefined) staying.set(source.sessionId, [source.n])
    else requests.push(source.n)
  }
  return staying
}

/** The messages that came along with a place go before its own; a parcel that came before brings nothing. */
export function accept(target: Session, call: string, parcel: Parcel, gate: boolean, append: Append): void {
  const known = callOf(target, call)
  known.accepted ??= []
  const { accepted } = known
  if (accepted.includes(parcel.id)) return
  acceptKept(target, call, parcel.kept)
  // Who makes up for several steps at once brings it to the last place, while others bring it from place to place.
  const unseen = parcel.entries.filter(({ push }) => push.parcel === undefined || !accepted.includes(push.parcel))
  const news = parcel.hasOldAnswers === true ? withoutOldAnswers(target, call, unseen) : unseen
  for (const { push, at } of news) append(target, saveFirst({ ...push, parcel: push.parcel ?? parcel.id }), at)
  // The rest of it may come by way of another session.
  const brought = parcel.isPassed === true ? [] : [parcel.id]
  for (const id of new Set([...news.flatMap(({ push }) => push.parcel ?? []), ...brought])) {
    if (accepted.push(id) > mostAccepted) accepted.shift()
  }
  if (parcel.isPassed !== true && parcel.told !== undefined) {
    const [version, peerVersion] = parcel.told
    if (version > 0) noteVersion(target, { call, version })
    if (peerVersion > 0) notePeerVersion(target, call, peerVersion)
  }
  for (const [sender, text] of parcel.taken) {
    target.taken ??= new Map()
    const from = Taken.read(text)
    const own = target.taken.get(sender)
    if (own === undefined) target.taken.set(sender, from)
    else own.join(from)
  }
  acceptGate(target, call, parcel.gate, gate, append)
  if (parcel.media !== undefined) append(target, untaken(parcel.media))
}

function acceptKept(target: Session, call: string, kept: Kept | undefined): void {
  if (kept === undefined) return
  const known = callOf(target, call)
  const own = known.kept
  const pushes = [...kept.pushes, ...(own?.pushes ?? [])]
  known.kept = { pushes, bytes: kept.bytes + (own?.bytes ?? 0), taken: kept.taken || own?.taken === true }
}

function acceptGate(target: Session, call: string, from: Parcel['gate'], closes: boolean, append: Append): void {
  const known = callOf(target, call)
  const own = known.gate
  if (own === null) {
    // Opened here already: nobody will open it again.
    appendHeld(target, from ?? [], append)
    return
  }
  if (from === undefined || (from === null && own !== undefined)) {
    if (closes) closeGate(target, call)
    return
  }
  known.gate = from === null ? null : [...from, ...(own ?? [])]
}
