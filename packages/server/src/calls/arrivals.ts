import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { PeerAbsence } from '@ringwire/protocol/events/call'
import { type Call, type CallRef, callKey, isLive, type LiveCall, nextOf, refOf, type Side } from '../call/call.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { CallSteps, LiveCallReads } from '../ports/call-store.ts'
import type { Timers } from '../ports/clock.ts'
import { allDone, andThen, type MaybePromise } from '../ports/maybe.ts'
import type {
  Holding,
  OpenSession,
  ResumedSession,
  ResumeRequest,
  SessionIdentity,
  SessionLookup,
  SessionPushes,
  SessionSockets,
  Sink,
} from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import type { Recorder } from '../timeline/recorder.ts'
import { createActiveCalls, type ReadActiveCalls } from './active-calls.ts'
import type { Calls } from './calls.ts'
import { createDepartures, type Departures, type DeparturesOptions } from './departures.ts'
import { createLateRings, type LateRings } from './late-rings.ts'
import { ownPlace } from './own-place.ts'
import type { ClientSession } from './request.ts'
import { createNoteSocket } from './socket-notes.ts'
import { createTakePlace } from './take-place.ts'

export interface ArrivalsOptions {
  readonly store: CallSteps & LiveCallReads
  readonly sessions: SessionSockets & SessionLookup & SessionPushes
  readonly delivery: Delivery
  readonly calls: Calls
  readonly recorder: Pick<Recorder, 'record'>
  readonly clock: SteadyClock
  /** Of a side of a call, as it is now [PEER1]. */
  readonly absenceOf: (call: Call, side: Side) => PeerAbsence | undefined
  /** Whether a product lets devices take calls from each other [TAKE1]. */
  readonly mayTake: (product: string) => boolean
  readonly onDoubt: DeparturesOptions['onDoubt']
  readonly onError: (error: unknown) => void
  readonly timers: Pick<Timers, 'sleep'>
}

/** A session that connects: a base one, or an extended one that may want to go on where it was [RES1]. */
export interface Arriving extends ClientSession {
  readonly extended: boolean
  readonly appVersion?: string | null
}

/** What an arriving session found. */
export interface Arrival extends OpenSession {
  /** Its own, or the one that it goes on as. */
  readonly sessionId: string
  readonly recovered: boolean
  /** For extended sessions; empty for others. */
  readonly activeCalls: readonly ActiveCall[]
}

export interface Arrivals extends Departures, Pick<LateRings, 'ringLate'> {
  /**
   * A session connected: register, then read, then send [ORD3, WS4]. Its pushes wait in its log until
   * `sessions.ready`.
   */
  arrive(session: Arriving, sink: Sink, resume: ResumeRequest | undefined): MaybePromise<Arrival>
  /** The live calls of its participant, as they are now [TAKE1]. */
  readonly activeCalls: ReadActiveCalls
  /** The session has a new token: what began to ring since the last one was over rings there, too [WS5]. */
  renew(session: ClientSession, expiresAt: number): Promise<void>
}

/** For clients that have connected already, a store that is away is read again after this time. In ms. */
const retryMs = 500

