/** Instants in lists: how long ago for a person, ISO 8601 for programs. */
import type { Command } from 'commander'
import type { Surroundings } from './command.ts'

const [secondMs, minuteMs, hourMs, dayMs] = [1_000, 60_000, 3_600_000, 86_400_000] as const
/** Older than this a date says more, in ms. */
const longAgoMs = 30 * dayMs

/** Adds --exact: in a terminal, instants are shown as they are elsewhere. */
export function withExact(command: Command): Command {
  return command.option('--exact', 'show instants in full (default: in a terminal, how long ago)')
}

/** "3 min ago" in a terminal, the instant itself elsewhere and with `isExact`. */
export function shownTime(
  { terminal, now }: Pick<Surroundings, 'terminal' | 'now'>,
  instant: string,
  isExact = false,
): string {
  const at = Date.parse(instant)
  return terminal === undefined || isExact || Number.isNaN(at) ? instant : relativeTime(at, now())
}

/** Both in ms since the epoch. */
export function relativeTime(at: number, now: number): string {
  const distance = Math.abs(now - at)
  if (distance >= longAgoMs) return new Date(at).toISOString().slice(0, 10)
  if (distance < secondMs) return 'just now'
  const text = spanOf(distance)
  return at > now ? `in ${text}` : `${text} ago`
}

function spanOf(ms: number): string {
  if (ms < minuteMs) return `${Math.floor(ms / secondMs)} s`
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`
  return ms < dayMs ? `${Math.floor(ms / hourMs)} h` : `${Math.floor(ms / dayMs)} d`
}
