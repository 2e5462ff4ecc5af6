import { availableParallelism, loadavg } from 'node:os'

/** How many processes want to run for each core; 1 where a core is free. */
export function busyness(): number {
  return Math.max(1, (loadavg()[0] ?? 0) / availableParallelism())
}

/** Between two looks at the clock, in ms. */
const tickMs = 100
/** A timer that is late by more says that this process stood still, in ms. */
const noticedMs = 300
/** Stalls are remembered for this time: a measurement is compared with its bound soon after it was made. In ms. */
const rememberedMs = 120_000

/** Answers for how long this process has stood still in the last minutes, in ms. */
function watchStalls(): () => number {
  let stalls: readonly { readonly at: number; readonly ms: number }[] = []
  let last = performance.now()
  const look = () => {
    const now = performance.now()
    const lateMs = now - last - tickMs
    last = now
    const remembered = stalls.filter(({ at }) => now - at < rememberedMs)
    stalls = lateMs > noticedMs ? [...remembered, { at: now, ms: lateMs }] : remembered
  }
  setInterval(look, tickMs).unref()
  return () => {
    look()
    return stalls.reduce((sum, { ms }) => sum + ms, 0)
  }
}

// From the start of a test's process on: a stall can only be measured from before it.
const stalledMs = watchStalls()

/**
 * A bound for something that has to be soon, in whole ms. It is as given where a core is free. If more processes want to
 * run than there are cores, it is as many times longer: a process that waits for a core waits longer, and that is
 * nobody's fault. And it is longer by what this process stood still, as it does where the machine does. So ask for it
 * after the wait.
 */
export function soon(ms: number): number {
  return Math.ceil(ms * busyness() + stalledMs())
}

/**
 * Calls `late` when `soon(ms)` is over, as it is by then; the answer takes that back. For a wait that something else ends: `until`
 * has this bound by itself.
 */
export function overdue(ms: number, late: () => void): () => void {
  const begin = performance.now()
  const look = () => {
    const leftMs = begin + soon(ms) - performance.now()
    if (leftMs > 0) timer = setTimeout(look, leftMs)
    else late()
  }
  let timer = setTimeout(look, ms)
  return () => clearTimeout(timer)
}

/**
 * Runs what comes out as it should only if the service is in time by a bound of its own. If it fails and this process stood
 * still meanwhile, as it does where the machine does, it runs once more: so `work` begins anew each time. Three times at most.
 */
export async function inTime<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const before = stalledMs()
    try {
      return await work()
    } catch (error) {
      if (tries === 3 || stalledMs() <= before) throw error
    }
  }
}

/** Between two looks, in ms: close together at first, and rarer for what takes its time. */
const firstPauseMs = 2
const longestPauseMs = 50

/**
 * Resolves when something is so that nobody tells of. The time in ms is a bound for failures, `soon()` of it, never a
 * pace: if something announces it (a message, a line of a log), await that. A failure says `what` was awaited; a function
 * gives it then, and can say how far it came.
 */
export async function until(what: string | (() => string), isSo: () => unknown, ms = 45_000): Promise<void> {
  const begin = performance.now()
  for (let pauseMs = firstPauseMs; !(await isSo()); pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
    if (performance.now() - begin > soon(ms)) {
      throw new Error(`waited ${ms} ms until ${typeof what === 'string' ? what : what()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
