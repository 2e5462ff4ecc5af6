import {
  type Call,
  type CallDurations,
  type CallRef,
  callKey,
  isAnswered,
  type LiveCall,
  nextDeadline,
  type Outage,
} from '../call/call.ts'
import type { CallCommand, Decision } from '../call/decide.ts'
import { type LiveCallReads, pageSize } from '../ports/call-store.ts'
import type { Cancel, Timers } from '../ports/clock.ts'
import type { Nodes, Uptime } from '../ports/nodes.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { inBatches } from '../time/in-batches.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import { isShareOf, isUnheld } from './holders.ts'

/** A timer holds no more than this, in ms. */
const longestTimeoutMs = 2 ** 31 - 1
const sweepIntervalMs = 500
/** What was due in an outage is looked at again so much later, in ms. */
const againMs = 500
/** A jump of the nodes' common clock is noticed by all of them within this time, in ms. */
const noticedMs = 1_500
/** So much later than the node that has the timer another one looks after a deadline, in ms [RING1]. */
const patienceMs = 200
/** Others do the share of a node that has not done it by then, in ms. */
const stepInMs = 4_000
/** Rings that were over for longer at the last look are found with the other live calls, in ms. */
const ringWindowMs = 10_000
/** A timer may fire so much before its time, in ms. */
const earlyMs = 5

