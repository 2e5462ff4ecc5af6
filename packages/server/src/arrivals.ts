import {
  type AnsweredCall,
  type Call,
  callKey,
  isLive,
  type Participant,
  participantOf,
  placeOf,
  sideOf,
} from './call/call.ts'
import { acceptedData, type CallEvent, elsewhereData, ringingData } from './call/effects.ts'
import type { Calls, ClientSession } from './calls.ts'
import { ringBeyondTimeout } from './deadlines.ts'
import type { Delivery } from './delivery.ts'
import type { CallStore, Sessions, Sink } from './ports.ts'
import type { SteadyClock } from './steady-clock.ts'

export interface ArrivalsOptions {
  readonly store: CallStore
  readonly sessions: Sessions
  readonly delivery: Delivery
  readonly calls: Calls
  readonly clock: SteadyClock
  /** How long final notices of calls that are over are worth telling, in ms [WS4]. */
  readonly finalsMs: number
  readonly onError: (error: unknown) => void
}

export interface Arrivals {
  /** A session connected: register, then read, then send [ORD3, WS4]. Resolves when it may send requests. */
  arrive(session: ClientSession, sink: Sink): Promise<void>
  /** Its socket is gone; resolves when its places are vacant [END3]. */
  leave(session: ClientSession, clean: boolean): Promise<void>
  /** The service starts: nobody has a socket, live calls wait for their people [RES3]. */
  recover(): Promise<void>
}

