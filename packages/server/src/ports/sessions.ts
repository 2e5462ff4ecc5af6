import type { Capability } from '@ringwire/protocol/capabilities'
import type { CloseCode } from '@ringwire/protocol/close-codes'
import type { Participant } from '../call/call.ts'
import type { MaybePromise } from './maybe.ts'
import type { AppendResult, Push } from './push.ts'

/** The socket end of a session: what the node that holds it can do with it. */
export interface Sink {
  /** Hands a text to the socket; never blocks, never throws. */
  send(text: string): void
  /**
   * Says that call pushes up to `seq` were handed over, so that a ping can prove them [PLACE5]. `rings`: the last one
   * makes this call ring, by its key; `isEvent`: it is not a relay of a peer, or is one that has to be saved before it is
   * sent [EXT3]; `isUrgent`: a ping follows it at once, however short ago the last one was.
   */
  pushed(seq: number, rings?: string, isEvent?: boolean, isUrgent?: boolean): void
  /** Up to which of them everything was written to the socket; 0 for one of another process. */
  readonly writtenSeq: number
  /**
   * Asks the client for a sign of life at once; false after 3 s without one, when the socket is closed [PLACE4]. Rejects with a
   * `StoreError` where the node of the socket lives and does not answer: then nobody knows.
   */
  probe(): Promise<boolean>
  /** Closes because the service says so [CLOSE]. `cause`: what the log says of it, if not the reason [LOG2]. */
  close(code: CloseCode, reason: string, cause?: string): void
  /** Closes because a newer connection of the session took over; resolves when nothing of it takes effect any more. */
  retire(): Promise<void>
  /** Whether something that came on it is still under way. */
  readonly isBusy: boolean
  /** Nobody is at the other end any more. */
  readonly isClosed: boolean
}

/**
 * What an extended session's client has asked for, as it outlives sockets [EXT4]: the last request that took effect,
 * and the replies that its client was not proven to have received.
 */
export interface Upstream {
  handled: number
  /** The last request whose reply stands: what the replies after it say of relays is yet to be saved [EXT3]. */
  final: number
  replies: { readonly n: number; readonly text: string }[]
  /** The last request whose unseen reply was too many to keep: a client that has not seen it cannot resume [RES2]. */
  dropped: number
}

/** The identity of a session [ID2]. A base session lives as long as its socket. */
export interface SessionIdentity {
  readonly sessionId: string
  readonly participant: Participant
  /** null: a device without a name; undefined: not known any more, after a restart. */
  readonly deviceId: string | null | undefined
  /** Of one whose device is not known any more: which one it was not. */
  readonly isNotOf?: string
  /** Connected with `?ext=1`: its pushes are numbered, and it outlives its sockets [RES1]. */
  readonly extended: boolean
  /** When its token is over, in ms since the epoch: calls that begin later do not ring there [WS5]. Undefined: never. */
  readonly expiresAt?: number | undefined
  /** Of the client, as the token said that it connected with [SRV2]. */
  readonly appVersion?: string | null | undefined
  /** Capabilities of its client; absent if it listed none. Another one with each resume [EXT6]. */
  readonly can?: readonly Capability[]
}

/** A session that has a socket. */
export interface SeenSession extends Pick<SessionIdentity, 'sessionId' | 'deviceId' | 'extended'> {
  readonly appVersion: string | null
  /** In ms since the epoch. */
  readonly openedAt: number
  /** A call rings there, and its client does not answer pings: it may be asleep [PING1]. */
  readonly isUnsure: boolean
}

/** What a client says when it comes back [RES1]. */
export interface ResumeRequest {
  readonly sessionId: string
  readonly epoch: string
  /** The last seq that it saw. */
  readonly seq: number
  /** The n of the last request whose reply it saw. */
  readonly replied?: number
}

/** An open session: the incarnation of its log, and its upstream state. */
export interface OpenSession {
  readonly epoch: string
  readonly upstream: Upstream
}

