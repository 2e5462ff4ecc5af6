import type { Clock } from '../../ports/clock.ts'
import { StoreError } from '../../ports/store-error.ts'

/** The shortest pause between two steps, so that others can write; a longer step is followed by a pause as long as itself. In ms. */
const pauseMs = 10
/** A step that takes longer is followed by a smaller one, in ms: others wait for the rows that it holds. */
const stepMs = 200
const intervalMs = 10 * 60_000
/** A failed round is repeated after this time, and a long one is logged this often. In ms. */
const minuteMs = 60_000
/** A start has other things to do first. */
const delayMs = 60_000
/** With more calls that cannot be removed, the fault is not theirs. */
const mostStuck = 3

export interface Retention {
  /**
   * Removes all calls that ended before an instant, in steps that are committed one by one; answers how many. A step that
   * fails is tried again with fewer calls, and a call that cannot be removed is left out. Rejects if that is true of several;
   * what went before stays removed.
   */
  prune(before: number): Promise<number>
  /** Only where calls are not kept for ever. */
  start(): void
  stop(): void
}

/** What the stores are told about it when they are opened. */
export interface RetentionSettings {
  /** How long calls are kept after their end; for ever where it is not given. */
  readonly retentionMs?: number | undefined
  /** How long after the start it begins. */
  readonly retentionDelayMs?: number | undefined
  /** Told what goes wrong while nobody waits for it. */
  readonly onError?: ((error: unknown) => void) | undefined
  /** Told how many calls were removed since the last time, also before `onError`. */
  readonly onRemoved?: ((count: number) => void) | undefined
}

export interface RetentionOptions extends RetentionSettings {
  /**
   * Removes at most `count` of the calls that ended before an instant, the oldest first, but for the first `past` of them;
   * answers how many, 0 when none is left.
   */
  readonly remove: (before: number, count: number, past: number) => Promise<number>
  /** The most calls of one step. */
  readonly most: number
  readonly clock: Pick<Clock, 'now'>
}

/** Removes calls that are older than anybody wants to keep them. Every node does it, at its own pace. */
export function createRetention(options: RetentionOptions): Retention {
  const { remove, most, clock, retentionMs, onError, onRemoved } = options
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false

  async function prune(before: number, onStep: (count: number) => void = () => {}): Promise<number> {
    let removed = 0
    let stuck = 0
    let failure: StoreError | undefined
    for (let size = most; !stopped; ) {
      const began = performance.now()
      try {
        const count = await remove(before, size, stuck)
        if (count === 0) break
        removed += count
        onStep(count)
        const tookMs = performance.now() - began
        size = tookMs > stepMs ? Math.max(1, size >> 1) : Math.min(most, size * 2)
        await Bun.sleep(Math.max(pauseMs, tookMs))
      } catch (error) {
        if (stopped || !(error instanceof StoreError) || stuck === mostStuck) throw error
        // Fewer calls at once may succeed where many took too long.
        if (size === 1) stuck++
        failure = error
        size = Math.ceil(size / 4)
      }
    }
    if (stuck > 0) throw failure
    return removed
  }

  async function turn(keptMs: number): Promise<void> {
    let unsaid = 0
    let saidAt = performance.now()
    let nextMs = intervalMs
    const say = () => {
      if (unsaid > 0) onRemoved?.(unsaid)
      unsaid = 0
      saidAt = performance.now()
    }
    try {
      await prune(clock.now() - keptMs, (count) => {
        unsaid += count
        if (performance.now() - saidAt > minuteMs) say()
      })
      say()
    } catch (error) {
      say()
      if (!stopped) onError?.(error)
      nextMs = minuteMs
    }
    if (!stopped) timer = setTimeout(turn, nextMs, keptMs)
  }

  return {
    prune: (before) => prune(before),
    start() {
      if (retentionMs !== undefined) timer = setTimeout(turn, options.retentionDelayMs ?? delayMs, retentionMs)
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
