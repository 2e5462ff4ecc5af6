import { type Call, type CallDurations, type CallRef, callKey, type LiveCall, nextDeadline } from './call/call.ts'
import type { CallCommand, Decision } from './call/decide.ts'
import { isUnheld } from './holders.ts'
import { type CallStore, type Nodes, type Sessions, StoreError } from './ports.ts'
import type { SteadyClock } from './steady-clock.ts'

/** setTimeout holds no more than this. */
const longestTimeoutMs = 2 ** 31 - 1
const sweepIntervalMs = 500
/** A process that did not get to its sweep for this long was away: stopped, swapped out, starved [END3]. */
const awayMs = 3_000
/** A jump of the nodes' common clock is noticed by all of them within this time, in ms. */
const noticedMs = 1_500
/** So much later than the node that has the timer another one looks after a deadline, in ms [RING1]. */
const patienceMs = 200

export interface DeadlinesOptions {
  readonly store: CallStore
  readonly sessions: Sessions
  readonly nodes: Nodes
  readonly clock: SteadyClock
  readonly durations: CallDurations
  /** Resolves when clients can come back: the sessions' store takes writes. */
  readonly pingSessions: () => Promise<void>
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
  const { store, sessions, nodes, clock, durations, pingSessions, run, onSweep, onError } = options
  /** Where nobody can come back, no lost place counts [END3]. */
  const withoutLosses = {
    ...durations,
    callerLostMs: Number.POSITIVE_INFINITY,
    peerLostMs: Number.POSITIVE_INFINITY,
  }
  const timers = new Map<string, ReturnType<typeof setTimeout>>()
  let sweeper: ReturnType<typeof setInterval> | undefined
  let sweeping = false
  let jumping = false
  let lastBeat = clock.monotonic()
  /** The service or its store was away; the lost clocks have to start again before any of them counts [END3]. */
  let away = false
  /** Since when the sessions' store is away, on the monotonic clock. */
  let closedSince: number | undefined

  function watch(call: Call): void {
    forget(call)
    const deadline = nextDeadline(call, durations)
    if (deadline === undefined || sweeper === undefined) return
    const delay = Math.min(Math.max(0, deadline - clock.now()), longestTimeoutMs)
    const key = callKey(call)
    timers.set(
      key,
      setTimeout(() => {
        timers.delete(key)
        fire(call)
      }, delay),
    )
  }

  function forget(call: Call): void {
    const key = callKey(call)
    clearTimeout(timers.get(key))
    timers.delete(key)
  }

  /** Timers that come due while nobody could look after them prove nothing; the sweep is next. */
  function isAway(): boolean {
    away ||= clock.monotonic() - lastBeat > awayMs
    return away
  }

  function fire(call: Call): void {
    if (jumping || isAway() || !isDue(call, clock.now())) return
    run(call, { type: 'time' })
      .then((decision) => {
        // A timer may be a moment early, or of a call that another node has changed since.
        if (decision.ok && decision.steps.length === 0 && !timers.has(callKey(call))) watch(decision.call)
      })
      .catch(failed)
  }

  /**
   * A timer may also be a moment early; that is found by the one who decides. The sessions' store may come back in the middle
   * of a sweep: until the lost clocks have started again, none of them counts.
   */
  function isDue(call: Call, now: number): boolean {
    if (closedSince === undefined && !away) return true
    const deadline = nextDeadline(call, withoutLosses)
    return deadline !== undefined && deadline <= now
  }

  /** The lost clocks stand still while nobody can come back, and start again in full when somebody can. */
  async function lookForSessions(): Promise<void> {
    try {
      await pingSessions()
      if (closedSince !== undefined && clock.monotonic() - closedSince > awayMs) away = true
      closedSince = undefined
    } catch {
      closedSince ??= clock.monotonic()
    }
  }

  /** Said once, however long the store is away. */
  function failed(error: unknown): void {
    if (away && error instanceof StoreError) return
    away ||= error instanceof StoreError
    onError(error)
  }

  async function sweep(): Promise<void> {
    if (clock.jumped() !== 0) await followJump()
    if (isAway()) await comeBack()
    lastBeat = clock.monotonic()
    const now = clock.now()
    const work: Promise<unknown>[] = []
    const live = await store.liveCalls()
    for (const call of live) {
      const command = owed(call, now)
      if (command !== undefined) work.push(run(call, command))
    }
    const results = await Promise.allSettled(work)
    await sessions.sweep(now)
    await onSweep(now, live)
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  /** The wall clock jumped: what remained of every ring and every lost place still remains. */
  async function followJump(): Promise<void> {
    jumping = true
    try {
      const ms = Math.round(clock.jumped())
      clock.follow()
      const others = nodes.others()
      // All nodes go by one clock: each notices within a second, and one of them moves the deadlines.
      if (others.length > 0) await letNotice()
      if (others.some((other) => other < nodes.self)) return void (await letNotice())
      const live = await store.liveCalls()
      await Promise.all(live.map((call) => run(call, { type: 'shift', ms })))
    } finally {
      jumping = false
    }
  }

  /** Who waits on purpose is not away. */
  async function letNotice(): Promise<void> {
    await Bun.sleep(noticedMs)
    lastBeat += noticedMs
  }

  /** Whatever was lost has its full time from now on: nobody could come back in between. */
  async function comeBack(): Promise<void> {
    await store.tryWrite()
    const live = await store.liveCalls()
    await Promise.all(live.map((call) => run(call, { type: 'away' })))
    away = false
  }

  /** What a call is owed that no timer, no close and no arrival brought about. */
  function owed(call: LiveCall, now: number): CallCommand | undefined {
    const deadline = nextDeadline(call, durations)
    // Who answered for the call's last version has a timer for it: the others wait a little for that one.
    const patience = nodes.others().length > 0 && !timers.has(callKey(call)) ? patienceMs : 0
    if (deadline !== undefined && deadline + patience <= now && isDue(call, now)) return { type: 'time' }
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
    watch,
    forget,
    start() {
      sweeper = setInterval(() => {
        void lookForSessions()
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
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}