/** Sessions that come and go, and what they find: [PLACE2, PLACE4, WS4]. */
export function createArrivals(options: ArrivalsOptions): Arrivals {
  const { store, sessions, delivery, calls, clock, finalsMs, onError } = options

  async function arrive(session: ClientSession, sink: Sink): Promise<void> {
    const { sessionId, participant, deviceId } = session
    sessions.open({ sessionId, participant, deviceId }, sink)
    try {
      const live = await store.liveCallsOf(participant)
      for (const call of live) if (call.status === 'ringing') ring(session, call)
      // The phone that changed networks may have left a socket behind that never heard how its last call ended.
      const verdicts: Promise<unknown>[] = sessions.owing(session).map(isAlive)
      for (const call of live) {
        const place = ownPlace(session, call)
        if (place === null || place.deviceId !== session.deviceId) continue
        delivery.learn(call)
        const isAnybodyThere = place.state === 'held' && sessions.sinkOf(place.sessionId) !== undefined
        const taken = takePlace(session, call)
        if (isAnybodyThere) verdicts.push(taken.catch(onError))
        else await taken
      }
      if (verdicts.length === 0) sessions.collectFinals(session)
      else void Promise.all(verdicts).then(() => sessions.collectFinals(session))
    } finally {
      sessions.ready(sessionId)
    }
  }

  /** The call may have moved on while the read was under way: the newer version is the true one. */
  function ring(session: ClientSession, read: Call): void {
    const known = delivery.known.get(callKey(read))
    const call = known !== undefined && known.version > read.version ? known : read
    if (call.status !== 'ringing' || sideOf(call, session.participant) !== 'callee') return
    const text = JSON.stringify({ event: 'call.ringing', data: ringingData(call, clock.now()) })
    sessions.append(session.sessionId, { kind: 'ringing', call: callKey(call), version: call.version, text })
  }

  /**
   * Takes what its own device left behind. A holder that looks alive is asked, and the new session does not wait for its
   * answer [PLACE4]. Final notices do: one may say that the call was answered elsewhere, and elsewhere is perhaps here.
   * Again, because others arrive and die meanwhile: a session that lost its socket while it took the place leaves it to
   * this one.
   */
  async function takePlace(session: ClientSession, read: Call): Promise<void> {
    const { sessionId, deviceId } = session
    for (let call = read; isLive(call) && sessions.sinkOf(sessionId) !== undefined; ) {
      const place = ownPlace(session, call)
      if (place === null || place.sessionId === sessionId || place.deviceId !== deviceId) return
      if (place.state === 'held' && (await isAlive(place.sessionId))) return
      const { state, sessionId: holder } = place
      const decision = await calls.run(
        call,
        state === 'vacant' ? { type: 'arrive', actor: session } : { type: 'lose', sessionId: holder },
      )
      if (!decision.ok) return
      call = decision.call
    }
  }

  async function isAlive(sessionId: string): Promise<boolean> {
    return (await sessions.sinkOf(sessionId)?.probe()) ?? false
  }

  function ownPlace(session: ClientSession, call: Call) {
    const side = sideOf(call, session.participant)
    return side === undefined ? null : placeOf(call, side)
  }

  async function leave(session: ClientSession, clean: boolean): Promise<void> {
    const { sessionId } = session
    sessions.detach(sessionId, clean, clock.now())
    const live = await store.liveCallsOf(session.participant)
    await Promise.all(
      live
        .filter((call) => ownPlace(session, call)?.sessionId === sessionId)
        .map((call) => calls.run(call, { type: 'lose', sessionId })),
    )
  }

  async function recover(): Promise<void> {
    const now = clock.now()
    for (const { call, step } of await store.overSince(now - finalsMs)) {
      expectBack(call, now)
      if (call.calleePlace === null) expectRung(call, now)
      delivery.apply({ call, event: finalsOf(step.event) })
    }
    const live = await store.liveCalls()
    await Promise.all(live.map((call) => recoverCall(call, now)))
  }

  async function recoverCall(call: Call, now: number): Promise<void> {
    if (!isLive(call)) return
    expectBack(call, now)
    if (call.status === 'ringing') expectRung(call, now)
    delivery.learn(call)
    if (call.status === 'accepted') {
      // Nobody knows whether the caller heard it; a call that is connected proves that it did.
      const text = JSON.stringify({ event: 'call.accepted', data: acceptedData(call) })
      const push = { kind: 'state', call: callKey(call), version: call.version, text } as const
      sessions.append(call.callerPlace.sessionId, push)
    }
    if (call.status !== 'ringing') tellOthersRung(call, now)
    const beyond = ringBeyondTimeout(call, now)
    if (beyond > 0) await calls.run(call, { type: 'shift', ms: -beyond })
    // The lost clocks start again before time counts: none of them ran out while nobody could come back [END3].
    await calls.run(call, { type: 'restart' })
    await calls.run(call, { type: 'time' })
  }

  /**
   * The callee's other sessions may not have heard that the call was answered. Only where the one that answered can be
   * told from them by its device: it must never hear that the call is over for it.
   */
  function tellOthersRung(call: AnsweredCall, now: number): void {
    if (call.calleePlace.deviceId === null || now - call.acceptedAt > finalsMs) return
    expectRung(call, now)
    const text = JSON.stringify({
      event: 'call.cancelled',
      data: elsewhereData(call, 'answered_elsewhere', { ...call.callee, sessionId: call.calleePlace.sessionId }),
    })
    const push = { kind: 'final', call: callKey(call), version: call.version, text } as const
    sessions.appendRung(participantOf(call, 'callee'), push, [])
  }

  /** The holders of the places may come back: their logs are there again. */
  function expectBack(call: Call, now: number): void {
    for (const side of ['caller', 'callee'] as const) {
      const place = placeOf(call, side)
      if (place === null) continue
      sessions.openDetached(
        { sessionId: place.sessionId, participant: participantOf(call, side), deviceId: place.deviceId },
        now,
      )
    }
  }

  /** Some sockets of the callee rang before the restart; which ones is not known any more [WS4]. */
  function expectRung(call: Call, now: number): void {
    const participant: Participant = participantOf(call, 'callee')
    const sessionId = crypto.randomUUID()
    sessions.openDetached({ sessionId, participant, deviceId: undefined }, now)
    sessions.ring(sessionId, callKey(call))
  }

  return { arrive, leave, recover }
}

/** Of a call that is over only the end is told again. */
function finalsOf(event: CallEvent): CallEvent {
  return { ...event, notices: event.notices.filter((notice) => notice.event !== 'call.ringing') }
}
