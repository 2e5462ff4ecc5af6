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
  wasJoined,
} from '../call/call.ts'
import { byClock } from '../call/clock.ts'
import { type CallEvent, elsewhereData } from '../call/effects.ts'
import type { Delivery } from '../delivery/delivery.ts'
import { sides } from '../delivery/handing-on.ts'
import { acceptedPush } from '../delivery/notices.ts'
import type { Ended, LiveCallReads } from '../ports/call-store.ts'
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
   * The service starts: nobody has a socket, live calls wait for their people [RES3]; nothing where other nodes serve.
   * `hasSessions`: sessions are still known; then nobody looked after the clocks of their calls, and what the last node could
   * not tell any more is in the outbox.
   */
  recover(hasSessions: boolean): Promise<void>
}

/** The calls that a start finds: they went on without their service. */
export function createRecovery(options: RecoveryOptions): Recovery {
  const { store, sessions, nodes, delivery, clock, finalsMs } = options
  const { expectBack, expectRung } = createExpected(options)
  const startClocks = createStartClocks(options)

  async function recover(hasSessions: boolean): Promise<void> {
    const now = clock.now()
    if (nodes.others().length > 0) return
    if (hasSessions) return recoverClocks(now)
    for await (const page of store.overPages(now - finalsMs)) await inBatches(page, (ended) => recoverEnded(ended))
    for await (const page of store.livePages()) await inBatches(page, (call) => recoverCall(call, now))
  }

  /** The lost clocks start in full [END3]. */
  async function recoverClocks(now: number): Promise<void> {
    for await (const page of store.livePages()) {
      await inBatches(page, (call) => startClocks(call, now, [nodes.self]))
    }
  }

  async function recoverEnded({ call, step }: Ended): Promise<void> {
    await expectBack(call)
    if (call.calleePlace === null) await expectRung(call)
    await delivery.tellAgain({ call, event: finalsOf(step.event) })
  }

  async function recoverCall(call: Call, now: number): Promise<void> {
    if (!isLive(call)) return
    // If a session was there, what it has not heard is in the outbox.
    if (!(await expectBack(call))) await adopt(call, now)
    await startClocks(call, now, [])
  }

  async function adopt(call: LiveCall, now: number): Promise<void> {
    if (call.status === 'ringing') await expectRung(call)
    await delivery.adopt(call)
    if (call.status === 'accepted') {
      // Nobody knows whether the caller heard it; a call that is connected proves that it did.
      await sessions.append(call.callerPlace.sessionId, acceptedPush(callKey(call), call))
    }
    if (call.status !== 'ringing') await tellOthersRung(call, now)
  }

  /**
   * The callee's other sessions may not have heard that the call was answered. Only if the device of the session that
   * answered tells it from them: it must never hear that the call is over for it.
   */
  async function tellOthersRung(call: AnsweredCall, now: number): Promise<void> {
    const { deviceId } = call.calleePlace
    // It rang nowhere [XFER1].
    if (wasJoined(call)) return
    if (deviceId === null || now - call.acceptedAt > finalsMs) return
    await expectRung(call, deviceId)
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
   * The holders of the places may come back: their logs are there again. Answers whether one of them was there: a node that was
   * leaving wrote its sessions again, into a Redis that was still empty when this node looked.
   */
  async function expectBack(call: Call): Promise<boolean> {
    let wasThere = false
    for (const side of sides) {
      const place = placeOf(call, side)
      if (place === null) continue
      const { sessionId, deviceId } = place
      const step = { call: callKey(call) }
      if ((await sessions.apply(sessionId, step)) !== undefined && !madeUp.has(sessionId)) {
        wasThere = true
        continue
      }
      madeUp.add(sessionId)
      const identity = { sessionId, participant: participantOf(call, side), deviceId, extended: false }
      await sessions.apply(sessionId, { ...step, orOpen: { identity, at: clock.unjumped() } })
    }
    return wasThere
  }

  /** Some sockets of the callee rang before the restart. It is only known on which device none of them was [WS4]. */
  async function expectRung(call: Call, isNotOf?: string): Promise<void> {
    for (const participant of rungBy(call)) await expectAt(participant, call, isNotOf)
  }

  async function expectAt(participant: Participant, call: Call, isNotOf?: string): Promise<void> {
    const sessionId = newSessionId(participant)
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
