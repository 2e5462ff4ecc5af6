import type { CallRecord } from './backend.ts'

const two = (value: number) => String(value).padStart(2, '0')

export function durationText(seconds: number): string {
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60]
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}

/** The time of day with its milliseconds. */
export function clockText(at: number): string {
  const time = new Date(at)
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')
  return `${clock}.${String(time.getMilliseconds()).padStart(3, '0')}`
}

const ago = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

export function agoText(instant: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(instant)) / 1000)
  if (seconds < 60) return 'just now'
  if (seconds < 3600) return ago.format(-Math.floor(seconds / 60), 'minute')
  if (seconds < 86_400) return ago.format(-Math.floor(seconds / 3600), 'hour')
  return ago.format(-Math.floor(seconds / 86_400), 'day')
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
  if (recordKind(record) === 'missed') return `Missed ${video}`
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

/** What a person reads when something failed. The signaling log has the code. */
export function failureText({ code, message }: { code: string; message: string }): string {
  switch (code) {
    case 'SERVICE_DRAINING':
    case 'SERVICE_UNAVAILABLE':
    case 'INTERNAL_ERROR':
      return 'The service is busy or restarts. A call goes on, and this page tries again by itself.'
    case 'TIMEOUT':
    case 'CONNECTION_CLOSED':
    case 'UNKNOWN_OUTCOME':
      return 'The service did not answer. Check your connection; this page tries again by itself.'
    case 'TOKEN_FAILED':
      return 'Signing in did not work. This page tries again by itself.'
    case 'AUTH_TOKEN_REQUIRED':
    case 'AUTH_TOKEN_INVALID':
      return 'You are no longer signed in. Reload this page.'
    case 'RATE_LIMITED':
      return 'That was a lot at once. Wait a moment, then try again.'
    default:
      return message
  }
}
