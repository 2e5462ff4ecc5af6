import type { Cancel } from '../ports/clock.ts'
import { every } from './alarms.ts'

/** Looks again and again, every `ms`, where the last look has ended; a failed look is reported, and made again. */
export interface Looking {
  /** The first look: rejects where that fails, and nothing is looked at then. */
  start(): Promise<void>
  stop(): void
}

/** `again`: how later looks are made, where that is another way than the first one. */
export function lookEvery(
  ms: number,
  look: () => Promise<void>,
  onError: (error: unknown) => void,
  again = look,
): Looking {
  let stop: Cancel = () => {}
  let isStopped = false
  let isLooking = false

  async function lookAgain(): Promise<void> {
    if (isLooking) return
    isLooking = true
    await again().catch(onError)
    isLooking = false
  }

  return {
    async start() {
      await look()
      if (!isStopped) stop = every(ms, () => void lookAgain())
    },
    stop() {
      isStopped = true
      stop()
    },
  }
}
