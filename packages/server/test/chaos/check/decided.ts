import { decisionOn, redirectedTo } from '../decisions.ts'
import { type CallRow, type Recording, userNames } from '../recording.ts'
import type { Report } from './findings.ts'

/** Each call is what the backend said of its invite, or its caller gave it up before [HOOK5]. */
export function checkDecided({ header, calls, events }: Recording, report: Report): void {
  const users = userNames(header.users)
  const first = new Map(events.filter(({ version }) => version === 1).map((event) => [event.call_uuid, event.type]))
  for (const row of calls) {
    const text = problemOf(row, first.get(row.call_uuid) ?? '', users)
    if (text !== undefined) report('effect', text, { call: row.call_uuid })
  }
}

function problemOf(row: CallRow, first: string, users: readonly string[]): string | undefined {
  const { call_uuid: call, caller, callee, end_reason: reason } = row
  // It was withdrawn.
  if (first === 'cancelled') return reason === 'caller_cancelled' ? undefined : `it was cancelled: ${reason}`
  const decision = decisionOn(call)
  // Two calls became one: nobody is rung, and nobody can be redirected [XFER1].
  const isJoined = first === 'accepted'
  const is = first === 'invited' || isJoined ? 'rings' : `${first} (${reason})`
  const to = redirectedTo(call, users)
  const may = {
    allow: ['rings'],
    late: ['rings', 'rejected (unavailable)'],
    refuse: ['rejected (closed)'],
    // A person who would call themselves gets no call.
    redirect: to === caller || isJoined ? ['rejected (unavailable)'] : ['rings'],
    nothing: ['rejected (unavailable)'],
    nonsense: ['rejected (unavailable)'],
  }[decision]
  // An answer may come too late, or not at all, from a node that is in a bad way.
  if (!may.includes(is) && is !== 'rejected (unavailable)') return `the backend said ${decision}, and it ${is}`
  if (decision === 'redirect' && is === 'rings' && callee !== to) return `it rings at ${callee}, not at ${to}`
  return undefined
}
