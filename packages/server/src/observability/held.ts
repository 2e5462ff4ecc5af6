/** Log lines that wait, so that a person who starts the service first reads where it is. */
import type { LogDestination } from './logger.ts'

export interface HeldLog {
  /** Writes what was held; from now on each line is written at once. */
  release(): void
  /** Forgets what was held. */
  drop(): void
}

/** Holds lines until `release`, and for `longestMs` at most. */
export function holdLines(destination: LogDestination, longestMs: number): LogDestination & HeldLog {
  let lines: string[] | undefined = []
  const patience = setTimeout(release, longestMs)
  patience.unref()
  function release(): void {
    clearTimeout(patience)
    const held = lines ?? []
    lines = undefined
    for (const line of held) destination.write(line)
  }
  return {
    release,
    drop() {
      if (lines !== undefined) lines = []
    },
    write(line) {
      if (lines === undefined) destination.write(line)
      else lines.push(line)
    },
  }
}