export interface DeadlinesOptions {
  readonly store: LiveCallReads
  readonly sessions: Pick<Sessions, 'heldHere' | 'sweep'>
  readonly nodes: Nodes
  readonly uptime: Uptime
  readonly clock: SteadyClock
  readonly durations: CallDurations
  /** Resolves when it is committed: a deadline does not wait for who is told of another one. */
  readonly run: (ref: CallRef, command: CallCommand) => Promise<Decision>
  /** More that is done with live calls at every look at them; `isAfterDeath`: the first one since a node died. */
  readonly onPage: (live: readonly LiveCall[], isAfterDeath: boolean) => void
  /** All live calls were looked at, page by page: these. */
  readonly onRound: (now: number, live: ReadonlySet<string>) => void
  /** More that is done at every sweep, and that no sweep waits for. */
  readonly onSweep: () => Promise<void>
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

export interface Deadlines {
  /** Watches a call's next deadline: a local timer makes it prompt. */
  watch(call: Call): void
  /** The call ended elsewhere. */
  forget(call: Call): void
  /** A node died: its calls are looked at sooner. */
  nodeDied(): void
  start(): void
  stop(): void
}

/**
 * Time's part in the calls [RING1, END3]. A local timer a call makes it prompt, a sweep every 500 ms makes it sure, the
 * version guard makes it once.
 */
export function createDeadlines(options: DeadlinesOptions): Deadlines {
  const { store, sessions, nodes, uptime, clock, run, onPage, onRound, onSweep, onError, timers } = options
  const watched = new Map<string, { readonly call: Call; readonly cancel: Cancel }>()
  /** Calls whose timers fired, until something came of it: what a store that is away leaves is tried again at every sweep. */
  const due = new Map<string, Call>()
  let isWorking = false
  let stopSweeping: Cancel | undefined
  let sweeping = false
  /** What `onSweep` began is not over; and whether it failed the last time. */
  let isGoingOn = false
  let isBehind = false
  let jumping = false
  /** What fails is said once, until a sweep succeeds. */
  let isTold = false
  let lastOutage: Outage | undefined
  /** The round over all live calls that is under way, a page at every sweep, and what it has found. */
  let pages: AsyncIterator<readonly LiveCall[]> | undefined
  let found = new Set<string>()
  /** A node died, and nobody has made up for it yet; and when the last one did, on the monotonic clock. */
  let isUrgent = false
  /** The round under way is the first one since then. */
  let isAfterDeath = false
  let diedAt = Number.NEGATIVE_INFINITY
  /** When rings that are due were looked at last, and all of them were run; a start looks at all that there are. */
  let ringsSeenAt = 0
  let isStopped = false

  function deadlineOfCall(call: Call): number | undefined {
    return nextDeadline(call, { ...options.durations, outages: uptime.outages() })
  }

  function watch(call: Call, atLeastMs = 0): void {
    forget(call)
    const deadline = deadlineOfCall(call)
    if (deadline === undefined || isStopped) return
    const delay = Math.min(Math.max(atLeastMs, deadline - clock.now()), longestTimeoutMs)
    const key = callKey(call)
    const cancel = timers.after(delay, () => {
      watched.delete(key)
      fire(key, call)
    })
    watched.set(key, { call, cancel })
  }

  function forget(call: Call): void {
    const key = callKey(call)
    watched.get(key)?.cancel()
    watched.delete(key)
    due.delete(key)
  }

  /** Many may be due at once, as when a node died: they take their turns. */
  function fire(key: string, call: Call): void {
    due.set(key, call)
    startWork()
  }

  function startWork(): void {
    if (isWorking || stopSweeping === undefined) return
    isWorking = true
    workOffDue()
      .catch(failed)
      .finally(() => {
        isWorking = false
      })
  }

  async function workOffDue(): Promise<void> {
    while (due.size > 0 && stopSweeping !== undefined) {
      await inBatches([...due], workOff)
    }
  }

  async function workOff([key, call]: readonly [string, Call]): Promise<void> {
    // It changed, or ended elsewhere, before its turn came.
    if (due.get(key) !== call) return
    due.delete(key)
    try {
      await passTime(call)
    } catch (error) {
      if (error instanceof StoreError && !watched.has(key) && !due.has(key)) due.set(key, call)
      throw error
    }
  }

  async function passTime(call: Call): Promise<void> {
    // In an outage, or by a clock that jumped, it is not.
    if (jumping || !isDue(call, clock.now())) return watch(call, againMs)
    const decision = await run(call, { type: 'time' })
    // A timer may be a moment early, or of a call that another node has changed since.
    if (decision.ok && decision.steps.length === 0 && !watched.has(callKey(call))) watch(decision.call)
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
    await sessions.sweep(clock.now())
    if (clock.jumped() !== 0) await followJump()
    await noteOutage()
    const now = clock.now()
    goOn()
    const results = await Promise.allSettled([lookAtDueRings(now), lookAtPages(now)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    if (!isBehind) isTold = false
  }

  function goOn(): void {
    if (isGoingOn) return
    isGoingOn = true
    onSweep()
      .then(
        () => {
          isBehind = false
        },
        (error) => {
          isBehind = true
          failed(error)
        },
      )
      .finally(() => {
        isGoingOn = false
      })
  }

  /**
   * Rings end on time, also those of a node that has just died: they are found by their time. After an outage those that ran
   * out in it are among them [RING1].
   */
  async function lookAtDueRings(now: number): Promise<void> {
    if (nodes.others().length === 0 && timers.monotonic() - diedAt > stepInMs) return
    const from = Math.min(ringsSeenAt, now) - ringWindowMs
    ringsSeenAt = Math.min(ringsSeenAt, now)
    const due = await store.dueRings(from, now - patienceMs, pageSize)
    await inBatches(due, (call) => run(call, { type: 'time' }))
    // A full page leaves more for the next look.
    if (due.length < pageSize) ringsSeenAt = now
  }

  /** One page at a time; where a node died all of them, now and for as long as others may have left their share. */
  async function lookAtPages(now: number): Promise<void> {
    const isFirst = isUrgent
    if (isFirst) {
      pages = undefined
      isAfterDeath = true
    }
    isUrgent = false
    try {
      do await lookAtPage(now)
      while (pages !== undefined && timers.monotonic() - diedAt < 2 * stepInMs)
    } catch (error) {
      pages = undefined
      isUrgent ||= isFirst
      throw error
    }
  }

  async function lookAtPage(now: number): Promise<void> {
    if (pages === undefined) found = new Set()
    pages ??= store.livePages()
    const { value: page, done } = await pages.next()
    if (done === true) {
      pages = undefined
      isAfterDeath = false
      onRound(now, found)
      return
    }
    for (const call of page) found.add(callKey(call))
    onPage(page, isAfterDeath)
    const owing = page.flatMap((call) => {
      const command = owed(call, now)
      return command === undefined ? [] : [[call, command] as const]
    })
    const alive = await notDead(owing.flatMap(([, command]) => (command.type === 'lose' ? [command.node] : [])))
    await inBatches(owing, async ([call, command]) => {
      if (command.type !== 'lose' || !alive.has(command.node)) await run(call, command)
    })
    // A last page that is not full ends the round in the same sweep.
    if (page.length < pageSize) await lookAtPage(now)
  }

  /** Those of other nodes that are not dead after all. */
  async function notDead(names: readonly string[]): Promise<ReadonlySet<string>> {
    const others = [...new Set(names)].filter((name) => name !== nodes.self)
    const areDead = await Promise.all(others.map((name) => nodes.isStillDead(name)))
    return new Set(others.filter((_, i) => !areDead[i]))
  }

  /** An outage is over: the lost clocks that it stopped run again, from then on [END3]. */
  async function noteOutage(): Promise<void> {
    const outage = uptime.outages().findLast(({ to }) => Number.isFinite(to))
    if (outage?.to === lastOutage?.to) return
    lastOutage = outage
    // A timer that fires before its turn finds that it is not due.
    await inBatches([...watched.keys()], (key) => {
      const call = watched.get(key)?.call
      if (call !== undefined && hasVacantPlace(call)) watch(call)
    })
  }

  /** The wall clock jumped: what remained of every ring and every lost place still remains. */
  async function followJump(): Promise<void> {
    jumping = true
    try {
      const ms = Math.round(clock.jumped())
      clock.follow()
      const others = nodes.others()
      // All nodes go by one clock: each notices within a second, and one of them moves the deadlines.
      if (others.length > 0) await timers.sleep(noticedMs)
      if (others.some((other) => other < nodes.self)) return await timers.sleep(noticedMs)
      for await (const page of store.livePages()) await inBatches(page, (call) => run(call, { type: 'shift', ms }))
    } finally {
      jumping = false
    }
  }

  /** What a call is owed that no timer, no close and no arrival brought about. */
  function owed(call: LiveCall, now: number): CallCommand | undefined {
    const deadline = deadlineOfCall(call)
    // Who answered for the call's last version has a timer for it: the others wait a little for that one.
    const patience = nodes.others().length > 0 && !watched.has(callKey(call)) ? patienceMs : 0
    if (deadline !== undefined && deadline + patience <= now) return { type: 'time' }
    const places = call.status === 'ringing' ? [call.callerPlace] : [call.callerPlace, call.calleePlace]
    for (const place of places) {
      const { sessionId, node } = place
      // Closes that could not be written while the store was away, and those that a dead node would have observed.
      if (place.state === 'held' && isUnheld(place, nodes, sessions) && isOwnToLose(call, node))
        return { type: 'lose', sessionId, node }
      const identity = place.state === 'vacant' ? sessions.heldHere(sessionId) : undefined
      // The others took this node for dead, and it was not.
      if (identity !== undefined)
        return { type: 'arrive', actor: { ...identity, ...place, displayName: '', node: nodes.self } }
    }
    return undefined
  }

  /** What a dead node left is shared; a share that is not done after a while is anybody's. */
  function isOwnToLose(call: LiveCall, node: string): boolean {
    return node === nodes.self || isShareOf(call, nodes) || timers.monotonic() - diedAt > stepInMs
  }

  return {
    watch: (call) => watch(call),
    forget,
    nodeDied() {
      isUrgent = true
      diedAt = timers.monotonic()
    },
    start() {
      stopSweeping = timers.every(sweepIntervalMs, () => {
        startWork()
        if (sweeping) return
        sweeping = true
        sweep()
          .catch(failed)
          .finally(() => {
            sweeping = false
          })
      })
    },
    stop() {
      stopSweeping?.()
      stopSweeping = undefined
      isStopped = true
      for (const { cancel } of watched.values()) cancel()
      watched.clear()
    },
  }
}

function hasVacantPlace(call: Call): boolean {
  return call.callerPlace.state === 'vacant' || (isAnswered(call) && call.calleePlace.state === 'vacant')
}
