import {
  type AnsweredCall,
  type Call,
  type CallDurations,
  callKey,
  isLive,
  type LiveCall,
  nextDeadline,
  type Participant,
  participantOf,
  placeOf,
  rungBy,
  type Side,
  wasJoined,
} from '../call/call.ts'
import { byClock } from '../call/clock.ts'
import { type CallEvent, elsewhereData } from '../call/effects.ts'
import type { Delivery } from '../delivery/delivery.ts'
import { sides } from '../delivery/handing-on.ts'
import { acceptedPush } from '../delivery/notices.ts'
import type { Ended, LiveCallReads } from '../ports/call-store.ts'
import type { Missing, MissingSessions } from '../ports/missing-sessions.ts'
import type { Nodes } from '../ports/nodes.ts'
import { newSessionId } from '../ports/session-id.ts'
import type { Sessions } from '../ports/sessions.ts'
import { inBatches } from '../time/in-batches.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import type { Calls } from './calls.ts'

export interface RecoveryOptions {
  readonly store: LiveCallReads
  readonly sessions: Pick<Sessions, 'append' | 'appendRung' | 'apply'>
  readonly nodes: Nodes
  readonly delivery: Delivery
  readonly calls: Calls
  readonly clock: SteadyClock
  readonly durations: CallDurations
  /** How long final notices of calls that are over are worth telling, in ms [WS4]. */
  readonly finalsMs: number
}

export interface Recovery {
  /**
   * The service starts: nobody has a socket, live calls wait for their people [RES3]; nothing where other nodes serve. If
   * nothing is missing, nobody looked after the clocks of the calls, and what the last node could not tell any more is in the
   * outbox.
   */
  recover(missing: MissingSessions): Promise<void>
}

/** The calls that a start finds: they went on without their service. */
export function createRecovery(options: RecoveryOptions): Recovery {
  const { store, sessions, nodes, delivery, clock, finalsMs } = options
  const { expectBack, expectRung } = createExpected(options)
  const startClocks = createStartClocks(options)

  async function recover(missing: MissingSessions): Promise<void> {
    let isDone = false
    for (let next = await missing.next(); next !== undefined; next = await missing.next()) {
      await makeUp(next)
      await missing.made()
      isDone = true
    }
    if (!isDone && nodes.others().length === 0) await recoverClocks()
  }

  /** Where a process that did this died, all of it may be done again. */
  async function makeUp(missing: Missing): Promise<void> {
    const now = clock.now()
    for await (const page of store.overPages(now - finalsMs))
      await inBatches(page, (ended) => recoverEnded(ended, missing))
    for await (const page of store.livePages()) await inBatches(page, (call) => recoverCall(call, missing, now))
  }

  /** The lost clocks start in full [END3]. */
  async function recoverClocks(): Promise<void> {
    const now = clock.now()
    for await (const page of store.livePages()) {
      await inBatches(page, (call) => startClocks(call, now, [nodes.self]))
    }
  }

  async function recoverEnded({ call, step }: Ended, missing: Missing): Promise<void> {
    const { lost } = await expectBack(call, missing)
    const rung = call.calleePlace === null ? await expectRung(call, missing) : 0
    if (lost.length + rung > 0) await delivery.tellAgain({ call, event: finalsOf(step.event) })
  }

  async function recoverCall(call: Call, missing: Missing, now: number): Promise<void> {
    if (!isLive(call)) return
    const { lost, wasThere } = await expectBack(call, missing)
    if (!wasThere && call.status === 'ringing') await expectRung(call, missing)
    if (lost.length > 0) await adopt(call, lost, missing, now)
    await startClocks(call, now, [])
  }

  async function adopt(call: LiveCall, lost: readonly Side[], missing: Missing, now: number): Promise<void> {
    await delivery.adopt(call, lost)
    if (call.status === 'accepted' && lost.includes('caller')) {
      // Nobody knows whether the caller heard it; a call that is connected proves that it did.
      await sessions.append(call.callerPlace.sessionId, acceptedPush(callKey(call), call))
    }
    if (call.status !== 'ringing' && lost.includes('callee')) await tellOthersRung(call, missing, now)
  }

  /**
   * The callee's other sessions may not have heard that the call was answered. Only if the device of the session that
   * answered tells it from them: it must never hear that the call is over for it.
   */
  async function tellOthersRung(call: AnsweredCall, missing: Missing, now: number): Promise<void> {
    const { deviceId } = call.calleePlace
    // It rang nowhere [XFER1].
    if (wasJoined(call)) return
    if (deviceId === null || now - call.acceptedAt > finalsMs) return
    await expectRung(call, missing, deviceId)
    const text = JSON.stringify({
      event: 'call.cancelled',
      data: elsewhereData(call, 'answered_elsewhere', { ...call.callee, sessionId: call.calleePlace.sessionId }),
    })
    const push = { kind: 'stop', call: callKey(call), version: call.version, text } as const
    // In a group the other members who rang hear it, too.
    for (const callee of rungBy(call)) await sessions.appendRung(callee, push, [])
  }

  return { recover }
}

