import type { Call, CallRef, LiveCall, OverCall, Participant } from '../call/call.ts'
import type { By, Step } from '../call/effects.ts'
import type { MaybePromise } from './maybe.ts'

/** The writes of a decision: all steps or none. No steps: nothing changes. */
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

/** The reads and writes of decisions. */
export interface CallSteps {
  /**
   * Decides on one call (undefined where there is none) and writes what the decision says. `linked`: the other call of its
   * transfer, as `linkOf` names it, where it has one.
   */
  transition<D extends Changes>(
    ref: CallRef,
    decide: (call: Call | undefined, linked: Call | undefined) => D,
  ): MaybePromise<D>

  /**
   * The same for an invite; between reading the situation and the commit no other invite of either participant runs. `foreseen`:
   * what `foresee` answered for these three.
   */
  invite<D extends Changes>(
    caller: Participant,
    callee: Participant,
    callUuid: string,
    decide: (situation: InviteSituation) => D,
    foreseen?: InviteSituation,
  ): MaybePromise<D>

  /**
   * What an invite will need to see, as it is before whatever the invite waits for: all live calls of the caller, and the rest
   * where `invite` does not read it at no cost itself. It may be old by then, so `invite` only writes what a guard finds to be
   * still true of it.
   */
  foresee(caller: Participant, callee: Participant, callUuid: string): MaybePromise<InviteSituation>

  load(ref: CallRef): MaybePromise<Call | undefined>

  /**
   * The steps of a call after a version, oldest first: each event with the call as it is now under that version's number.
   * For what a commit of unknown outcome may have left undelivered.
   */
  stepsAfter(ref: CallRef, version: number): MaybePromise<Step[]>

  /** Takes note of a call as another process has written it: what is remembered of it here is old. */
  note(call: Call): void
}

/** Calls that are live, or were a moment ago: who arrives, time, and a start look for them. */
export interface LiveCallReads {
  /** Live calls in which the participant is the caller or the callee. */
  liveCallsOf(participant: Participant): MaybePromise<LiveCall[]>

  /** Of each of these, in their order, whether it takes part in a live call; one read, however many they are [PRES1]. */
  inCall(participants: readonly Participant[]): MaybePromise<readonly boolean[]>

  /**
   * Of each of these, in their order, when the last call ended that it answered, in ms since the epoch; null where there is none
   * among the last calls to it. One read, however many they are [GROUP1].
   */
  lastAnswered(participants: readonly Participant[]): MaybePromise<readonly (number | null)[]>

  /** Every live call, in pages of at most `pageSize`; one that changes meanwhile may come as it was. */
  livePages(): AsyncIterableIterator<readonly LiveCall[]>

  /** Calls that ring and whose time was over after `from` and until `to`, so many at the most, the earliest first. */
  dueRings(from: number, to: number, limit: number): MaybePromise<LiveCall[]>

  /**
   * Calls that ended at or after `since`, the earliest first, in pages of at most `pageSize`, each with its last step: their
   * final notices may not have arrived.
   */
  overPages(since: number): AsyncIterableIterator<readonly Ended[]>
}

/** Calls as people and backends are shown them. */
export interface CallRecords {
  history(query: HistoryQuery): MaybePromise<HistoryPage>

  /** A call as a backend is shown it [SRV2]. */
  seen(ref: CallRef): MaybePromise<SeenCall | undefined>

  /** The uuids of calls of a product that begin with `start`, in their order, so many at the most. */
  beginning(product: string, start: string, limit: number): MaybePromise<readonly string[]>

  /** A page of the calls of a product, or of one participant, newest started_at first, tie by call_uuid descending [SRV2]. */
  list(query: ListQuery): MaybePromise<ListPage>

  /**
   * Blanks what names a participant in all of its calls that are over [SRV2], and answers in how many. Those that are live stay
   * as they are; only what happened to a call to a group is blanked where the call itself does not name the member any more. It
   * goes in steps, and says of each how many calls it blanked. It can be done again, and where it was interrupted it goes on.
   */
  erase(participant: Participant, onErased?: (count: number) => MaybePromise<unknown>): Promise<number>
}

/**
 * The calls and their events. The database is the truth.
 *
 * Guarantees of every adapter:
 * - A step is written with a guard: the stored version of its call is the step's version − 1 (no row at all for
 *   version 1). If the guard of any step fails, none is written, and `decide` runs again on the stored state.
 *   So two decisions on one version can never both be written.
 * - The call row and its `call_events` row are committed together, before the returned promise resolves.
 * - `decide` is pure and synchronous: it may run more than once.
 * - Transitions that arrive while a commit is in flight are committed together with the next one; a lone one is
 *   committed at once.
 * - Rejections are `StoreError`s; nothing is written where the kind is `unavailable`.
 */
export interface CallStore extends CallSteps, LiveCallReads, CallRecords {
  /** Resolves when a small write was committed, rejects otherwise. Nothing grows by it, however often it runs [HEALTH1]. */
  tryWrite(): Promise<void>

  close(): Promise<void>
}

/** One page of a participant's calls, newest started_at first, tie by call_uuid descending [HIST1]. */
export interface HistoryQuery {
  readonly participant: Participant
  /** 1 to 100. */
  readonly limit: number
  /** Only calls after this one in that order. */
  readonly after: Position | undefined
}

/** The position of a call in the order of a page: newest started_at first, tie by call_uuid descending. */
export interface Position {
  readonly startedAt: number
  readonly callUuid: string
}

export interface HistoryPage {
  readonly calls: readonly Call[]
  readonly more: boolean
}

/** A call, and who brought it into its status; null where time, a loss or a backend did. */
export interface SeenCall {
  readonly call: Call
  readonly by: Pick<By, 'userId' | 'role'> | null
}

/** So many of the last calls to somebody are looked at for the last one that it answered. */
export const mostLastCalls = 50

/** The most calls that are read to pick one page of some statuses. */
export const mostLookedAt = 2_000

export interface ListQuery {
  readonly product: string
  /** On either side. */
  readonly participant: Participant | undefined
  /** Undefined: any. */
  readonly statuses: readonly Call['status'][] | undefined
  /** Only calls that started then or later, in ms since the epoch. */
  readonly since: number
  /** 1 to 100. */
  readonly limit: number
  readonly after: Position | undefined
}

export interface ListPage {
  readonly calls: readonly SeenCall[]
  /** After which the next page begins; undefined on the last one. A page may hold fewer calls than its limit before that. */
  readonly next: Position | undefined
}