/** Sessions that come and go, and what they find: [PLACE2, PLACE4, WS4]. */
export function createArrivals(options: ArrivalsOptions): Arrivals {
  const { sessions, clock } = options
  const parts = createParts(options)
  const { lateRings, noteSocket, tryAgain } = parts
  const enter = createEnter(options, parts)
  const goOn = createGoOn(options, parts)
  const { leave, doubt } = createDepartures({ ...options, noteSocket })

  function arrive(session: Arriving, sink: Sink, resume: ResumeRequest | undefined): MaybePromise<Arrival> {
    if (resume === undefined) return enter(session, sink, undefined)
    return andThen(sessions.sinkToReplace(resume.sessionId, identityOf(session), sink, resume.seq), (older) =>
      older === undefined ? comeBack(session, sink, resume, undefined) : replace(session, sink, resume, older),
    )
  }

  /** Of several that resume at once each waits for the one before it: the newest wins [RES1]. */
  async function replace(session: Arriving, sink: Sink, resume: ResumeRequest, first: Sink): Promise<Arrival> {
    let older: Sink | undefined = first
    let retired: Sink | undefined
    while (older !== undefined && older !== retired) {
      await older.retire()
      retired = older
      const next = sessions.sinkToReplace(resume.sessionId, identityOf(session), sink, resume.seq)
      older = next instanceof Promise ? await next : next
    }
    return comeBack(session, sink, resume, retired)
  }

  function comeBack(
    session: Arriving,
    sink: Sink,
    resume: ResumeRequest,
    retired: Sink | undefined,
  ): MaybePromise<Arrival> {
    return andThen(sessions.resume(resume, identityOf(session), sink, clock.unjumped(), retired), (open) =>
      open === undefined
        ? enter(session, sink, resume)
        : goOnOrLeave({ ...session, sessionId: resume.sessionId }, sink, open),
    )
  }

  /** A client that is turned away has no socket, and nobody else would say so of the session that it wanted. */
  function goOnOrLeave(session: Arriving, sink: Sink, open: ResumedSession): MaybePromise<Arrival> {
    const arrival = goOn(session, open)
    if (!(arrival instanceof Promise)) return arrival
    return arrival.catch(async (error) => {
      await sessions.detach(session.sessionId, sink, false, clock.unjumped())
      throw error
    })
  }

  /** Nobody waits for this: the token is good. A newer token that has come meanwhile goes on instead. */
  function renew(session: ClientSession, expiresAt: number): Promise<void> {
    const { sessionId } = session
    const isNewest = () => sessions.heldHere(sessionId)?.expiresAt === expiresAt
    const work = async () => {
      await sessions.renew(sessionId, expiresAt)
      await lateRings.liveCallsOf({ ...session, expiresAt })
    }
    return tryAgain(work, isNewest).catch((error) => {
      if (!(error instanceof StoreError)) throw error
    })
  }

  return { arrive, leave, doubt, ringLate: lateRings.ringLate, activeCalls: parts.readActiveCalls, renew }
}

/** What all who arrive need. */
function createParts(options: ArrivalsOptions) {
  const { sessions, recorder, absenceOf, mayTake, timers } = options
  const noteSocket = createNoteSocket(recorder)
  const lateRings = createLateRings(options)
  const readActiveCalls = createActiveCalls(lateRings, absenceOf, mayTake)

  /**
   * The client is in already, and nobody else would try again. So it asks a store that is away until the session has left
   * this node.
   */
  function insist({ sessionId }: Pick<ClientSession, 'sessionId'>, work: () => MaybePromise<unknown>): Promise<void> {
    return tryAgain(work, () => sessions.heldHere(sessionId) !== undefined)
  }

  /** Asks a store that is away again for as long as somebody wants to know; rejects with what it said last. */
  async function tryAgain(work: () => MaybePromise<unknown>, isWanted: () => boolean): Promise<void> {
    for (;;) {
      try {
        await work()
        return
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        await timers.sleep(retryMs)
        if (!isWanted()) throw error
      }
    }
  }

  return { noteSocket, lateRings, readActiveCalls, tryAgain, insist }
}

type Parts = ReturnType<typeof createParts>

/** Begins a new session, and takes what is there for its device. */
function createEnter(options: ArrivalsOptions, { noteSocket, lateRings, readActiveCalls, insist }: Parts) {
  const { sessions, delivery, clock, onError } = options
  const { takePlace, isAlive } = createTakePlace(options)

  /** If nobody calls and nothing waits, as nearly always, the session is in at once. */
  function enter(session: Arriving, sink: Sink, resume: ResumeRequest | undefined): MaybePromise<Arrival> {
    const identity = identityOf(session)
    return andThen(sessions.open(identity, sink, clock.unjumped()), (open) => {
      const arrival: Arrival = { sessionId: session.sessionId, recovered: false, activeCalls: [], ...open }
      return andThen(lateRings.liveCallsOf(session), (live) =>
        // The phone that changed networks may have left a socket behind that never heard how its last call ended.
        andThen(sessions.owing(identity), (owing) => {
          const verdicts = owing.map((sessionId) => insist(session, () => isAlive(sessionId)))
          // They are awaited last, so a rejection before that has to be handled.
          for (const verdict of verdicts) verdict.catch(() => {})
          noteSocket(session, live, 'socket_found', { resumed: false })
          if (live.length > 0) return takeUp(session, live, verdicts, resume?.sessionId, arrival)
          return andThen(collect(identity, verdicts), () => arrival)
        }),
      )
    })
  }

  /** Takes what is there for the device of a new session. */
  async function takeUp(
    session: Arriving,
    live: readonly LiveCall[],
    verdicts: Promise<unknown>[],
    named: string | undefined,
    arrival: Arrival,
  ): Promise<Arrival> {
    for (const call of live) {
      const place = ownPlace(session, call)
      if (place === null || place.deviceId !== session.deviceId) continue
      delivery.learn(call)
      const isNamed = place.sessionId === named
      const isAnybodyThere =
        place.state === 'held' && !isNamed && (await sessions.sinkOf(place.sessionId, place.node)) !== undefined
      const take = () => takePlace(session, call, named)
      if (isAnybodyThere) verdicts.push(insist(session, take).catch(onError))
      else await take()
    }
    await collect(identityOf(session), verdicts)
    return session.extended ? { ...arrival, activeCalls: await readActiveCalls(session) } : arrival
  }

  /** Final notices come when it is clear which sessions of the device are alive. */
  function collect(identity: SessionIdentity, verdicts: readonly Promise<unknown>[]): MaybePromise<void> {
    if (verdicts.length === 0) return sessions.collectFinals(identity)
    Promise.all(verdicts)
      .then(() => insist(identity, () => sessions.collectFinals(identity)))
      .catch(onError)
  }

  return enter
}

