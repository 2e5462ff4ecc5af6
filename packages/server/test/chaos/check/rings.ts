import { isRelay } from '../recording.ts'
import { type CallFacts, type Facts, sideOf } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Reading, SeenPush, Stretch } from './reading.ts'

/** A call begins with its ring, and what the callee sends comes after the answer [ORD2]. */
export function checkRings(readings: readonly Reading[], facts: Facts, startedAt: number, report: Report): void {
  for (const reading of readings) checkFirst(reading, facts, startedAt, report)
}

/** The first that somebody hears of a call. */
function checkFirst(
  { user, stretches, states, requests }: Reading,
  facts: Facts,
  startedAt: number,
  report: Report,
): void {
  const listed = states.flatMap((seen) =>
    (seen.frame.data?.active_calls ?? []).map(({ call_uuid: call, status }) => ({
      call,
      status,
      seen,
      stretch: undefined,
    })),
  )
  const replied = requests.flatMap(({ replies }) =>
    replies.map((seen) => ({
      call: seen.frame.data?.call_uuid,
      status: seen.frame.data?.status,
      seen,
      stretch: undefined,
    })),
  )
  const pushed = stretches.flatMap((stretch) =>
    stretch.pushes.map((seen) => ({
      call: seen.frame.data?.call_uuid,
      status: seen.frame.data?.status,
      seen,
      stretch,
    })),
  )
  const known = new Set<string>()
  const answered = new Set<string>()
  for (const { call, status, seen, stretch } of [...listed, ...replied, ...pushed].sort(byIndex)) {
    const fact = facts.get(call ?? '')
    if (call === undefined || fact === undefined) continue
    const side = sideOf(fact, user)
    if (status === 'accepted' || status === 'connected') answered.add(call)
    if (stretch !== undefined) {
      const problem = problemOfPush(seen, side, known.has(call), answered.has(call), began(stretch, fact, startedAt))
      if (problem !== undefined) report('order', `${seen.frame.event} ${problem}`, { user, call, at: seen.at })
    }
    known.add(call)
  }
}

function byIndex(a: { seen: SeenPush }, b: { seen: SeenPush }): number {
  return a.seen.index - b.seen.index
}

/** Whether a part of a session was there before the call was. */
function began({ from }: Stretch, { row }: CallFacts, startedAt: number): boolean {
  return startedAt + from + clockSlackMs < row.started_at
}

function problemOfPush(
  { frame }: SeenPush,
  side: 'caller' | 'callee' | undefined,
  isKnown: boolean,
  isAnswered: boolean,
  wasThere: boolean,
): string | undefined {
  // A relay past the log finds its way alone.
  if (isRelay(frame) && frame.seq === undefined) return undefined
  if (side === 'caller') return isRelay(frame) && !isAnswered ? 'came before the answer' : undefined
  if (isKnown || frame.event === 'call.ringing') return undefined
  // Whoever comes back may hear of the end alone [WS4].
  return isRelay(frame) || wasThere ? 'came before the ring' : undefined
}
