import { callRow, type Draft, type DraftTrace, eventsOf, firstOf, replyTo, requestsOf } from './draft.ts'
import type { Plant } from './plant.ts'

/** The uuids of calls that were answered, in their order. */
const answered = (draft: Draft) => draft.calls.filter(({ accepted_at }) => accepted_at !== null)

/** What a second phone of somebody sees that takes a call, and nothing else. */
function taker(user: string, session: string, call: string, at: number): DraftTrace {
  const data = { session_id: session, epoch: 'e', recovered: false, active_calls: [] }
  const asked = { request_id: '0.1', data: { call_uuid: call } }
  return {
    user,
    entries: [
      { kind: 'open', at: at - 20, socket: 0, node: 0 },
      { kind: 'in', at: at - 10, socket: 0, frame: { event: 'auth.ok', data } },
      { kind: 'out', at: at - 1, socket: 0, frame: { event: 'call.take', n: 1, ...asked } },
      { kind: 'in', at, socket: 0, frame: { event: 'call.ack', ...asked } },
    ],
  }
}

/** Transfers, groups, and places that are taken: no recording has them, so what a plant needs of them it makes. */
export const plantsBeside: readonly Plant[] = [
  {
    name: 'a call that began as a transfer, and the first one knows nothing of it',
    kind: 'transfer',
    plant(draft) {
      const [first, next] = answered(draft)
      if (first === undefined || next === undefined) throw new Error('the recording has no two answered calls')
      next.transferred_from = first.call_uuid
      return { call: first.call_uuid }
    },
  },
  {
    name: 'a call that was transferred, and no other one goes on',
    kind: 'transfer',
    plant(draft) {
      const row = firstOf(answered(draft), 'answered call')
      row.end_reason = 'transferred'
      return { call: row.call_uuid }
    },
  },
  {
    name: 'a call to a group that somebody else answered',
    kind: 'group',
    plant(draft) {
      const row = firstOf(answered(draft), 'answered call')
      row.members = draft.traces.map(({ user }) => user).filter((user) => user !== row.callee)
      return { call: row.call_uuid }
    },
  },
  {
    name: 'a place that was taken, and its session was not told',
    kind: 'taken',
    plant(draft) {
      const accept = firstOf(
        requestsOf(draft, 'call.accept', 'accepted').toSorted((one, other) => other.at - one.at),
        'accept',
      )
      const call = accept.frame.data?.call_uuid ?? ''
      const { user, entries } = accept.trace
      const hello = entries
        .slice(0, accept.index)
        .findLast((entry) => entry.kind === 'in' && entry.frame.event === 'auth.ok')
      if (hello?.kind !== 'in') throw new Error('an accept before auth.ok')
      const row = callRow(draft, call)
      const step = firstOf(
        eventsOf(draft, call).filter(({ type }) => type === 'accepted'),
        'accepted',
      )
      step.by_session = hello.frame.data?.session_id ?? ''
      const at = (replyTo(accept)?.at ?? 0) + 1
      const version = ++row.version
      const by = { by_user: user, by_session: 'another' }
      draft.events.push({ call_uuid: call, version, type: 'place_taken', at: draft.header.startedAt + at, ...by })
      draft.tracesApart = [...(draft.tracesApart ?? []), taker(user, 'another', call, at)]
      return { call }
    },
  },
]
