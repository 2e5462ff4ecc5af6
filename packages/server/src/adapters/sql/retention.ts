import type { Clock } from '../../ports/clock.ts'

/** Between two steps others write. All in ms. */
const pauseMs = 50
const intervalMs = 10 * 60_000
/** A start has other things to do first. */
const delayMs = 60_000

export interface Retention {
  /** Removes all calls that ended before an instant, in small steps; answers how many. */
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
  readonly onRemoved?: ((count: number) => void) | undefined
}

export interface RetentionOptions extends RetentionSettings {
  /** Removes some of the calls that ended before an instant, the oldest first; answers how many, 0 when none is left. */
  readonly remove: (before: number) => Promise<number>
  readonly clock: Pick<Clock, 'now'>
}

/** Removes calls that are older than anybody wants to keep them. Every node does it, at its own pace. */
export function createRetention(options: RetentionOptions): Retention {
  const { remove, clock, retentionMs, onError, onRemoved } = options
  let timer: ReturnType<typeof setTimeout> | undefined
  let stopped = false

  async function prune(before: number): Promise<number> {
    let removed = 0
    while (!stopped) {
      const count = await remove(before)
      removed += count
      if (count === 0) break
      await Bun.sleep(pauseMs)
    }
    return removed
  }

  async function turn(keptMs: number): Promise<void> {
    try {
      const count = await prune(clock.now() - keptMs)
      if (count > 0) onRemoved?.(count)
    } catch (error) {
      if (!stopped) onError?.(error)
    }
    if (!stopped) timer = setTimeout(turn, intervalMs, keptMs)
  }

  return {
    prune,
    start() {
      if (retentionMs !== undefined) timer = setTimeout(turn, options.retentionDelayMs ?? delayMs, retentionMs)
    },
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}
