import { type AppendResult, isRelay, type Push } from '../ports/push.ts'
import type { Sink } from '../ports/sessions.ts'
import { forgetOldAnswers, isUrgent } from './answers.ts'
import { SessionLog } from './log.ts'
import { awaitsState, isNews, noteMedia, render } from './news.ts'
import { hasTaken, noteTaken, openGate, saveFirst } from './places.ts'
import type { Registry } from './registry.ts'
import { mayResume, type OpenSocket, type Session } from './session.ts'

/** How a push gets into the log of a session, and from there to its socket. */
export interface Sending {
  append(session: Session, push: Push, at?: number): AppendResult
  /** Hands out what was kept back [ORD3]. */
  handOut(session: Session, socket: OpenSocket): void
}

/** `isShared`: relays come from other processes, which may be behind, or may have died, and then somebody asks again [EXT4]. */
export function createSending(isShared: boolean, registry: Pick<Registry, 'now' | 'changes'>): Sending {
  const { changed, logged } = registry.changes

  function append(session: Session, push: Push, at = registry.now): AppendResult {
    const relay = isRelay(push)
    const call = session.calls?.get(push.call)
    if (isShared) {
      if (relay && push.forPlace === true && call?.place === undefined) return 'elsewhere'
      if (hasTaken(session, push)) return relay ? 'kept' : 'dropped'
    }
    // Nothing of a call comes after its end [ORD2]. Its place may be there for a moment longer: the sender looks again.
    if (relay && call?.isOver) return push.forPlace === true ? 'elsewhere' : 'dropped'
    if (!relay || push.kind === 'media') changed(session)
    // Relays that are held back go before the call's end: after it nobody opens the gate.
    if (push.kind === 'final') openGate(session, push.call, [], append)
    noteMedia(session, push)
    const isKnown = !isNews(session, push)
    if (!isKnown && push.kind === 'state') forgetOldAnswers(session, push.call)
    if (isKnown || awaitsState(session, push)) {
      // Later relays must not wait for this one [ORD1].
      if (isShared && relay) noteTaken(session, push)
      return 'dropped'
    }
    const result = put(session, push, at)
    if (isShared && result !== 'full') noteTaken(session, push)
    return result
  }

  function put(session: Session, push: Push, at: number): AppendResult {
    const gate = isRelay(push) ? session.calls?.get(push.call)?.gate : undefined
    if (gate !== undefined && gate !== null) {
      gate.push(saveFirst(push))
      changed(session)
      return 'kept'
    }
    logged(session)
    session.log ??= new SessionLog()
    const { socket } = session
    if (socket.is === 'lost') {
      // A resume of the session does not claim a message that its log could not hold; a session that nobody resumes has no
      // client to tell.
      if (mayResume(session)) session.log.append(push, at)
      else if (session.log.appendWaiting(push, at) === undefined) return 'full'
      return 'kept'
    }
    const seq = session.log.append(push, at)
    if (!socket.isReady) return 'kept'
    hand(session, socket.sink, seq, push)
    return 'sent'
  }

  function handOut(session: Session, socket: OpenSocket): void {
    const { log } = session
    const { sink, readyFrom } = socket
    if (socket.isReady) return
    // More came than the log holds before any of it could be sent: the client gets nothing rather than a part [RES2].
    if (session.identity.extended && log?.reachesBackTo(readyFrom) === false) {
      sink.close(1013, 'try again later')
      return
    }
    socket.isReady = true
    changed(session)
    for (const { seq, push } of log?.all() ?? []) if (seq > readyFrom) hand(session, sink, seq, push)
  }

  return { append, handOut }
}

function hand(session: Session, sink: Sink, seq: number, push: Push): void {
  sink.send(render(session, seq, push))
  // A client that does not number its messages may get a relay twice, on another socket.
  const isEvent = !isRelay(push) || (push.saveFirst === true && session.identity.extended)
  sink.pushed(seq, push.kind === 'ringing' ? push.call : undefined, isEvent, isUrgent(push))
}