/** Starts the clocks of a call again; `alive`: the nodes whose sockets are there. */
function createStartClocks({ calls, clock, durations }: RecoveryOptions) {
  async function startClocks(call: LiveCall, now: number, alive: readonly string[]): Promise<void> {
    const beyond = ringBeyondTimeout(byClock(call, clock.written()), now)
    if (beyond > 0) await calls.run(call, { type: 'shift', ms: -beyond })
    // The lost clocks start again before time counts: none of them ran out while nobody could come back [END3].
    const decision = await calls.run(call, { type: 'restart', nodes: alive })
    // Only calls whose time is over are given to the store: each costs it a read, even if there is nothing to do.
    if (decision.ok && isDue(decision.call)) await calls.run(call, { type: 'time' })
  }

  function isDue(call: Call): boolean {
    const deadline = nextDeadline(call, durations)
    return deadline !== undefined && deadline <= clock.now()
  }

  return startClocks
}

/** Sessions that there were before the start. Their clients may come back. */
function createExpected({ sessions, clock }: RecoveryOptions) {
  /** Those that are there since this start. */
  const madeUp = new Set<string>()

  /**
   * The holders of the places may come back: their logs are there again. Answers which sides' sessions were lost, and whether
   * another one was there: a node that was leaving wrote its sessions again, into a Redis that was still empty when this node
   * looked.
   */
  async function expectBack(call: Call, { isOf, wasBegun }: Missing) {
    const lost: Side[] = []
    let wasThere = false
    for (const side of sides) {
      const place = placeOf(call, side)
      if (place === null || !isOf(place.sessionId)) continue
      const { sessionId, deviceId } = place
      const step = { call: callKey(call) }
      if ((await sessions.apply(sessionId, step)) !== undefined && !madeUp.has(sessionId) && !wasBegun) {
        wasThere = true
        continue
      }
      madeUp.add(sessionId)
      lost.push(side)
      const identity = { sessionId, participant: participantOf(call, side), deviceId, extended: false }
      await sessions.apply(sessionId, { ...step, orOpen: { identity, at: clock.unjumped() } })
    }
    return { lost, wasThere }
  }

  /**
   * Some sockets of the callee rang before the restart. It is only known on which device none of them was [WS4]. Answers of how
   * many participants that is lost.
   */
  async function expectRung(call: Call, { isOf }: Missing, isNotOf?: string): Promise<number> {
    const ids = rungBy(call).map((participant) => [newSessionId(participant), participant] as const)
    const lost = ids.filter(([sessionId]) => isOf(sessionId))
    for (const [sessionId, participant] of lost) await expectAt(sessionId, participant, call, isNotOf)
    return lost.length
  }

  async function expectAt(sessionId: string, participant: Participant, call: Call, isNotOf?: string): Promise<void> {
    const identity = { sessionId, participant, deviceId: undefined, extended: false, ...(isNotOf && { isNotOf }) }
    await sessions.apply(sessionId, {
      call: callKey(call),
      isRinging: true,
      orOpen: { identity, at: clock.unjumped() },
    })
  }

  return { expectBack, expectRung }
}

/** A call that is over only delivers its end again. */
function finalsOf(event: CallEvent): CallEvent {
  return { ...event, notices: event.notices.filter((notice) => notice.event !== 'call.ringing') }
}

/** By how much a ring would last too long right after the service was away, in ms. */
function ringBeyondTimeout(call: LiveCall, now: number): number {
  return call.status === 'ringing' ? Math.max(0, call.ringExpiresAt - now - call.ringTimeoutMs) : 0
}
