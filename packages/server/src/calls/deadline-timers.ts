import { type Call, type CallRef, callKey, isAnswered } from '../call/call.ts'
import type { CallCommand, Decision } from '../call/command.ts'
import type { Cancel, Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import { inBatches } from '../time/in-batches.ts'
import type { SteadyClock } from '../time/steady-clock.ts'

export interface DeadlineTimersOptions {
  /** When time has something to do with a call next, in ms since the epoch. */
  readonly deadlineOf: (call: Call) => number | undefined
  readonly run: (ref: CallRef, command: CallCommand) => Promise<Decision>
  readonly clock: Pick<SteadyClock, 'now'>
  readonly onFailure: (error: unknown) => void
  readonly timers: Pick<Timers, 'after'>
}

/** A timer for the next deadline of each call that this node answers for. */
export interface DeadlineTimers {
  watch(call: Call): void
  forget(call: Call): void
  isWatched(call: Call): boolean
  /** Sets the timers of calls with a vacant place again: their lost clocks stood still. */
  watchVacantAgain(): Promise<void>
  /** Does what is due: what a store that was away has left, and what fired before the start. */
  startWork(): void
  start(): void
  stop(): void
}

/** A timer holds no more than this, in ms. */
const longestTimeoutMs = 2 ** 31 - 1
/** The time after which a deadline that fell into an outage is looked at again, in ms. */
const againMs = 500
/** A timer may fire this long before its time, in ms. */
const earlyMs = 5

export function createDeadlineTimers(options: DeadlineTimersOptions): DeadlineTimers {
  const { deadlineOf, run, clock, timers } = options
  const watched = new Map<string, { readonly call: Call; readonly cancel: Cancel }>()
  const due = createDueCalls(passTime, (key) => watched.has(key), options.onFailure)
  let isStopped = false

  function watch(call: Call, atLeastMs = 0): void {
    forget(call)
    const deadline = deadlineOf(call)
    if (deadline === undefined || isStopped) return
    const delay = Math.min(Math.max(atLeastMs, deadline - clock.now()), longestTimeoutMs)
    const key = callKey(call)
    const cancel = timers.after(delay, () => {
      watched.delete(key)
      due.add(key, call)
    })
    watched.set(key, { call, cancel })
  }

  function forget(call: Call): void {
    const key = callKey(call)
    watched.get(key)?.cancel()
    watched.delete(key)
    due.forget(key)
  }

  async function passTime(call: Call): Promise<void> {
    // In an outage it is not.
    if (!isDue(call, clock.now())) return watch(call, againMs)
    const decision = await run(call, { type: 'time' })
    // A timer may be a moment early, or of a call that another node has changed since.
    if (decision.ok && decision.steps.length === 0 && !watched.has(callKey(call))) watch(decision.call)
  }

  /** A timer may also be a moment early; that is found by the one who decides. */
  function isDue(call: Call, now: number): boolean {
    const deadline = deadlineOf(call)
    return deadline !== undefined && deadline <= now + earlyMs
  }

  return {
    watch: (call) => watch(call),
    forget,
    isWatched: (call) => watched.has(callKey(call)),
    async watchVacantAgain() {
      // A timer that fires before its turn finds that it is not due.
      await inBatches([...watched.keys()], (key) => {
        const call = watched.get(key)?.call
        if (call !== undefined && hasVacantPlace(call)) watch(call)
      })
    },
    startWork: due.startWork,
    start: due.start,
    stop() {
      due.stop()
      isStopped = true
      for (const { cancel } of watched.values()) cancel()
      watched.clear()
    },
  }
}

/** Calls whose timers fired, until something came of it: what a store that is away leaves is tried again at every sweep. */
function createDueCalls(
  passTime: (call: Call) => Promise<void>,
  isWatched: (key: string) => boolean,
  onFailure: (error: unknown) => void,
) {
  const due = new Map<string, Call>()
  let isWorking = false
  let isStarted = false

  function startWork(): void {
    if (isWorking || !isStarted) return
    isWorking = true
    workOffDue()
      .catch(onFailure)
      .finally(() => {
        isWorking = false
      })
  }

  async function workOffDue(): Promise<void> {
    while (due.size > 0 && isStarted) {
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
      if (error instanceof StoreError && !isWatched(key) && !due.has(key)) due.set(key, call)
      throw error
    }
  }

  return {
    /** Many may be due at once, as when a node died: they take their turns. */
    add(key: string, call: Call): void {
      due.set(key, call)
      startWork()
    },
    forget: (key: string) => void due.delete(key),
    startWork,
    start(): void {
      isStarted = true
    },
    stop(): void {
      isStarted = false
    },
  }
}

function hasVacantPlace(call: Call): boolean {
  return call.callerPlace.state === 'vacant' || (isAnswered(call) && call.calleePlace.state === 'vacant')
}
