import {
  type Call,
  type CallDurations,
  type CallRef,
  callKey,
  isAnswered,
  type LiveCall,
  nextDeadline,
  type Outage,
} from './call/call.ts'
import type { CallCommand, Decision } from './call/decide.ts'
import { isUnheld } from './holders.ts'
import { inBatches } from './in-batches.ts'
import { type CallStore, type Nodes, type Sessions, StoreError, type Uptime } from './ports.ts'
import type { SteadyClock } from './steady-clock.ts'

/** setTimeout holds no more than this. */
const longestTimeoutMs = 2 ** 31 - 1
const sweepIntervalMs = 500
/** What was due in an outage is looked at again so much later, in ms. */
const againMs = 500
/** A jump of the nodes' common clock is noticed by all of them within this time, in ms. */
const noticedMs = 1_500
/** So much later than the node that has the timer another one looks after a deadline, in ms [RING1]. */
const patienceMs = 200
/** A timer may fire so much before its time, in ms. */
const earlyMs = 5

export interface DeadlinesOptions {
  readonly store: CallStore
  readonly sessions: Sessions
  readonly nodes: Nodes
  readonly uptime: Uptime
  readonly clock: SteadyClock
  readonly durations: CallDurations
  readonly run: (ref: CallRef, command: CallCommand) => Promise<Decision>
  /** More that is done at every sweep, with the calls that are live. */
  readonly onSweep: (now: number, live: readonly LiveCall[]) => Promise<void>
  readonly onError: (error: unknown) => void
}

export interface Deadlines {
  /** Watches a call's next deadline: a local timer makes it prompt. */
  watch(call: Call): void
  /** The call ended elsewhere. */
  forget(call: Call): void
  start(): void
  stop(): void
}

/**
 * Time's part in the calls [RING1, END3]. A local timer a call makes it prompt, a sweep every 500 ms makes it sure, the
 * version guard makes it once.
 */
