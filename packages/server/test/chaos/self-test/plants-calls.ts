import {
  answer,
  callOf,
  callRow,
  type Draft,
  type DraftFrame,
  eventsOf,
  firstOf,
  followHistory,
  isPush,
  replyTo,
  requestsOf,
  type Spot,
  spots,
  withoutEvents,
} from './draft.ts'
import type { Plant } from './plant.ts'

const finals: readonly string[] = ['call.ended', 'call.rejected', 'call.cancelled', 'call.missed']
const finalPush = (draft: Draft) =>
  firstOf(
    spots(draft, 'in', (spot) => isPush(spot) && finals.includes(spot.frame.event)),
    'end',
  )

/** The reply to the first request of that kind that was answered so. */
function replyOf(draft: Draft, event: string, status: string): Spot {
  const reply = replyTo(firstOf(requestsOf(draft, event, status), event))
  if (reply === undefined) throw new Error(`no reply to ${event}`)
  return reply
}

function changeData(spot: Spot, data: DraftFrame['data']): void {
  spot.frame.data = { ...spot.frame.data, ...data }
}

/** PostgreSQL has forgotten everything from that version on, and came to this end instead. */
function rewind(draft: Draft, call: string, from: number, end: { status: string; reason: string; at: number }): void {
  const row = callRow(draft, call)
  withoutEvents(draft, call, from)
  draft.events.push({ call_uuid: call, version: from, type: end.status, at: end.at, by_user: null })
  const types = eventsOf(draft, call).map(({ type }) => type)
  row.version = from
  row.status = end.status
  row.end_reason = end.reason
  row.ended_at = end.at
  if (!types.includes('accepted')) row.accepted_at = null
  if (!types.includes('connected')) row.connected_at = null
  followHistory(draft, call)
}

function versionOf(draft: Draft, call: string, type: string): number {
  return firstOf(
    eventsOf(draft, call).filter((event) => event.type === type),
    type,
  ).version
}

/** The first call that ended so. */
const callThat = (draft: Draft, status: string) =>
  firstOf(
    draft.calls.filter((row) => row.status === status),
    `call that ${status}`,
  )

