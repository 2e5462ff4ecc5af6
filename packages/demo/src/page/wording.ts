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