export interface ResumedSession extends OpenSession {
  /** Calls of whose ring its client says by its seq that it has it, and no pong did [TRACE1]. */
  readonly rings: readonly string[]
  /** Calls that ring at the session. One of them may be over by now, and the session has not heard of it. */
  readonly ringing: readonly string[]
  /** By call the places that the session has, or had when they passed on: whether it had spoken for the call [PLACE2]. */
  readonly places: ReadonlyMap<string, Holding>
}

/** What the log of a session with a socket, or of an extended one, holds at the most [RES1]. */
export const sessionLogLimits = { events: 512, bytes: 1024 * 1024 } as const

/** What waits for a socket [PLACE5], and for the accept [REL2]. */
export const waitingLimits = { entries: 256, bytes: 256 * 1024 } as const

/** How a session lost its socket. */
export interface Departure {
  /** Its client closed it. An extended session can still be resumed [END5]. */
  readonly closed?: boolean | undefined
  /** Milliseconds within which the service expects the client back, if it closed the socket with 1012 [PEER1]. */
  readonly awaitedMs?: number | undefined
}

/** What the process that has a socket does with its session. */
export interface SessionSockets {
  /** Registers a session with a socket; pushes are kept back until `ready` [ORD3]. */
  open(identity: SessionIdentity, sink: Sink, at: number): MaybePromise<OpenSession>
  /**
   * The socket of a session that this identity may resume, or the one that it had last: it has to be retired first, for
   * what came on it may still be under way. `next` is the new socket: of several that come back at once, the one that asked
   * last for the first time is the newest. Once that has the session, this and `resume` close the others with 4409, and
   * throw a `StoreError` [RES1]. The same holds for an old attempt that was long on its way: its client saw nothing after
   * `seq`, and the socket of the session has proven to have received more, and gives a sign of life.
   */
  sinkToReplace(sessionId: string, identity: SessionIdentity, next?: Sink, seq?: number): MaybePromise<Sink | undefined>
  /**
   * Gives a session a new socket, where its log holds everything after the seq that its client saw; pushes are kept back
   * until `ready`, which hands out just those. Undefined where that cannot be proven: then the session is over [RES2].
   * `retired`: the previous socket, which is to be the last one; a socket that came in between is retired first. Throws a
   * `StoreError` where the new socket is closed by then: its client gave it up, and may have another one by now [RES1].
   */
  resume(
    request: ResumeRequest,
    identity: SessionIdentity,
    sink: Sink,
    at: number,
    retired?: Sink,
  ): MaybePromise<ResumedSession | undefined>
  /** Hands out what was kept back; to this socket, where it is named and still the session's. */
  ready(sessionId: string, sink?: Sink): MaybePromise<void>
  /**
   * The socket is gone. `clean`: its client said goodbye. Messages that were sent on the socket are not sent again then;
   * an extended session is over [PLACE5, RES1]. False where the session has another socket by now.
   */
  detach(sessionId: string, sink: Sink, clean: boolean, at: number, how?: Departure): MaybePromise<boolean>
  /**
   * Whether the session is another socket's by now, as its store knows at this moment, or its node was taken for dead; this
   * socket is closed then. A missing record, or a session that this socket has left by itself, is not a move.
   */
  hasMoved(sessionId: string, sink: Sink): MaybePromise<boolean>
  /** A session whose socket this process holds goes on with a token that is over then. */
  renew(sessionId: string, expiresAt: number): MaybePromise<void>
  /** The client has received everything up to `seq`. */
  prove(sessionId: string, seq: number): MaybePromise<void>
  /**
   * The client leaves a ping without an answer for a while. It counts as unsure while a call rings there, until `trust`; answers
   * the calls of which that was not said yet [PING1]. Resolves when other nodes see it.
   */
  doubt(sessionId: string): MaybePromise<readonly string[]>
  /** It has answered a ping. */
  trust(sessionId: string): void
  /** The client says that its media flows: it has the accept of the call and the peer's answer [PLACE5]. */
  acknowledge(sessionId: string, call: string): void
}