/** Goes on with a session that was resumed. */
function createGoOn(options: ArrivalsOptions, { noteSocket, lateRings, readActiveCalls, insist }: Parts) {
  const { store, sessions, calls, recorder, onError } = options
  const { liveCallsOf, tellIfOver } = lateRings

  /** The session has a socket again: its places are its own, and what began to ring meanwhile rings [RES1]. */
  function goOn(session: Arriving, { rings, ringing, places, ...open }: ResumedSession): MaybePromise<Arrival> {
    const { sessionId, deviceId, participant } = session
    const arrival: Arrival = { sessionId, recovered: true, activeCalls: [], ...open }
    for (const call of rings) {
      const whose = { sessionId, deviceId: deviceId ?? undefined, member: participant.userId }
      recorder.record(refOf(call), { what: 'proven', side: 'callee', ...whose, detail: {} })
    }
    return andThen(liveCallsOf(session), (live) => {
      noteSocket(session, live, 'socket_found', { resumed: true })
      const stale = ringing.filter((key) => !live.some((call) => callKey(call) === key))
      return andThen(allDone(stale.map((key) => tellIfOver(session, refOf(key)))), () => {
        // It may not have looked yet, and notices may have come while it was away. Nobody waits for a node that is silent.
        insist(session, () => sessions.collectFinals(identityOf(session))).catch(onError)
        return live.length + places.size === 0 ? arrival : takeBack(session, live, places, arrival)
      })
    })
  }

  /** Takes back a place that passed to another session of the device too, if that session has only connected [PLACE2 a]. */
  async function takeBack(
    session: Arriving,
    live: readonly LiveCall[],
    places: ResumedSession['places'],
    arrival: Arrival,
  ): Promise<Arrival> {
    for (const call of live) await takeBackIn(session, call, places.get(callKey(call)))
    for (const [key, had] of places) {
      if (live.some((call) => callKey(call) === key)) continue
      const over = await store.load(refOf(key))
      if (over === undefined) continue
      await takeBackIn(session, over, had)
      if (mayHaveMissedEnd(session, over)) insist(session, () => calls.hearEnd(session, over)).catch(onError)
    }
    return live.length === 0 ? arrival : { ...arrival, activeCalls: await readActiveCalls(session) }
  }

  /** In a call, and in those that transfers have made of it: they have the places that it had [XFER1]. */
  async function takeBackIn(session: Arriving, read: Call, had: Holding | undefined): Promise<void> {
    for (let call: Call | undefined = read; call !== undefined; ) {
      const place = ownPlace(session, call)
      if (place === null) return
      const isItsOwn = had !== undefined || place.sessionId === session.sessionId
      const now: Call = isItsOwn && isLive(call) ? await arriveIn(session, call, had) : call
      const next: CallRef | undefined = nextOf(now)
      call = next && (await store.load(next))
    }
  }

  async function arriveIn(session: Arriving, call: Call, had: Holding | undefined): Promise<Call> {
    const decision = await calls.run(call, { type: 'arrive', actor: session, ...(had && { had }) })
    return decision.ok ? decision.call : call
  }

  return goOn
}

/**
 * Whether the end of a call may have gone to a socket that this session's client had given up. If another session of the device
 * has spoken in the call, this session has nothing to do with it any more [PLACE1].
 */
function mayHaveMissedEnd(session: Arriving, call: Call): boolean {
  const place = ownPlace(session, call)
  if (place === null || place.deviceId !== session.deviceId) return false
  return place.sessionId === session.sessionId || !place.settled
}

function identityOf({
  sessionId,
  participant,
  deviceId,
  extended,
  expiresAt,
  appVersion,
  can,
}: Arriving): SessionIdentity {
  const identity = { sessionId, participant, deviceId, extended, expiresAt, appVersion }
  return can === undefined ? identity : { ...identity, can }
}
