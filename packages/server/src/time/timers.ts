import type { Timers } from '../ports/clock.ts'

/** The timers of this process. */
export function createSystemTimers(): Timers {
  return {
    monotonic: () => performance.now(),
    after(ms, what) {
      const timer = setTimeout(what, ms)
      timer.unref()
      return () => clearTimeout(timer)
    },
    every(ms, what) {
      const timer = setInterval(what, ms)
      timer.unref()
      return () => clearInterval(timer)
    },
    turn: (what) => void setImmediate(what),
    sleep: (ms) => Bun.sleep(ms),
  }
}
