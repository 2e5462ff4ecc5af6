import type { Report } from '../chaos/check/findings.ts'
import type { CallRow, Recording } from '../chaos/recording.ts'
import type { DecidingBackend } from './deciding-backend.ts'

/** Each call is what the backend said of its invite, or its caller gave it up before [HOOK5]. */
export function checkDecided({ calls, events }: Recording, backend: DecidingBackend, report: Report): void {
  const first = new Map(events.filter(({ version }) => version === 1).map((event) => [event.call_uuid, event.type]))
  for (const row of calls) {
    const text = problemOf(row, first.get(row.call_uuid) ?? '', backend)
    if (text !== undefined) report('effect', text, { call: row.call_uuid })
  }
}

function problemOf(row: CallRow, first: string, backend: DecidingBackend): string | undefined {
  const { call_uuid: call, caller, callee, end_reason: reason } = row
  // It was withdrawn.
  if (first === 'cancelled') return reason === 'caller_cancelled' ? undefined : `it was cancelled: ${reason}`
  const answer = backend.answerTo(call)
  const is = first === 'invited' ? 'rings' : `${first} (${reason})`
  const to = backend.redirectedTo(call)
  const may = {
    allow: ['rings'],
    late: ['rings', 'rejected (unavailable)'],
    refuse: ['rejected (closed)'],
    // A person who would call themselves gets no call.
    redirect: to === caller ? ['rejected (unavailable)'] : ['rings'],
    nothing: ['rejected (unavailable)'],
    nonsense: ['rejected (unavailable)'],
  }[answer]
  // An answer may come too late, or not at all, from a node that is in a bad way.
  if (!may.includes(is) && is !== 'rejected (unavailable)') return `the backend said ${answer}, and it ${is}`
  if (answer === 'redirect' && is === 'rings' && callee !== to) return `it rings at ${callee}, not at ${to}`
  return undefined
}