/** Who is there, and what a session has to do with calls. */
export interface SessionLookup {
  /** The identity of the session whose socket this process holds; undefined if it holds none. */
  heldHere(sessionId: string): SessionIdentity | undefined
  /** The participant's sessions with a socket of this process that have not heard of this call. */
  unaware(participant: Participant, call: string): readonly SessionIdentity[]
  /**
   * The socket of a session, wherever it is; undefined where it has none. `node` holds it as far as the call knows: if a
   * store has no record of the session, it asks that node, for a missing record proves nothing.
   */
  sinkOf(sessionId: string, node?: string): MaybePromise<Sink | undefined>
  /**
   * The sessions of a participant that have a socket, oldest first; `at`: those that were opened until then; `began`: those
   * where a call rings that began then, for their token was good.
   */
  liveOf(participant: Participant, at?: number, began?: number): MaybePromise<readonly string[]>
  /**
   * Whether a call that began then would ring at a session of the participant; `needs`: at one that listed this [EXT6]. Another
   * node's sessions count where their node lives.
   */
  mayRing(participant: Participant, began: number, needs?: Capability): MaybePromise<boolean>
  /** The same sessions, as a backend is shown them [SRV2]. */
  seen(participant: Participant): MaybePromise<readonly SeenSession[]>
  /** Whether the client of a session without a socket closed its last one, which was on this node [END5]. */
  wasClosed(sessionId: string, node: string): MaybePromise<boolean>
  /**
   * Within how many ms the service expects the client back whose last socket was at `node`; undefined if the service did not
   * close that socket. `back`: another living node has a socket of the session by now [PEER1].
   */
  awaitedMs(sessionId: string, node: string): MaybePromise<number | 'back' | undefined>
  /** Whether the client of an extended session of this process closed its last socket for good [END6]. */
  hasHungUp(sessionId: string): boolean
  /** Whether a session of this process has heard how a call ended, or ended it itself: of the last ones it is known. */
  knowsEnd(sessionId: string, call: string): boolean
  /** Whether a session of this process had a place in the call that has passed on to another one. */
  hasLeft(sessionId: string, call: string): boolean
  holdsAny(sessionId: string): MaybePromise<boolean>
  /**
   * Whether a session of this process has a socket and nothing else: no call, no ring, and its client has received everything
   * [BAL1].
   */
  isIdle(sessionId: string): boolean
  /** Whether the session has a place, or rings as a callee [WS5]. */
  inCall(sessionId: string): MaybePromise<boolean>
}

/** Pushes to sessions. */
export interface SessionPushes {
  /** `isLost` as in `SessionStep`. */
  append(sessionId: string, push: Push, isLost?: boolean): MaybePromise<AppendResult>
  /**
   * Appends to those that `liveOf` names: a call begins to ring there. Answers how many they are. If nobody knows whether these
   * are all, because their store was emptied, it throws a `StoreError` when they have it.
   */
  appendLive(participant: Participant, push: Push, at?: number, began?: number): MaybePromise<number>
  /** Appends to every session where the call rang, with a socket or without, but for some [PLACE1]. */
  appendRung(participant: Participant, push: Push, except: readonly string[]): MaybePromise<void>
  /** Other sessions of the same device that have a socket, and have not proven to have received a final notice. */
  owing(identity: SessionIdentity): MaybePromise<readonly string[]>
  /**
   * Hands final notices of a participant's dead sockets to a new session of the same device [WS4]; none of a call in which
   * the new session has a place. A session that has come back gets those that came while it was away to sessions that
   * nobody can resume.
   */
  collectFinals(identity: SessionIdentity): MaybePromise<void>
  /**
   * Resolves when all pushes about a call until now are saved; rejects if a session turned out to belong to another
   * process: then they are delivered again.
   */
  confirm(call: string): MaybePromise<void>
}

