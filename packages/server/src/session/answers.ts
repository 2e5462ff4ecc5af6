import { isRelayOf, type Push } from '../ports/push.ts'
import { callOf } from './calls.ts'
import type { LogEntry } from './log.ts'
import { knowsOf } from './news.ts'
import type { Session } from './session.ts'

// `call.accepted` makes a base caller build a new connection and offer. Told twice, or beside the answer to an offer of the
// connection before, it ends media that flows [PLACE5].

/** Whether a ping follows a push at once: until its pong a lost socket means that it is sent again, or that nobody is there. */
export function isUrgent(push: Push): boolean {
  return push.kind === 'state' || push.kind === 'ringing' || isRelayOf(push, 'webrtc.answer')
}

/**
 * The client's media flows: it has the accept of the call, the peer's answer and whatever came before these. True where that
 * was not known.
 */
export function acknowledge(session: Session, call: string): boolean {
  const { log, provenSeq, identity } = session
  const isOpen = ({ seq, push }: LogEntry) => push.call === call && (!identity.extended || seq > provenSeq)
  const open = log?.find(isOpen) ?? []
  // A later answer is to an offer of a connection that exists: it may still be on its way.
  const last =
    open.find(({ push }) => isRelayOf(push, 'webrtc.answer')) ?? open.find(({ push }) => push.kind === 'state')
  if (last === undefined) return false
  if (identity.extended) {
    // A resume may still ask for it.
    callOf(session, call).acknowledgedSeq = last.seq
  } else log?.retain(({ seq, push }) => push.call !== call || seq > last.seq)
  return true
}

/** The session is about to get the accept of a call once more: a base session forgets its answers to older offers. */
export function forgetOldAnswers(session: Session, call: string): void {
  const { identity, log } = session
  if (identity.extended || log === undefined || hasOfferedEarly(session, call)) return
  const states = log.find(({ push }) => push.call === call && push.kind === 'state')
  // Not told yet: this is the first time for its client, which has made no offer.
  if (states.some(({ seq }) => !wasHanded(session, seq))) return
  if (log.all().some(({ push }) => isOldAnswer(push, call))) log.retain(({ push }) => !isOldAnswer(push, call))
}

/**
 * Whether messages that go to another session of the participant hold answers to older offers: the client has had the accept
 * once, and makes a new offer when that session sends it the accept again.
 */
export function hasOldAnswers(session: Session, call: string, entries: readonly LogEntry[]): boolean {
  const isToldAgain = entries.some(({ seq, push }) => push.kind === 'state' && wasHanded(session, seq))
  // Without an answer since that accept, candidates may belong to an offer of the peer, or to none.
  const hasAnswer = entries.some(({ push }) => push.call === call && isRelayOf(push, 'webrtc.answer'))
  return isToldAgain && hasAnswer && !hasOfferedEarly(session, call)
}

/** Leaves those answers out if the session sends its client the accept. A session that knows more of the call does not send it. */
export function withoutOldAnswers<T extends { readonly push: Push }>(
  target: Session,
  call: string,
  entries: readonly T[],
): readonly T[] {
  const isTold = entries.some(({ push }) => push.kind === 'state' && !knowsOf(target, push))
  return isTold ? entries.filter(({ push }) => !isOldAnswer(push, call)) : entries
}

/** It was handed to a socket, whether or not that was the client's last moment there. */
function wasHanded({ socket }: Session, seq: number): boolean {
  if (socket.is === 'lost') return seq <= socket.seq
  return socket.isReady || seq <= socket.readyFrom
}

/** A session that offers before the accept does not offer at the accept: its client waits for that answer. */
function hasOfferedEarly({ calls }: Session, call: string): boolean {
  return calls?.get(call)?.kept?.pushes.some((push) => isRelayOf(push, 'webrtc.offer')) === true
}

function isOldAnswer(push: Push, call: string): boolean {
  return push.call === call && (isRelayOf(push, 'webrtc.answer') || isRelayOf(push, 'webrtc.ice_candidate'))
}
