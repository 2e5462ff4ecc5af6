import { ageBounds, type CallAges } from './status.ts'

/** Counts live calls by status and age; `startedAt` in ms since the epoch. */
export function agesOf(
  calls: Iterable<{ readonly status: keyof CallAges; readonly startedAt: number }>,
  now: number,
): CallAges {
  const none = () => Array.from({ length: ageBounds.length + 1 }, () => 0)
  const ages = { ringing: none(), accepted: none(), connected: none() }
  for (const { status, startedAt } of calls) {
    const found = ageBounds.findIndex((bound) => now - startedAt < bound * 1_000)
    ages[status][found < 0 ? ageBounds.length : found]!++
  }
  return ages
}