export function createDeadlines(options: DeadlinesOptions): Deadlines {
  const { store, sessions, nodes, uptime, clock, run, onSweep, onError } = options
  const timers = new Map<string, { readonly call: Call; readonly timer: ReturnType<typeof setTimeout> }>()
  /** Calls whose timers fired, until something came of it. */
  const due = new Map<string, Call>()
  let isWorking = false
  let sweeper: ReturnType<typeof setInterval> | undefined
  let sweeping = false
  let jumping = false
  /** What fails is said once, until a sweep succeeds. */
  let isTold = false
  let lastOutage: Outage | undefined

  function deadlineOfCall(call: Call): number | undefined {
    return nextDeadline(call, { ...options.durations, outages: uptime.outages() })
  }

  function watch(call: Call, atLeastMs = 0): void {
    forget(call)
    const deadline = deadlineOfCall(call)
    if (deadline === undefined) return
    const delay = Math.min(Math.max(atLeastMs, deadline - clock.now()), longestTimeoutMs)
    const key = callKey(call)
    const timer = setTimeout(() => {
      timers.delete(key)
      fire(key, call)
    }, delay)
    timers.set(key, { call, timer })
  }

  function forget(call: Call): void {
    const key = callKey(call)
    clearTimeout(timers.get(key)?.timer)
    timers.delete(key)
    due.delete(key)
  }

  /** Many may be due at once, as when a node died: they take their turns. */
  function fire(key: string, call: Call): void {
    due.set(key, call)
    if (isWorking || sweeper === undefined) return
    isWorking = true
    workOffDue()
      .catch(failed)
      .finally(() => {
        isWorking = false
      })
  }

  async function workOffDue(): Promise<void> {
    while (due.size > 0 && sweeper !== undefined) {
      const calls = [...due.values()]
      due.clear()
      await inBatches(calls, passTime)
    }
  }

  async function passTime(call: Call): Promise<void> {
    // In an outage, or by a clock that jumped, it is not.
    if (jumping || !isDue(call, clock.now())) return watch(call, againMs)
    const decision = await run(call, { type: 'time' })
    // A timer may be a moment early, or of a call that another node has changed since.
    if (decision.ok && decision.steps.length === 0 && !timers.has(callKey(call))) watch(decision.call)
  }

  /** A timer may also be a moment early; that is found by the one who decides. */
  function isDue(call: Call, now: number): boolean {
    const deadline = deadlineOfCall(call)
    return deadline !== undefined && deadline <= now + earlyMs
  }

  /** Said once, however long the store is away. */
  function failed(error: unknown): void {
    const isAway = error instanceof StoreError
    if (isAway) uptime.doubt()
    if (isAway && isTold) return
    isTold ||= isAway
    onError(error)
  }

  async function sweep(): Promise<void> {
    const now = clock.now()
    await sessions.sweep(now)
    if (clock.jumped() !== 0) await followJump()
    noteOutage()
    const live = await store.liveCalls()
    const owing: (readonly [LiveCall, CallCommand])[] = []
    for (const call of live) {
      const command = owed(call, now)
      if (command !== undefined) owing.push([call, command])
    }
    const done = inBatches(owing, ([call, command]) => run(call, command))
    await Promise.allSettled([done])
    await onSweep(now, live)
    await done
    isTold = false
  }

  /** An outage is over: the lost clocks that it stopped run again, from then on [END3]. */
  function noteOutage(): void {
    const outage = uptime.outages().findLast(({ to }) => Number.isFinite(to))
    if (outage?.to === lastOutage?.to) return
    lastOutage = outage
    for (const { call } of [...timers.values()]) if (hasVacantPlace(call)) watch(call)
  }

  /** The wall clock jumped: what remained of every ring and every lost place still remains. */
  async function followJump(): Promise<void> {
    jumping = true
    try {
      const ms = Math.round(clock.jumped())
      clock.follow()
      const others = nodes.others()
      // All nodes go by one clock: each notices within a second, and one of them moves the deadlines.
      if (others.length > 0) await Bun.sleep(noticedMs)
      if (others.some((other) => other < nodes.self)) return await Bun.sleep(noticedMs)
      const live = await store.liveCalls()
      await inBatches(live, (call) => run(call, { type: 'shift', ms }))
    } finally {
      jumping = false
    }
  }

  /** What a call is owed that no timer, no close and no arrival brought about. */
  function owed(call: LiveCall, now: number): CallCommand | undefined {
    const deadline = deadlineOfCall(call)
    // Who answered for the call's last version has a timer for it: the others wait a little for that one.
    const patience = nodes.others().length > 0 && !timers.has(callKey(call)) ? patienceMs : 0
    if (deadline !== undefined && deadline + patience <= now) return { type: 'time' }
    const places = call.status === 'ringing' ? [call.callerPlace] : [call.callerPlace, call.calleePlace]
    for (const place of places) {
      const { sessionId, node } = place
      // Closes that could not be written while the store was away, and those that a dead node would have observed.
      if (place.state === 'held' && isUnheld(place, nodes, sessions)) return { type: 'lose', sessionId, node }
      const identity = place.state === 'vacant' ? sessions.heldHere(sessionId) : undefined
      // The others took this node for dead, and it was not.
      if (identity !== undefined)
        return { type: 'arrive', actor: { ...identity, ...place, displayName: '', node: nodes.self } }
    }
    return undefined
  }

  return {
    watch: (call) => watch(call),
    forget,
    start() {
      sweeper = setInterval(() => {
        if (sweeping) return
        sweeping = true
        sweep()
          .catch(failed)
          .finally(() => {
            sweeping = false
          })
      }, sweepIntervalMs)
    },
    stop() {
      clearInterval(sweeper)
      sweeper = undefined
      for (const { timer } of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}

function hasVacantPlace(call: Call): boolean {
  return call.callerPlace.state === 'vacant' || (isAnswered(call) && call.calleePlace.state === 'vacant')
}
