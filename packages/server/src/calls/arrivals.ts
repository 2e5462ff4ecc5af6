import type { ActiveCall } from '@ringwire/protocol/events/auth'
import type { PeerAbsence } from '@ringwire/protocol/events/call'
import {
  type Call,
  type CallRef,
  callKey,
  isLive,
  type LiveCall,
  otherSide,
  participantOf,
  placeOf,
  type RingingCall,
  refOf,
  type Side,
  sideOf,
} from '../call/call.ts'
import { ringingData } from '../call/effects.ts'
import type { Detail } from '../call/observed.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { CallSteps, LiveCallReads } from '../ports/call-store.ts'
import type { Timers } from '../ports/clock.ts'
import { allDone, andThen, type MaybePromise } from '../ports/maybe.ts'
import type {
  Departure,
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
import type { Doubt } from '../push/waking.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { Calls } from './calls.ts'
import type { ClientSession } from './request.ts'

export interface ArrivalsOptions {
  readonly store: CallSteps & LiveCallReads
  readonly sessions: SessionSockets & SessionLookup & SessionPushes
  readonly delivery: Delivery
  readonly calls: Calls
  readonly recorder: Pick<Recorder, 'record'>
  readonly clock: SteadyClock
  /** Of a side of a call, as it is now [PEER1]. */
  readonly absenceOf: (call: Call, side: Side) => PeerAbsence | undefined
  /** A device of the callee lost a session while a call rings there, or does not answer there: it may sleep [PUSH2]. */
  readonly onDoubt: (call: RingingCall, doubt: Doubt) => void
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

/** How a socket was lost. */
export interface Loss extends Departure {
  /** Its client closed it, and will not come back to its session. */
  readonly forGood: boolean
  /** As the timelines of its calls say it [TRACE1]. */
  readonly cause: string
}

export interface Arrivals {
  /**
   * A session connected: register, then read, then send [ORD3, WS4]. What it is told waits in its log until
   * `sessions.ready`.
   */
  arrive(session: Arriving, sink: Sink, resume: ResumeRequest | undefined): MaybePromise<Arrival>
  /** The socket of a session is gone; resolves when its places are vacant, unless it has another socket [END3]. */
  leave(session: ClientSession, sink: Sink, loss: Loss): Promise<void>
  /** The client of a session does not answer pings: calls that ring there may ring for nobody [PING1]. */
  doubt(session: ClientSession): MaybePromise<void>
  /**
   * Of the live calls those that ring, and of which a session here was told nothing: its node may have been cut from the others
   * when they began. They ring there now.
   */
  ringLate(live: readonly LiveCall[]): Promise<void>
  /** The session has a new token: what began to ring since the last one was over rings there, too [WS5]. */
  renew(session: ClientSession, expiresAt: number): Promise<void>
}

type Who = Pick<ClientSession, 'sessionId' | 'participant' | 'expiresAt'>

/** By this age of a ring, in ms, the inviting node has mostly told every session. A session that gets the ring twice drops the second one. */
const lateMs = 1_000

/** How long a store that is away is left alone before it is asked again for who is in already, in ms. */
const retryMs = 500

/** Sessions that come and go, and what they find: [PLACE2, PLACE4, WS4]. */
export function createArrivals(options: ArrivalsOptions): Arrivals {
  const { store, sessions, delivery, calls, recorder, clock, absenceOf, onDoubt, onError, timers } = options

  /** Of the calls that it has to do with: those that ring there, and those in which its device has the place [TRACE1]. */
  function note(
    session: ClientSession,
    live: readonly LiveCall[],
    what: 'socket_lost' | 'socket_found',
    detail: Detail,
  ) {
    for (const call of live) {
      const side = sideOf(call, session.participant)
      if (side === undefined) continue
      const place = placeOf(call, side)
      const { sessionId, deviceId } = session
      if (place !== null && place.sessionId !== sessionId && place.deviceId !== deviceId) continue
      recorder.record(call, { what, side, sessionId, deviceId: deviceId ?? undefined, detail })
    }
  }

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
    return andThen(sessions.resume(resume, identityOf(session), sink, clock.now(), retired), (open) =>
      open === undefined
        ? enter(session, sink, resume)
        : goOnOrLeave({ ...session, sessionId: resume.sessionId }, sink, open),
    )
  }

  /** Whoever is turned away has no socket: nobody else would say so of the session that it was to go on as. */
  function goOnOrLeave(session: Arriving, sink: Sink, open: ResumedSession): MaybePromise<Arrival> {
    const arrival = goOn(session, open)
    if (!(arrival instanceof Promise)) return arrival
    return arrival.catch(async (error) => {
      await sessions.detach(session.sessionId, sink, false, clock.now())
      throw error
    })
  }

  /** A new session. Where nobody calls and nothing waits, and that is nearly always so, it is in at once. */
  function enter(session: Arriving, sink: Sink, resume: ResumeRequest | undefined): MaybePromise<Arrival> {
    const identity = identityOf(session)
    return andThen(sessions.open(identity, sink, clock.now()), (open) => {
      const arrival: Arrival = { sessionId: session.sessionId, recovered: false, activeCalls: [], ...open }
      return andThen(liveCallsOf(session), (live) =>
        // The phone that changed networks may have left a socket behind that never heard how its last call ended.
        andThen(sessions.owing(identity), (owing) => {
          const verdicts = owing.map((sessionId) => insist(session, () => isAlive(sessionId)))
          // They are awaited last: one that fails before is not unheard.
          for (const verdict of verdicts) verdict.catch(() => {})
          note(session, live, 'socket_found', { resumed: false })
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

  /** Final notices come when it is clear who of the device is alive. */
  function collect(identity: SessionIdentity, verdicts: readonly Promise<unknown>[]): MaybePromise<void> {
    if (verdicts.length === 0) return sessions.collectFinals(identity)
    Promise.all(verdicts)
      .then(() => insist(identity, () => sessions.collectFinals(identity)))
      .catch(onError)
  }

  /** The client is in already, and nobody else would try again. So a store that is away is asked until the session has left this node. */
  async function insist(
    { sessionId }: Pick<ClientSession, 'sessionId'>,
    work: () => MaybePromise<unknown>,
  ): Promise<void> {
    for (;;) {
      try {
        await work()
        return
      } catch (error) {
        if (!(error instanceof StoreError) || sessions.heldHere(sessionId) === undefined) throw error
      }
      await timers.sleep(retryMs)
    }
  }

  /** The session has a socket again: its places are its own, and what began to ring meanwhile rings [RES1]. */
  function goOn(session: Arriving, { rings, ringing, places, ...open }: ResumedSession): MaybePromise<Arrival> {
    const { sessionId, deviceId } = session
    const arrival: Arrival = { sessionId, recovered: true, activeCalls: [], ...open }
    for (const call of rings) {
      const entry = { what: 'proven', side: 'callee', sessionId, deviceId: deviceId ?? undefined, detail: {} } as const
      recorder.record(refOf(call), entry)
    }
    return andThen(liveCallsOf(session), (live) => {
      note(session, live, 'socket_found', { resumed: true })
      const stale = ringing.filter((key) => !live.some((call) => callKey(call) === key))
      return andThen(allDone(stale.map((key) => tellIfOver(session, refOf(key)))), () => {
        // It may not have looked yet, and notices may have come while it was away. Nobody waits for a node that is silent.
        insist(session, () => sessions.collectFinals(identityOf(session))).catch(onError)
        return live.length === 0 ? arrival : takeBack(session, live, places, arrival)
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
    for (const call of live) {
      const had = places.get(callKey(call))
      if (had !== undefined || ownPlace(session, call)?.sessionId === session.sessionId)
        await calls.run(call, { type: 'arrive', actor: session, ...(had && { had }) })
    }
    return { ...arrival, activeCalls: await readActiveCalls(session) }
  }

  /** Reads the participant's live calls; those that ring for the session do so first [WS4]. */
  function liveCallsOf(session: Who): MaybePromise<readonly LiveCall[]> {
    return andThen(store.liveCallsOf(session.participant), (live) => {
      const ringing = live.filter((call) => call.status === 'ringing' && sideOf(call, session.participant) === 'callee')
      return andThen(allDone(ringing.map((call) => ring(session, call))), () => live)
    })
  }

  /** A store that is away is asked again, and nobody waits for it: the token is good. */
  async function renew(session: ClientSession, expiresAt: number): Promise<void> {
    const { sessionId } = session
    const isNewest = () => sessions.heldHere(sessionId)?.expiresAt === expiresAt
    for (let isFirst = true; isFirst || isNewest(); isFirst = false) {
      try {
        await sessions.renew(sessionId, expiresAt)
        await liveCallsOf({ ...session, expiresAt })
        return
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        await timers.sleep(retryMs)
      }
    }
  }

  /** What it says rings does ring there: whoever ends the call looks for those. */
  async function readActiveCalls(session: Who): Promise<ActiveCall[]> {
    const live = await liveCallsOf(session)
    return live.flatMap((call) => {
      const now = newest(call)
      const side = sideOf(now, session.participant)
      const isTold = side === 'caller' || now.status !== 'ringing' || isRung(session, now)
      return side === undefined || !isLive(now) || !isTold
        ? []
        : [activeCall(now, side, session.sessionId, absenceOf(now, otherSide(side)))]
    })
  }

  /** The call may have moved on while the read was under way: the newer version is the true one. */
  function newest(read: Call): Call {
    const known = delivery.known.get(callKey(read))
    return known !== undefined && known.version > read.version ? known : read
  }

  async function ringLate(live: readonly LiveCall[]): Promise<void> {
    const due = live.filter((call) => call.status === 'ringing' && clock.now() - call.startedAt > lateMs)
    const rings = due.flatMap((call) =>
      sessions.unaware(participantOf(call, 'callee'), callKey(call)).map((session) => ring(session, call)),
    )
    await allDone(rings)
  }

  /**
   * Rings at a session that has just come. Whoever ends the call looks for the sessions where it rings: one that looked
   * before it rang here, though it was over already, is made up for.
   */
  function ring(session: Who, read: Call): MaybePromise<void> {
    const call = newest(read)
    if (call.status !== 'ringing' || !isRung(session, call)) return
    const text = JSON.stringify({ event: 'call.ringing', data: ringingData(call, clock.now()) })
    const push = { kind: 'ringing', call: callKey(call), version: call.version, text } as const
    return andThen(sessions.append(session.sessionId, push), () => tellIfOver(session, call))
  }

  /** A call rings at this session. Who ended the call may have looked for such sessions before that: then it is told here. */
  function tellIfOver(session: Who, ref: CallRef): MaybePromise<void> {
    return andThen(store.load(ref), (now) => {
      if (now === undefined || now.status === 'ringing') return
      return tellThatItIsOver(session, now)
    })
  }

  async function tellThatItIsOver(session: Who, call: Call): Promise<void> {
    if (ownPlace(session, call)?.sessionId === session.sessionId) return
    const [last] = (await store.stepsAfter(call, 1)).filter(({ event }) =>
      event.notices.some(({ to, event: name }) => to.place === 'rung' && name !== 'call.ringing'),
    )
    const notice = last?.event.notices.find(({ to }) => to.place === 'rung')
    if (last === undefined || notice === undefined) return
    const text = JSON.stringify({ event: notice.event, data: notice.data })
    // Whoever answered, or was busy, knows: also where the place has passed on to another session since.
    if (notice.to.place === 'rung' && notice.to.except.includes(session.sessionId)) return
    const kind = isLive(call) ? 'stop' : 'final'
    const push = { kind, call: callKey(call), version: last.call.version, text } as const
    await sessions.append(session.sessionId, push)
  }

  /**
   * Takes what its own device left behind. A holder that looks alive is asked, and the new session does not wait for its
   * answer [PLACE4]. Final notices do: one may say that the call was answered elsewhere, and elsewhere is perhaps here.
   * Again, because others arrive and die meanwhile: a session that lost its socket while it took the place leaves it to
   * this one. One whose socket is closed does not ask again, or hundreds that connected and dropped would wake each other.
   */
  async function takePlace(session: ClientSession, read: Call, resumes: string | undefined): Promise<void> {
    const { sessionId, deviceId } = session
    for (let call = read; isLive(call) && (await isHere(sessionId)); ) {
      const place = ownPlace(session, call)
      if (place === null || place.sessionId === sessionId || place.deviceId !== deviceId) return
      const { state, node, sessionId: holder } = place
      // Its own last session cannot be resumed: nobody else is there.
      const isNamed = holder === resumes
      if (state === 'held' && !isNamed && (await isAlive(holder, node))) return
      const decision = await calls.run(
        call,
        state === 'held'
          ? { type: 'lose', sessionId: holder, node }
          : { type: 'arrive', actor: session, ...(isNamed && { resumes }) },
      )
      // Its holder is back at another node.
      if (!decision.ok || decision.call.version === call.version) return
      call = decision.call
      // How it ended may just be on its way to the session of before.
      if (!isLive(call)) await delivery.catchUp(call)
    }
  }

  /** Whether the session has an open socket here, be it another one than it came with [RES1]. */
  async function isHere(sessionId: string): Promise<boolean> {
    if (sessions.heldHere(sessionId) === undefined) return false
    return (await sessions.sinkOf(sessionId))?.isClosed === false
  }

  async function isAlive(sessionId: string, node?: string): Promise<boolean> {
    const sink = await sessions.sinkOf(sessionId, node)
    return (await sink?.probe()) ?? false
  }

  function ownPlace(session: Who, call: Call) {
    const side = sideOf(call, session.participant)
    return side === undefined ? null : placeOf(call, side)
  }

  async function leave(session: ClientSession, sink: Sink, { forGood, cause, ...how }: Loss): Promise<void> {
    const { sessionId, node } = session
    if (!(await sessions.detach(sessionId, sink, forGood, clock.now(), how))) return
    const live = await store.liveCallsOf(session.participant)
    note(session, live, 'socket_lost', { cause })
    for (const call of ringsOf(session, live)) onDoubt(call, { deviceId: session.deviceId, cause: 'lost' })
    // It came back meanwhile: its places are its own again.
    if (sessions.heldHere(sessionId) !== undefined) return
    await Promise.all(
      live
        .filter((call) => ownPlace(session, call)?.sessionId === sessionId)
        // Said here as well: by then its client may be back at another node, which forgets how the last socket went.
        .map((call) => calls.run(call, { type: 'lose', sessionId, node, awaitedMs: how.awaitedMs })),
    )
  }

  function doubt(session: ClientSession): MaybePromise<void> {
    return andThen(sessions.doubt(session.sessionId), (keys) => (keys.length === 0 ? undefined : notice(session, keys)))
  }

  async function notice(session: ClientSession, keys: readonly string[]): Promise<void> {
    const { sessionId, deviceId } = session
    for (const call of ringsOf(session, await store.liveCallsOf(session.participant))) {
      if (!keys.includes(callKey(call))) continue
      recorder.record(call, { what: 'unsure', side: 'callee', sessionId, deviceId: deviceId ?? undefined, detail: {} })
      onDoubt(call, { deviceId, cause: 'unsure' })
    }
  }

  return { arrive, leave, doubt, ringLate, renew }
}

/** The calls of these that ring for the participant of a session. */
function ringsOf({ participant }: Who, live: readonly LiveCall[]): RingingCall[] {
  return live.filter((call): call is RingingCall => call.status === 'ringing' && sideOf(call, participant) === 'callee')
}

/** A call rings where the token was good when it began [WS5]. */
function isRung({ expiresAt = Number.POSITIVE_INFINITY }: Who, call: Call): boolean {
  return call.startedAt < expiresAt
}

function activeCall(call: LiveCall, side: Side, sessionId: string, away: PeerAbsence | undefined): ActiveCall {
  const peer = side === 'caller' ? call.callee : call.caller
  return {
    call_uuid: call.callUuid,
    status: call.status,
    version: call.version,
    direction: side === 'caller' ? 'outgoing' : 'incoming',
    peer: { user_id: peer.userId, role: peer.role, display_name: peer.displayName, ...(away && { away }) },
    call_type: call.callType,
    context_type: call.contextType,
    context_id: call.contextId,
    started_at: new Date(call.startedAt).toISOString(),
    expires_at: new Date(call.ringExpiresAt).toISOString(),
    holds_place: placeOf(call, side)?.sessionId === sessionId,
  }
}

function identityOf({ sessionId, participant, deviceId, extended, expiresAt, appVersion }: Arriving): SessionIdentity {
  return { sessionId, participant, deviceId, extended, expiresAt, appVersion }
}
