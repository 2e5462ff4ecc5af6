import type { Timers } from '../ports/clock.ts'
import { every } from './alarms.ts'

/** The timers of this process. */
export function createSystemTimers(): Timers {
  return {
    monotonic: () => performance.now(),
    after(ms, what) {
      const timer = setTimeout(what, ms)
      timer.unref()
      return () => clearTimeout(timer)
    },
    every,
    turn: (what) => void setImmediate(what),
    sleep: (ms) => Bun.sleep(ms),
  }
}
