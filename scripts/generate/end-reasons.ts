/** docs/generated/end-reasons.md: the reasons for which calls end, and what the service sends. */
import { type EndReasonDefinition, endReasons } from '@ringwire/protocol/end-reasons'
import {
  actorOf,
  answeredCall,
  bobOne,
  carol,
  durations,
  ringingCall,
  uuidOf,
} from '../../packages/server/src/call/call.fixture.ts'
import type { RingingCall } from '../../packages/server/src/call/call.ts'
import type { CallCommand, Decision } from '../../packages/server/src/call/command.ts'
import { decide } from '../../packages/server/src/call/decide.ts'
import type { Notice, Step } from '../../packages/server/src/call/effects.ts'
import { decideLinked } from '../../packages/server/src/call/linked.ts'
import { leftNotice } from '../../packages/server/src/delivery/notices.ts'
import { inviteRows } from './call-invites.ts'
import { liveCalls, requestRows, serviceRows } from './call-situations.ts'
import { noticeText } from './call-states.ts'
import { code, page, table } from './tables.ts'

/** The steps of the tables of call-states.md, but for ends whose reason a client gave. */
export function decidedSteps(): Step[] {
  const live = Object.values(liveCalls()).flatMap((call) => [...requestRows(call), ...serviceRows(call)])
  const decided = live.filter(({ request, before }) => before.status === 'ringing' || !request.includes('reason busy'))
  return [
    ...inviteRows().map(({ decision }) => decision),
    ...decided.map(({ decision }) => decision),
    ...ofGroups(),
    ofTake(),
    ...ofTransfers(),
  ].flatMap(({ steps }) => steps)
}

/** Of a call to a group the only member declines, is no member any more, or lets the turn pass [GROUP1]. */
function ofGroups(): Decision[] {
  const { userId } = bobOne.participant
  const ringing: RingingCall = {
    ...ringingCall(),
    callee: { userId: '', role: bobOne.participant.role, displayName: null },
    group: { name: 'support', members: [userId], declined: [] },
  }
  const commands: CallCommand[] = [
    { type: 'reject', actor: bobOne, reason: null, rung: [] },
    { type: 'leave', userIds: [userId] },
  ]
  return [
    ...commands.map((command) => decide(ringing, command, ringing.startedAt, durations)),
    decide(inTurn(ringing), { type: 'time' }, ringing.startedAt + turnMs, durations),
  ]
}

const turnMs = 5_000

/** The same where the members ring one after another, and it is the first one's turn. */
function inTurn({ group, ...call }: RingingCall): RingingCall {
  if (group === undefined) return call
  const [member = null] = group.members
  const until = call.startedAt + turnMs
  const turns = { member, until, memberRingMs: turnMs, next: 1, count: 1, hasRung: true, rang: group.members }
  return { ...call, group: { ...group, turns } }
}

/** Another session of the callee takes the call [TAKE1]. */
function ofTake(): Decision {
  const call = answeredCall()
  return decide(call, { type: 'take', actor: actorOf(bobOne.participant, 'b-2', 'phone') }, call.startedAt, durations)
}

/** The callee hands the caller over to carol: she accepts, or the first call ends before that [XFER1]. */
function ofTransfers(): Decision[] {
  const carolOne = actorOf(carol, 'c-1', 'phone')
  const callUuid = uuidOf(80)
  const first = answeredCall({ transferring: { to: callUuid, by: 'callee' } })
  const { userId, role, displayName } = first.callee
  const transferred = { from: first.callUuid, by: { userId, role, displayName }, firstStartedAt: first.startedAt }
  const callee = { userId: carol.userId, role: carol.role, displayName: null }
  const next = ringingCall({ callUuid, callee, transferred })
  const now = next.startedAt
  return [
    decideLinked(next, first, { type: 'accept', actor: carolOne }, now, durations),
    decideLinked(first, next, { type: 'end', actor: bobOne, reason: null }, now, durations),
  ]
}

/** The notices that name a reason, in words. */
function noticesOf(reason: string): string[] {
  const notices = decidedSteps().flatMap(({ event }) =>
    event.notices.map((notice) => ({ notice, by: event.by?.sessionId ?? null })),
  )
  const told = notices.filter(({ notice }) => 'reason' in notice.data && notice.data.reason === reason)
  return [...new Set(told.map(({ notice, by }) => noticeText(notice, by).replace(` (${reason})`, '')))]
}

/** The notices that are sent as places move: no step has these notices [PLACE2] [TAKE1]. */
export function leftNotices(): Notice[] {
  return decidedSteps().flatMap((step) => (step.event.moved ?? []).map((move) => leftNotice(step, move)))
}

function leftNoticesOf(reason: string): string[] {
  const told = leftNotices().filter(({ data }) => 'reason' in data && data.reason === reason)
  return [...new Set(told.map(({ event }) => `${code(event)} to the session that had the place`))]
}

export function endReasonsPage(): string {
  const rows = Object.entries<EndReasonDefinition>(endReasons).map(([reason, { ends, meaning }]) => [
    code(reason),
    ends.map(code).join(', '),
    meaning,
    [...noticesOf(reason), ...leftNoticesOf(reason)].join('; ') || `${code('call.error')} to the caller`,
  ])
  return page(
    'End reasons',
    'The reasons of the service in `end_reason` and `reason`. A client may give a reason of its own with `call.reject`, ' +
      '`call.cancel` and `call.end`: it stands in the place of `declined` or `hangup` [END2].',
    table(['Reason', 'Status of the call', 'Meaning', 'Sent, by the case'], rows),
    'A reason without a status ends the call only at the session that gets the notice. Which request or event ends a call in which ' +
      'state is in [call-states.md](call-states.md).',
  )
}
