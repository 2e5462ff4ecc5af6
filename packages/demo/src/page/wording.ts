import type { CallRecord, Peer } from './backend.ts'
import type { Over } from './phone.ts'

/** What a person reads when a call is over; `direction` is the call's, `me` who reads it. */
export function overText({ status, reason, by, error }: Over, peer: Peer, direction: string, me: Peer): string {
  if (error) return errorText(error, peer)
  const mine = by?.userId === me.user_id && by.role === me.role
  if (reason === 'answered_elsewhere') return 'Answered on another of your devices.'
  if (reason === 'rejected_elsewhere') return 'Declined on another of your devices.'
  if (reason === 'peer_lost') return `${peer.display_name} did not come back.`
  if (reason === 'max_duration') return 'The call reached its longest duration.'
  if (reason === 'superseded') return 'A newer call replaced this one.'
  switch (status) {
    case 'missed':
      return direction === 'outgoing'
        ? `${peer.display_name} did not answer.`
        : `You missed a call from ${peer.display_name}.`
    case 'rejected':
      if (mine) return 'You declined.'
      return reason === 'busy' ? `${peer.display_name} is busy.` : `${peer.display_name} declined.`
    case 'busy':
      return `${peer.display_name} is busy.`
    case 'cancelled':
      return mine ? 'You cancelled the call.' : `${peer.display_name} cancelled the call.`
    default:
      return mine ? 'You hung up.' : `The call with ${peer.display_name} has ended.`
  }
}

function errorText(error: NonNullable<Over['error']>, peer: Peer): string {
  switch (error.code) {
    case 'CALLEE_BUSY':
      return `${peer.display_name} is busy.`
    case 'CALL_ALREADY_ANSWERED':
      return 'Answered on another of your devices.'
    case 'CALL_INVALID_STATE':
    case 'CALL_NOT_FOUND':
      return 'This call is already over.'
    case 'CALL_NOT_PARTICIPANT':
      return 'This call goes on in another tab or on another device.'
    case 'RATE_LIMITED':
      return 'Too many calls in a short time. Wait a moment.'
    default:
      return error.message || error.code
  }
}

export function durationText(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, '0')
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60]
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}

export type RecordKind = 'missed' | 'incoming' | 'outgoing' | 'live'

export function recordKind(record: CallRecord): RecordKind {
  if (record.ended_at === null) return 'live'
  const unanswered = record.status === 'missed' || record.status === 'cancelled'
  return record.direction === 'incoming' && unanswered ? 'missed' : record.direction
}

export function recordText(record: CallRecord): string {
  const video = record.call_type === 'video' ? 'video' : 'audio'
  if (record.ended_at === null) return record.status === 'ringing' ? 'Ringing' : `Live ${video} call`
  if (recordKind(record) === 'missed') return `Missed ${video} call`
  switch (record.status) {
    case 'missed':
      return 'No answer'
    case 'cancelled':
      return 'Cancelled'
    case 'rejected':
      return record.end_reason === 'busy' ? 'Busy' : 'Declined'
    case 'busy':
      return 'Busy'
    default:
      return `${record.direction === 'incoming' ? 'Incoming' : 'Outgoing'} ${video}`
  }
}
