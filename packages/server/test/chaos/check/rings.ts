import { isRelay } from '../recording.ts'
import { type CallFacts, type Facts, sideOf } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Reading, SeenPush, SeenState } from './reading.ts'
import { subjectOf } from './streams.ts'

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
      isPush: false,
    })),
  )
  const replied = requests.flatMap(({ replies }) =>
    replies.map((seen) => ({
      call: seen.frame.data?.call_uuid,
      status: seen.frame.data?.status,
      seen,
      isPush: false,
    })),
  )
  const pushed = stretches.flatMap((stretch) =>
    stretch.pushes.map((seen) => ({
      call: subjectOf(seen.frame),
      status: seen.frame.data?.status,
      seen,
      isPush: true,
    })),
  )
  const known = new Set<string>()
  const answered = new Set<string>()
  for (const { call, status, seen, isPush } of [...listed, ...replied, ...pushed].sort(byIndex)) {
    const fact = facts.get(call ?? '')
    if (call === undefined || fact === undefined) continue
    const side = sideOf(fact, user)
    if (status === 'accepted' || status === 'connected') answered.add(call)
    if (isPush) {
      const problem = problemOfPush(
        seen,
        side,
        known.has(call),
        answered.has(call),
        wasThere(states, seen, fact, startedAt),
      )
      if (problem !== undefined) report('order', `${seen.frame.event} ${problem}`, { user, call, at: seen.at })
    }
    known.add(call)
  }
}

function byIndex(a: { seen: SeenPush }, b: { seen: SeenPush }): number {
  return a.seen.index - b.seen.index
}

/** Whether somebody came before the call began, and stayed until this push. */
function wasThere(states: readonly SeenState[], { index }: SeenPush, { row }: CallFacts, startedAt: number): boolean {
  const came = states.findLast((state) => state.index < index)
  return came !== undefined && startedAt + came.at + clockSlackMs < row.started_at
}

function problemOfPush(
  { frame }: SeenPush,
  side: 'caller' | 'callee' | undefined,
  isKnown: boolean,
  isAnswered: boolean,
  wasIn: boolean,
): string | undefined {
  // A relay past the log finds its way without it.
  if (isRelay(frame) && frame.seq === undefined) return undefined
  if (side === 'caller') return isRelay(frame) && !isAnswered ? 'came before the answer' : undefined
  // Nobody is rung where two calls become one [XFER1].
  const isFirst = frame.event === 'call.ringing' || frame.event === 'call.transferring'
  if (isKnown || isFirst) return undefined
  // A client that comes back may hear only of the end, also if it resumes: the call rang at another socket of its device [WS4].
  return isRelay(frame) || wasIn ? 'came before the ring' : undefined
}
