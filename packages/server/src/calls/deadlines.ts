import { type Call, type CallDurations, type CallRef, nextDeadline, type Outage } from '../call/call.ts'
import { byClock, jumpedSince } from '../call/clock.ts'
import type { CallCommand, Decision } from '../call/command.ts'
import type { LiveCallReads } from '../ports/call-store.ts'
import type { Cancel, Timers } from '../ports/clock.ts'
import type { Nodes, Uptime } from '../ports/nodes.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { inBatches } from '../time/in-batches.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import { createDeadlineTimers } from './deadline-timers.ts'
import { createDueRings } from './due-rings.ts'
import { createRounds, type RoundsOptions } from './live-rounds.ts'

const sweepIntervalMs = 500

export interface DeadlinesOptions extends Pick<RoundsOptions, 'onPage' | 'onRound'> {
  readonly store: LiveCallReads
  readonly sessions: Pick<Sessions, 'heldHere' | 'sweep'>
  readonly nodes: Nodes
  readonly uptime: Uptime
  readonly clock: SteadyClock
  readonly durations: CallDurations
  /** Resolves when it is committed: a deadline does not wait for the delivery of another one. */
  readonly run: (ref: CallRef, command: CallCommand) => Promise<Decision>
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
  const { store, sessions, nodes, uptime, clock, run, onSweep, timers } = options
  const failures = createFailures(options)
  const background = createBackground(onSweep, failures.report)
  const jumps = createJumps(options)
  let stopSweeping: Cancel | undefined
  let sweeping = false
  let lastOutage: Outage | undefined
  const deadlineOf = (call: Call) =>
    nextDeadline(byClock(call, clock.written()), { ...options.durations, outages: uptime.outages() })
  const ownTimers = createDeadlineTimers({
    ...{ deadlineOf, run, clock, timers },
    onFailure: failures.report,
  })
  const { isWatched } = ownTimers
  const rounds = createRounds({ ...options, deadlineOf, isWatched })
  const lookAtDueRings = createDueRings({ store, nodes, run, sinceDeathMs: rounds.sinceDeathMs })

  async function sweep(): Promise<void> {
    await sessions.sweep(clock.unjumped())
    if (jumps.isBehind()) await jumps.follow()
    await noteOutage()
    const now = clock.now()
    background.start()
    const results = await Promise.allSettled([lookAtDueRings(now), rounds.look(now)])
    for (const result of results) if (result.status === 'rejected') throw result.reason
    if (!background.isBehind()) failures.over()
  }

  /** An outage is over: the lost clocks that it stopped run again, from then on [END3]. */
  async function noteOutage(): Promise<void> {
    const outage = uptime.outages().findLast(({ to }) => Number.isFinite(to))
    if (outage?.to === lastOutage?.to) return
    lastOutage = outage
    await ownTimers.watchVacantAgain()
  }

  function tick(): void {
    ownTimers.startWork()
    if (sweeping) return
    sweeping = true
    sweep()
      .catch(failures.report)
      .finally(() => {
        sweeping = false
      })
  }

  return {
    watch: ownTimers.watch,
    forget: ownTimers.forget,
    nodeDied: rounds.nodeDied,
    start() {
      ownTimers.start()
      stopSweeping = timers.every(sweepIntervalMs, tick)
    },
    stop() {
      stopSweeping?.()
      ownTimers.stop()
    },
  }
}

/** Reports an outage of the store once, until a sweep succeeds. */
function createFailures({ uptime, onError }: Pick<DeadlinesOptions, 'uptime' | 'onError'>) {
  let isReported = false
  return {
    report(error: unknown): void {
      const isAway = error instanceof StoreError
      if (isAway) uptime.doubt()
      if (isAway && isReported) return
      isReported ||= isAway
      onError(error)
    },
    over(): void {
      isReported = false
    },
  }
}

/** Work that no sweep waits for: once at a time. */
function createBackground(work: () => Promise<void>, onFailure: (error: unknown) => void) {
  let isGoingOn = false
  let isBehind = false
  return {
    /** Whether it failed the last time. */
    isBehind: () => isBehind,
    start(): void {
      if (isGoingOn) return
      isGoingOn = true
      work()
        .then(
          () => {
            isBehind = false
          },
          (error) => {
            isBehind = true
            onFailure(error)
          },
        )
        .finally(() => {
          isGoingOn = false
        })
    },
  }
}

/**
 * The wall clock jumped: what remained of every ring and every lost place still remains. Whoever reads a call knows that [END3].
 * One node writes the calls as they are by the new clock, so that rings are found by their time.
 */
function createJumps({ store, nodes, clock, run }: DeadlinesOptions) {
  let written = clock.written()

  return {
    isBehind: () => clock.jumped() !== 0 || clock.written() !== written,
    async follow(): Promise<void> {
      await clock.follow()
      const now = clock.written()
      if (!nodes.others().some((other) => other < nodes.self)) {
        for await (const page of store.livePages()) {
          const old = page.filter((call) => jumpedSince(call, now) !== 0)
          await inBatches(old, (call) => run(call, { type: 'shift', ms: 0 }))
        }
      }
      written = now
    },
  }
}
