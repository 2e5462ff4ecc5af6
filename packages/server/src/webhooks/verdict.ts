/** The course of a delivery: when it is attempted, and when again [HOOK3]. */
import type { Answer } from '../outgoing/post.ts'
import type { Claimed } from '../ports/webhooks.ts'
import { ringEndOf } from './wake-hook.ts'

const secondMs = 1_000
const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** How long after each attempt that failed the next one comes, the last one again and again [HOOK3]. In ms. */
export const backoffMs: readonly number[] = [
  5 * secondMs,
  30 * secondMs,
  2 * minuteMs,
  10 * minuteMs,
  hourMs,
  3 * hourMs,
  6 * hourMs,
  12 * hourMs,
  dayMs,
]
/** An attempt that would be later than this after the event is not made, unless somebody asks for it [HOOK3]. In ms. */
export const giveUpMs = 3 * dayMs
/** Of the time until the next attempt, so much more or less: what failed together does not come again together. */
const jitter = 0.2

/** `released`: it may not have been made at all, and counts as no attempt. `pending`: it is made again, `afterMs` from now. */
export type Verdict =
  | { readonly outcome: 'delivered' | 'released'; readonly afterMs: 0 }
  | { readonly outcome: 'pending'; readonly afterMs: number }
  | { readonly outcome: 'failed'; readonly afterMs: 0; readonly cause: string }

/** Why a delivery is not attempted any more; undefined: it is. */
export function tooLate(delivery: Claimed, at: number): 'the ring was over' | 'too old' | undefined {
  // Nobody failed: it makes way for what came after it in its call.
  if (at >= lastOf(delivery)) return 'the ring was over'
  // Nobody was there to make it in time, or its endpoint was disabled.
  if (at > delivery.createdAt + giveUpMs && !delivery.isAskedFor) return 'too old'
  return undefined
}

/** The consequence of an answer that came at `now`; `delayMs`: how long after it the next attempt would be. */
export function verdictOf(delivery: Claimed, answer: Answer, now: number, delayMs: number): Verdict {
  const status = answer.ok ? answer.status : null
  if (status !== null && status >= 200 && status < 300) return { outcome: 'delivered', afterMs: 0 }
  const giveUpAt = delivery.createdAt + giveUpMs
  // On a connection that was kept nobody may have been there any more: it goes at once, on a new one.
  const wasStale = !answer.ok && answer.wasStale === true
  // Then the one requested attempt may not have been made at all, and no other is due.
  if (wasStale && delivery.isAskedFor && now > giveUpAt) return { outcome: 'released', afterMs: 0 }
  const afterMs = wasStale ? 0 : delayMs
  // After the ring `call.wake` is not sent: then it has failed now.
  if (status !== 410 && now + afterMs <= Math.min(giveUpAt, lastOf(delivery))) return { outcome: 'pending', afterMs }
  const cause = answer.ok ? `status ${answer.status}` : (answer.cause ?? answer.error)
  return { outcome: 'failed', afterMs: 0, cause }
}

/** How long after an attempt that failed the next one comes, in ms; `attempts`: how many had failed before it. */
export function delayAfter(attempts: number, delays: readonly number[]): number {
  const delay = delays[Math.min(attempts, delays.length - 1)] ?? 0
  return Math.round(delay * (1 - jitter + 2 * jitter * Math.random()))
}

/** From this instant on it is of no use to anybody. */
const lastOf = ({ type, body }: Claimed) => (type === 'call.wake' ? ringEndOf(body) : Number.POSITIVE_INFINITY)