/** What one step of a call means for one session. */
export interface SessionStep {
  readonly call: string
  /** Of the call: where several processes tell of it, what one says late of an older version changes nothing of the place. */
  readonly version?: number
  /** The session has the place of its side. A log with a place outlives its socket. */
  readonly place?: Holding
  /**
   * With a place: relays of the call wait before they enter the log, until a step brings `early`, or the end of the call:
   * relays from before the accept come first.
   */
  readonly gate?: boolean
  /** The call was answered: what the session's client sends from now on is for the other place [REL2]. The gate closes. */
  readonly isAnswered?: boolean
  /** The pushes for the session. */
  readonly pushes?: readonly Push[]
  /**
   * The other side's messages from before the accept, and after it those that have waited at the gate. Nothing where
   * there is none.
   */
  readonly early?: readonly Push[]
  /** The call rings at the session, as with a `ringing` push. */
  readonly isRinging?: boolean
  /** Nobody has a place in the call any more, and the session knows. */
  readonly isOver?: boolean
  /** The place was found lost: then a silent owner of the session keeps nobody waiting. */
  readonly isLost?: boolean
  /**
   * Registers the session if it is missing, without a socket, as for places from before a restart. A sweep forgets an
   * empty one.
   */
  readonly orOpen?: { readonly identity: SessionIdentity; readonly at: number }
}

/** How a session has a place: `unsettled` if it took that place only by connecting [PLACE2]. */
export type Holding = 'settled' | 'unsettled'

/** Who has which place of a call, and what waits for the accept. */
export interface SessionPlaces {
  /**
   * Whether a node that serves has a session of which there is no record: a missing record proves nothing. It is found from
   * then on. Rejects with a `StoreError` where the node does not answer.
   */
  findAt(sessionId: string, node: string): MaybePromise<boolean>
  /**
   * Does all that a step of a call means for one session, at once. Answers what the session's client has sent for the call
   * until the accept, in order, where the step is the answer: again the same until its place is released. Undefined if
   * there is no such session.
   */
  apply(sessionId: string, step: SessionStep): MaybePromise<readonly Push[] | undefined>
  /**
   * The place of one session passes on to another of the same participant: the messages that wait for it go along, in
   * order [PLACE2], and the previous session has it no more. It happens at once: nothing that comes meanwhile gets ahead
   * of the messages that wait. False where there is no session to move it to. `gate` as in `SessionStep`, if the previous
   * session had none.
   * `isLost`: the place was found lost before: then a silent owner of that session keeps nobody waiting.
   * `isTaken`: nothing of what the peer signalled goes along, because the connection that it was for is gone [TAKE1].
   */
  move(
    call: string,
    from: string,
    to: string,
    settled: boolean,
    version?: number,
    gate?: boolean,
    isLost?: boolean,
    isTaken?: boolean,
  ): MaybePromise<boolean>
  /**
   * Keeps a relay of a session until its call is accepted [REL2]. `closed`: what was kept has been taken, and the call
   * was answered.
   */
  keep(sessionId: string, push: Push): MaybePromise<KeepResult>
}

/**
 * The sockets of sessions, and the log of each: one `append` carries every delivery.
 *
 * Guarantees: a push is in the log before it is handed to a socket; what a session receives is in the order of its log; a
 * version of a call that is not newer than the last one is dropped, and so is every push of a call whose end it knows
 * [ORD3]; unproven pushes stay for the next holder of its places when its socket dies [PLACE5]; a log is bounded. If
 * other processes have sessions, too, an answer takes time and may fail with a `StoreError`.
 */
export interface Sessions extends SessionSockets, SessionLookup, SessionPushes, SessionPlaces {
  /** Forgets what is older than the window. */
  sweep(now: number): MaybePromise<void>
}

/** `gone`: there is no such session. */
export type KeepResult = 'kept' | 'full' | 'closed' | 'gone'
