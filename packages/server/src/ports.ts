import type { CloseCode } from '@ringwire/protocol/close-codes'
import type { Call, CallRef, LiveCall, Outage, OverCall, Participant } from './call/call.ts'
import type { Step } from './call/effects.ts'
import type { MaybePromise } from './maybe.ts'

/**
 * What the store could not do. `unavailable`: nothing was written. `unknown`: it may or may not have been written
 * (the time limit passed, the connection was lost); a retry is harmless, because every write names the version it
 * builds on.
 */
export class StoreError extends Error {
  readonly kind: 'unavailable' | 'unknown'
  constructor(kind: 'unavailable' | 'unknown', message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

/** What a decision wants written: all steps or none. No steps: nothing changes. */
export interface Changes {
  readonly steps: readonly Step[]
}

/** A call that is over, with its last step. */
export interface Ended {
  readonly call: OverCall
  readonly step: Step
}

/** What an invite needs to see: the call that already has the uuid, and all live calls of both participants. */
export interface InviteSituation {
  readonly sameUuid: Call | undefined
  readonly live: readonly LiveCall[]
}

/** Nobody reads more calls at once: no event loop stands still, however many there are. */
export const pageSize = 500

/**
 * The calls and their events. The database is the truth.
 *
 * Guarantees of every adapter:
 * - A step is written with a guard: the stored version of its call is the step's version − 1 (no row at all for
 *   version 1). Where the guard of any step fails, none is written, and `decide` runs again on what is stored now.
 *   So two decisions on one version can never both be written.
 * - The call row and its `call_events` row are committed together, before the returned promise resolves.
 * - `decide` is pure and synchronous: it may run more than once.
 * - Transitions that arrive while a commit is in flight are committed together with the next one; a lone one is
 *   committed at once.
 * - Rejections are `StoreError`s; nothing is written where the kind is `unavailable`.
 */
export interface CallStore {
  /** Decides on one call (undefined where there is none) and writes what the decision says. */
  transition<D extends Changes>(ref: CallRef, decide: (call: Call | undefined) => D): MaybePromise<D>
  /** The same for an invite; between reading the situation and the commit no other invite of either participant runs. */
  invite<D extends Changes>(
    caller: Participant,
    callee: Participant,
    callUuid: string,
    decide: (situation: InviteSituation) => D,
  ): MaybePromise<D>
  load(ref: CallRef): MaybePromise<Call | undefined>
  /** Live calls in which the participant is the caller or the callee. */
  liveCallsOf(participant: Participant): MaybePromise<LiveCall[]>
  /** Every live call, in pages of at most `pageSize`; one that changes meanwhile may come as it was. */
  livePages(): AsyncIterableIterator<readonly LiveCall[]>
  /** Calls that ring and whose time was over after `from` and until `to`, so many at the most, the earliest first. */
  dueRings(from: number, to: number, limit: number): MaybePromise<LiveCall[]>
  /**
   * Calls that ended at or after `since`, the earliest first, in pages of at most `pageSize`, each with its last step: their
   * final notices may not have arrived.
   */
  overPages(since: number): AsyncIterableIterator<readonly Ended[]>
  /**
   * What was committed to a call after a version, oldest first: each event with the call as it is now under that
   * version's number. For what a commit of unknown outcome may have left undelivered.
   */
  stepsAfter(ref: CallRef, version: number): MaybePromise<Step[]>
  history(query: HistoryQuery): MaybePromise<HistoryPage>
  /** Takes note of a call as another process has written it: what is remembered of it here is old. */
  note(call: Call): void
  /** Resolves when a small write was committed, rejects otherwise. Nothing grows by it, however often it is asked for [HEALTH1]. */
  tryWrite(): Promise<void>
  close(): Promise<void>
}

/** One page of a participant's calls, newest started_at first, tie by call_uuid descending [HIST1]. */
export interface HistoryQuery {
  readonly participant: Participant
  /** 1 to 100. */
  readonly limit: number
  /** Only calls after this one in that order. */
  readonly after: { readonly startedAt: number; readonly callUuid: string } | undefined
}

export interface HistoryPage {
  readonly calls: readonly Call[]
  readonly more: boolean
}

/** A product key as it is stored: never the secret itself [TOK4]. */
export interface ProductKey {
  readonly keyId: string
  /** SHA-256 of each secret that is valid now: the current one, and a rotated one until its grace period ends. */
  readonly secretHashes: readonly Uint8Array[]
  readonly products: readonly string[]
  readonly disabled: boolean
  /** Listed in RINGWIRE_BOOTSTRAP_KEYS, or made on the command line. */
  readonly origin: 'bootstrap' | 'cli' | 'demo'
  readonly createdAt: number
}

/** What a product may set for itself [INV5, RING1]. */
export interface ProductSettings {
  readonly busy: 'allow' | 'reject'
  /** Whether `call.invited` says `callee_busy` [INV2]. */
  readonly revealBusy: boolean
  /** 5 000 to 180 000, or null for the service's own. */
  readonly ringTimeoutMs: number | null
}

export const defaultProductSettings: ProductSettings = { busy: 'allow', revealBusy: false, ringTimeoutMs: null }

/**
 * Product keys and product settings. A change made by another process is seen by the next read.
 */
export interface ProductStore {
  findKey(keyId: string, now: number): MaybePromise<ProductKey | undefined>
  listKeys(now: number): MaybePromise<ProductKey[]>
  /**
   * Creates the key, or replaces its secret, products and origin, and enables it. Secrets that it had stay valid until
   * `oldValidUntil`, or not at all.
   */
  putKey(
    key: { keyId: string; secretHash: Uint8Array; products: readonly string[]; origin: ProductKey['origin'] },
    now: number,
    oldValidUntil?: number,
  ): MaybePromise<void>
  /** False where there is no such key. */
  setDisabled(keyId: string, disabled: boolean, now: number): MaybePromise<boolean>
  /** Sets a new secret; the old one stays valid until `oldValidUntil`. False where there is no such key. */
  rotateKey(keyId: string, secretHash: Uint8Array, oldValidUntil: number, now: number): MaybePromise<boolean>
  settings(product: string): MaybePromise<ProductSettings>
  listSettings(): MaybePromise<{ product: string; settings: ProductSettings }[]>
  putSettings(product: string, settings: ProductSettings): MaybePromise<void>
  close(): MaybePromise<void>
}

/** The socket end of a session: what the node that holds it can do with it. */
export interface Sink {
  /** Hands a text to the socket; never blocks, never throws. */
  send(text: string): void
  /** Says that call pushes up to `seq` were handed over, so that a ping can prove them [PLACE5]. */
  pushed(seq: number): void
  /** Up to which of them everything was written to the socket; 0 for one of another process. */
  readonly writtenSeq: number
  /** Asks the client for a sign of life at once; false after 3 s without one, when the socket is closed [PLACE4]. */
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
  replies: { readonly n: number; readonly text: string }[]
  /** The last request whose unseen reply was too many to keep: a client that has not seen it cannot resume [RES2]. */
  dropped: number
}

/** Who a session is [ID2]. A base session lives as long as its socket. */
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

/**
 * One push on its way to a session. `ringing` starts a ring there; `stop` ends it while the call goes on elsewhere; `state`
 * is the call's state for the place's holder; `relay` is a peer's message; `final` says how the call ended; `notice` is for
 * extended sessions alone. `media` is a relay of what a peer sends, to extended sessions alone: of each call the last one is
 * told again to whoever comes to have the place, by `move` or by `resume` [MEDIA1]. `peer` tells an extended session of the
 * other side's absence: its version is counted apart, for it goes beside what else a version tells [PEER1].
 * `version` is of the call, and undefined for relays and notices that are not about a version.
 */
export interface Push {
  readonly kind: 'ringing' | 'stop' | 'state' | 'relay' | 'media' | 'final' | 'notice' | 'peer'
  readonly call: string
  readonly version: number | undefined
  readonly text: string
  /**
   * The request behind a relay of an extended session [EXT4]. A store that outlives the process which handles the request
   * takes it once, however often it is sent again.
   */
  readonly source?: PushSource | undefined
  /** A relay for whoever has the place: `elsewhere` where the session does not have it. Ignored where one process serves. */
  readonly forPlace?: boolean
}

/**
 * `sent`: in the log and handed to the socket. `kept`: in the log of a session whose socket is gone. `full`: the log of
 * such a session holds no more [REL2]. `dropped`: the push is not news, or it never rang there. `elsewhere`: a relay for a place that the session does not have; what the sender's process knew
 * of the call is old. `gone`: there is no such session; append never creates one. `volatile`: handed to the socket and
 * in no log, because the store that has it is away [EXT3].
 */
export type AppendResult = 'sent' | 'kept' | 'full' | 'dropped' | 'elsewhere' | 'gone' | 'volatile'

export interface PushSource {
  readonly sessionId: string
  readonly n: number
}

/** The last that a session hears of a call, unless it takes a place in it after all: kept for who comes back [WS4]. */
export function isLast({ kind }: Pick<Push, 'kind'>): boolean {
  return kind === 'final' || kind === 'stop'
}

/** What one peer sends another [REL1]. */
export function isRelay({ kind }: Pick<Push, 'kind'>): boolean {
  return kind === 'relay' || kind === 'media'
}

/** A push as a base session reads it: with the fields of the interface alone. */
export function baseText({ kind, text }: Pick<Push, 'text'> & { readonly kind: string }): string {
  if (kind !== 'state' || !text.includes('"display_name"')) return text
  const { event, data } = JSON.parse(text)
  const { display_name: _, ...known } = data
  return JSON.stringify({ event, data: known })
}

/** What the log of a session with a socket, or of an extended one, holds at the most [RES1]. */
export const sessionLogLimits = { events: 512, bytes: 1024 * 1024 } as const
/** What waits for a socket [PLACE5], and for the accept [REL2]. */
export const waitingLimits = { entries: 256, bytes: 256 * 1024 } as const

/**
 * Where sessions are, and the log of each: one `append` carries every delivery.
 *
 * Guarantees: a push is in the log before it is handed to a socket; what a session receives is in the order of its log;
 * a version of a call that is not newer than the last one is dropped, and so is whatever comes of a call of whose end it
 * was told [ORD3]; what the client has not proven to have received when its socket dies stays for whoever takes its
 * places [PLACE5]; a log is bounded. Where the sessions are in a store, an answer takes time and may fail with a
 * `StoreError`.
 */
export interface Sessions {
  /** Registers a session with a socket; pushes are kept back until `ready` [ORD3]. */
  open(identity: SessionIdentity, sink: Sink, at: number): MaybePromise<OpenSession>
  /**
   * The socket of a session that this identity may resume, or the one that it had last: it has to be retired first, for
   * what came on it may still be under way. `next` is the new socket: of several that come back at once, the one that asked
   * last for the first time is the newest. Once that has the session, this and `resume` close the others with 4409, and
   * throw a `StoreError` [RES1].
   */
  sinkToReplace(sessionId: string, identity: SessionIdentity, next?: Sink): MaybePromise<Sink | undefined>
  /**
   * Gives a session a new socket, where its log holds everything after the seq that its client saw; pushes are kept back
   * until `ready`, which hands out just those. Undefined where that cannot be proven: then the session is over [RES2].
   * `retired`: the socket of before, after which there is to be none; one that came in between is retired first. Throws a
   * `StoreError` where the new socket is closed by then: its client gave it up, and may have another one by now [RES1].
   */
  resume(
    request: ResumeRequest,
    identity: SessionIdentity,
    sink: Sink,
    at: number,
    retired?: Sink,
  ): MaybePromise<OpenSession | undefined>
  /** Hands out what was kept back; to this socket, where it is named and still the session's. */
  ready(sessionId: string, sink?: Sink): MaybePromise<void>
  /**
   * Its log was lost, and began again under this epoch: says so to its socket as the first of the new log, and then hands
   * out what came since [RES4]. Nothing where it was lost once more meanwhile.
   */
  reset(sessionId: string, epoch: string, text: string): MaybePromise<void>
  /** Registers a session that has no socket (any more): its places are remembered from before a restart. */
  openDetached(identity: SessionIdentity, at: number): MaybePromise<void>
  /**
   * The socket is gone. `clean`: its client said goodbye. What the socket was sent is not told again then;
   * an extended session is over [PLACE5, RES1]. `closed`: its client closed the socket, and may resume the session all the
   * same. False where the session has another socket by now.
   */
  detach(sessionId: string, sink: Sink, clean: boolean, at: number, closed?: boolean): MaybePromise<boolean>
  /** Whether the client of a session that has no socket closed its last one, which was of this node [END5]. */
  wasClosed(sessionId: string, node: string): MaybePromise<boolean>
  /**
   * Whether the session is another socket's by now, as its store knows at this moment, or its node was taken for dead; this
   * socket is closed then. No record, or a session that this socket has left by itself, is no move.
   */
  hasMoved(sessionId: string, sink: Sink): MaybePromise<boolean>
  /** Who the session is whose socket this process holds; undefined where it holds none. */
  heldHere(sessionId: string): SessionIdentity | undefined
  /**
   * The socket of a session, wherever it is; undefined where it has none. `node` holds it as far as the call knows: where a
   * store has no record of the session, that node is asked, for a missing record proves nothing.
   */
  sinkOf(sessionId: string, node?: string): MaybePromise<Sink | undefined>
  /**
   * The sessions of a participant that have a socket, oldest first; `at`: those that were opened until then; `began`: those
   * where a call rings that began then, for their token was good.
   */
  liveOf(participant: Participant, at?: number, began?: number): MaybePromise<readonly string[]>
  /** A session whose socket this process holds goes on with a token that is over then. */
  renew(sessionId: string, expiresAt: number): MaybePromise<void>
  append(sessionId: string, push: Push): MaybePromise<AppendResult>
  /** Appends to every session where the call rang, with a socket or without, but for some [PLACE1]. */
  appendRung(participant: Participant, push: Push, except: readonly string[]): MaybePromise<void>
  /** Remembers that a call rings at a session, as a `ringing` push does. */
  ring(sessionId: string, call: string): MaybePromise<void>
  /** The client has received everything up to `seq`. */
  prove(sessionId: string, seq: number): MaybePromise<void>
  /**
   * Keeps a relay of a session until its call is accepted [REL2]. `closed`: what was kept has been taken, and the call
   * was answered.
   */
  keep(sessionId: string, push: Push): MaybePromise<KeepResult>
  /** What a session's relays for a call were until now, in order; again the same until its place is released. */
  takeKept(sessionId: string, call: string): MaybePromise<readonly Push[]>
  /**
   * Who holds which place; `settled` as in `Place`. A log with a place outlives its socket. With `gate`, relays of the
   * call are held back in front of the log until `openGate`, or the end of the call: what was kept before the accept comes
   * first. False where there is no such session. `version` is of the call: where several processes tell of it, what one says
   * late of an older version changes nothing.
   */
  hold(sessionId: string, call: string, settled: boolean, gate?: boolean, version?: number): MaybePromise<boolean>
  /** Appends what comes first, and then what was held back; nothing where there is no gate. */
  openGate(sessionId: string, call: string, first: readonly Push[]): MaybePromise<void>
  /** The call is over: nobody has a place in it any more, and the session knows. */
  release(sessionId: string, call: string): MaybePromise<void>
  /** Whether a session of this process was told how a call ended, or ended it itself: of the last ones it is known. */
  knowsEnd(sessionId: string, call: string): boolean
  holdsAny(sessionId: string): MaybePromise<boolean>
  /** Whether the session has a place, or rings as a callee [WS5]. */
  inCall(sessionId: string): MaybePromise<boolean>
  /**
   * The place of one session passes on to another of the same participant: what waits about the call goes along, in
   * order [PLACE2], and the one of before has it no more. All of it at once: nothing that comes meanwhile is in front of
   * what waits. False where there is no session to move it to. `gate` as in `hold`, where the one of before had none.
   */
  move(
    call: string,
    from: string,
    to: string,
    settled: boolean,
    version?: number,
    gate?: boolean,
  ): MaybePromise<boolean>
  /** Other sessions of the same device that have a socket, and have not proven to have received a final notice. */
  owing(identity: SessionIdentity): MaybePromise<readonly string[]>
  /** Hands final notices of a participant's dead sockets to a new session of the same device [WS4]; none of a call in
   * which the new session has a place. */
  collectFinals(identity: SessionIdentity): MaybePromise<void>
  /**
   * Up to which version of a call everything is in the logs that is to be told; 0: nothing yet, or nobody knows any more.
   * Whoever needs no more than `enough` may be answered with less than there is.
   */
  toldOf(call: string, enough: number): MaybePromise<number>
  /**
   * The same as the store has it at this moment, and `before` when, in ms since the epoch, everything that was committed to the
   * call has been told, whatever the version is: the store was emptied since then, and who told the call may be gone. 0 where
   * it was not.
   */
  toldExactly(call: string): MaybePromise<{ readonly version: number; readonly before: number }>
  /** No process serves: what the store does not know was not lost by anybody, and all of it is told. */
  tellAll(): MaybePromise<void>
  /** Remembers that; for a call that is over no longer than somebody may still be telling of it. */
  setTold(call: string, version: number, isOver: boolean): MaybePromise<void>
  /** Forgets what is older than the window. */
  sweep(now: number): MaybePromise<void>
}

/** `gone`: there is no such session. */
export type KeepResult = 'kept' | 'full' | 'closed' | 'gone'

/** The processes that serve together. */
export interface Nodes {
  /** This run of this node: no other has had the name. */
  readonly self: string
  /** Known for sure not to serve any more. What is not known of is not dead [END3]. */
  isDead(node: string): boolean
  /** The nodes that are known to serve, without this one. */
  others(): readonly string[]
  /**
   * Lets the other nodes that have a place in a call know what was just committed to it, before they find out by asking. It
   * may be lost, or come late.
   */
  tell(call: Call): void
}

/** Where nobody could come back for longer, that was an outage, in ms [END3]. */
export const outageMs = 3_000
/** So many are remembered: a clock that more of them stopped has hardly run. */
export const mostOutages = 100

/** Whether people can come back: the service is there with its stores [END3]. */
export interface Uptime {
  /** When they could not: those that may still matter, oldest first; the last may go on. */
  outages(): readonly Outage[]
  /** A store failed just now: one statement is no outage, but worth a look. */
  doubt(): void
}

/** So many in every window of so many seconds. */
export interface Budget {
  readonly count: number
  readonly seconds: number
}

/**
 * Counts what subjects do, in fixed windows: a subject's window begins with its first request and lasts as long as the
 * budget says, whatever wall clocks do meanwhile.
 *
 * Guarantees of every adapter: many requests at once never get more than the budget; a refused request does not count,
 * so that a refund really makes room; a refund never gives more than was taken; nothing rejects, and no request waits
 * longer than 250 ms for both counters that it may have to pass.
 */
export interface Counter {
  /** Counts one request and answers 0; or how long the window still lasts, in ms, where the budget is used up. */
  consume(subject: string): MaybePromise<number>
  /** Takes one request of this window back. */
  refund(subject: string): MaybePromise<void>
}

export interface Counters {
  /** A counter under a name of its own. */
  counter(name: string, budget: Budget): Counter
}

/** Milliseconds since the epoch, and the same for time that has to pass at its own pace whatever the wall clock does. */
export interface Clock {
  /** Wall clock. */
  now(): number
  /** Monotonic, from an arbitrary start. */
  monotonic(): number
}