export const plantsInCalls: readonly Plant[] = [
  {
    name: 'a second end in the database',
    kind: 'terminal',
    plant(draft) {
      const row = callThat(draft, 'ended')
      const last = eventsOf(draft, row.call_uuid).at(-1)!
      draft.events.push({ ...last, version: last.version + 1, type: 'missed', by_user: null })
      row.version++
      return { call: row.call_uuid }
    },
  },
  {
    name: 'a call that goes on for ever',
    kind: 'terminal',
    plant(draft) {
      const row = callThat(draft, 'missed')
      withoutEvents(draft, row.call_uuid, row.version)
      row.version--
      row.status = 'ringing'
      row.ended_at = null
      row.end_reason = null
      followHistory(draft, row.call_uuid)
      return { call: row.call_uuid }
    },
  },
  {
    name: 'a call that was missed too early',
    kind: 'terminal',
    plant(draft) {
      const row = callThat(draft, 'missed')
      row.ring_expires_at = (row.ended_at ?? 0) + 1_000
      return { call: row.call_uuid }
    },
  },
  {
    name: 'a version that is not there',
    kind: 'versions',
    plant(draft) {
      const { call_uuid: call } = callThat(draft, 'ended')
      draft.events = draft.events.filter(({ call_uuid, version }) => call_uuid !== call || version !== 2)
      return { call }
    },
  },
  {
    name: 'an acknowledged invite that is not there',
    kind: 'acknowledged',
    plant(draft) {
      const call = callOf(replyOf(draft, 'call.invite', 'ringing'))
      draft.calls = draft.calls.filter(({ call_uuid }) => call_uuid !== call)
      withoutEvents(draft, call, 0)
      followHistory(draft, call)
      return { call }
    },
  },
  {
    name: 'an acknowledged accept that is not there',
    kind: 'acknowledged',
    plant(draft) {
      const reply = replyOf(draft, 'call.accept', 'accepted')
      const call = callOf(reply)
      const row = callRow(draft, call)
      const end = { status: 'missed', reason: 'no_answer', at: Math.max(row.ring_expires_at, row.ended_at ?? 0) }
      rewind(draft, call, versionOf(draft, call, 'accepted'), end)
      return { call }
    },
  },
  {
    name: 'an acknowledged call.connected that is not there',
    kind: 'acknowledged',
    plant(draft) {
      const call = callOf(replyOf(draft, 'call.connected', 'connected'))
      const end = { status: 'ended', reason: 'peer_lost', at: callRow(draft, call).ended_at ?? 0 }
      rewind(draft, call, versionOf(draft, call, 'connected'), end)
      return { call }
    },
  },
  {
    name: 'an acknowledged end that is not there: the call ended later by itself',
    kind: 'acknowledged',
    plant(draft) {
      const reply = replyOf(draft, 'call.end', 'ended')
      const call = callOf(reply)
      const end = { status: 'ended', reason: 'peer_lost', at: (callRow(draft, call).ended_at ?? 0) + 3_000 }
      rewind(draft, call, versionOf(draft, call, 'ended'), end)
      return { call, user: reply.trace.user }
    },
  },
  {
    name: 'an accept that nobody asked for',
    kind: 'effect',
    plant(draft) {
      const call = callOf(replyOf(draft, 'call.accept', 'accepted'))
      for (const { frame } of spots(draft, 'out', ({ frame }) => frame.event === 'call.accept')) {
        if (frame.data?.call_uuid === call) frame.event = 'call.alerting'
      }
      return { call }
    },
  },
  {
    name: 'an accept that was refused, and done',
    kind: 'effect',
    plant(draft) {
      const reply = replyOf(draft, 'call.accept', 'accepted')
      const call = callOf(reply)
      answer(reply, { event: 'call.error', error: { code: 'CALL_INVALID_STATE', status: 'ringing' } })
      return { call }
    },
  },
  ...(
    ['CALL_NOT_FOUND', 'CALL_NOT_PARTICIPANT', 'CALL_ALREADY_ANSWERED', 'INTERNAL_ERROR', 'INVALID_PAYLOAD'] as const
  ).map(
    (code): Plant => ({
      name: `${code} for nothing`,
      kind: 'refusal',
      plant(draft) {
        const reply = replyOf(draft, 'call.connected', 'connected')
        const call = callOf(reply)
        answer(reply, { event: 'call.error', error: { code } })
        return { call, user: reply.trace.user }
      },
    }),
  ),
  {
    name: 'CALL_INVALID_STATE with a status that never was',
    kind: 'refusal',
    plant(draft) {
      const reply = replyOf(draft, 'call.connected', 'connected')
      const call = callOf(reply)
      answer(reply, { event: 'call.error', error: { code: 'CALL_INVALID_STATE', status: 'missed' } })
      return { call }
    },
  },
  {
    name: 'a second end, told to one of the two',
    kind: 'disagrees',
    plant(draft) {
      const spot = finalPush(draft)
      const missed = spot.frame.event === 'call.missed'
      spot.frame.event = missed ? 'call.cancelled' : 'call.missed'
      changeData(spot, { status: missed ? 'cancelled' : 'missed' })
      return { call: callOf(spot), user: spot.trace.user }
    },
  },
  {
    name: 'another reason, told to one of the two',
    kind: 'disagrees',
    plant(draft) {
      const spot = finalPush(draft)
      changeData(spot, { reason: 'because' })
      return { call: callOf(spot), user: spot.trace.user }
    },
  },
  {
    name: 'another instant of the end, told to one of the two',
    kind: 'disagrees',
    plant(draft) {
      const spot = finalPush(draft)
      changeData(spot, { ended_at: new Date(0).toISOString() })
      return { call: callOf(spot), user: spot.trace.user }
    },
  },
  {
    name: 'an end that was acknowledged as another one',
    kind: 'disagrees',
    plant(draft) {
      const reply = replyOf(draft, 'call.end', 'ended')
      changeData(reply, { status: 'cancelled' })
      return { call: callOf(reply), user: reply.trace.user }
    },
  },
  {
    name: 'a snapshot that is not so',
    kind: 'disagrees',
    plant(draft) {
      const { call_uuid: call, caller } = callThat(draft, 'missed')
      const lists = { call_uuid: call, status: 'accepted', version: 1, direction: 'outgoing', holds_place: true }
      const hello = firstOf(
        spots(draft, 'in', ({ trace, frame }) => trace.user === caller && frame.event === 'auth.ok'),
        'auth.ok',
      )
      changeData(hello, { active_calls: [lists] })
      return { call, user: caller }
    },
  },
  ...(['status', 'ended_at', 'end_reason', 'direction'] as const).map(
    (field): Plant => ({
      name: `a history with another ${field}`,
      kind: 'history',
      plant(draft) {
        const history = firstOf(draft.histories, 'history')
        const record = firstOf(
          history.records.filter(({ status }) => status === 'ended'),
          'call that ended',
        )
        Object.assign(record, {
          [field]: { status: 'missed', ended_at: null, end_reason: 'x', direction: 'up' }[field],
        })
        return { call: record.call_uuid, user: history.user }
      },
    }),
  ),
  {
    name: 'a history without one of its calls',
    kind: 'history',
    plant(draft) {
      const history = firstOf(draft.histories, 'history')
      const [record] = history.records.splice(1, 1)
      return { call: record?.call_uuid ?? '', user: history.user }
    },
  },
  {
    name: 'a history that has a call twice',
    kind: 'history',
    plant(draft) {
      const history = firstOf(draft.histories, 'history')
      history.records.push(structuredClone(history.records[0]!))
      return { call: history.records[0]!.call_uuid, user: history.user }
    },
  },
  {
    name: 'a history that is out of order',
    kind: 'history',
    plant(draft) {
      const history = firstOf(draft.histories, 'history')
      history.records.reverse()
      return { user: history.user }
    },
  },
  {
    name: 'a node that ended by itself',
    kind: 'crash',
    plant(draft) {
      draft.header.crashes.push({ node: 0, at: 1, code: 1, log: '' })
      return {}
    },
  },
  {
    name: 'a node that logged a bug',
    kind: 'bug',
    plant(draft) {
      draft.header.bugs = [{ node: 0, at: 1, line: '{}' }]
      return {}
    },
  },
  {
    name: 'somebody who gets no answer',
    kind: 'stuck',
    plant(draft) {
      draft.header.stuck.push('user-1 gets no answer')
      return {}
    },
  },
]
