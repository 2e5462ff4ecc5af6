import type { LogFields, Logger, LogLevel } from './logger.ts'

type Level = Exclude<LogLevel, 'silent'>

/** Lines of one kind, so that no client can fill the disk with many of them. */
export interface BoundedLog {
  /** Whether the next line of this kind would be written. */
  hasRoom(message: string): boolean
  /** Fields that cost something are looked up where the line is written. */
  write(level: Level, fields: LogFields | (() => LogFields), message: string): void
}

export interface BoundedLogOptions {
  readonly logger: Logger
  /** Monotonic, ms. */
  readonly now: () => number
  /** Calls back later; what it gives ends that. */
  readonly later: (work: () => void, ms: number) => void
}

/** The number of lines with the same message in a window, and its length in ms; at its end one line counts the rest. */
export const boundedLines = 20
export const boundedMs = 10_000

export function createBoundedLog({ logger, now, later }: BoundedLogOptions): BoundedLog {
  const windows = new Map<string, { endsAt: number; count: number }>()

  function windowOf(message: string): { endsAt: number; count: number } {
    const known = windows.get(message)
    if (known !== undefined && now() < known.endsAt) return known
    const fresh = { endsAt: now() + boundedMs, count: 0 }
    windows.set(message, fresh)
    return fresh
  }

  return {
    hasRoom: (message) => windowOf(message).count < boundedLines,
    write(level, fields, message) {
      const window = windowOf(message)
      window.count++
      if (window.count <= boundedLines) return logger[level](typeof fields === 'function' ? fields() : fields, message)
      if (window.count > boundedLines + 1) return
      later(
        () => logger[level]({ count: window.count - boundedLines }, `${message}: and more of them`),
        window.endsAt - now(),
      )
    },
  }
}
