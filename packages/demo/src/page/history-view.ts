import type { CallRecord } from './backend.ts'
import { icon, make } from './dom.ts'
import { durationText, recordKind, recordText } from './wording.ts'

const ago = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

function agoText(instant: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(instant)) / 1000)
  if (seconds < 60) return 'just now'
  if (seconds < 3600) return ago.format(-Math.floor(seconds / 60), 'minute')
  if (seconds < 86_400) return ago.format(-Math.floor(seconds / 3600), 'hour')
  return ago.format(-Math.floor(seconds / 86_400), 'day')
}

/** Recent calls from the service. */
export function createHistoryView(parts: { list: HTMLElement; empty: HTMLElement; missed: HTMLElement }) {
  function row(record: CallRecord): HTMLElement {
    const kind = recordKind(record)
    const about = [recordText(record)]
    if (record.connected_at && record.ended_at) {
      about.push(durationText((Date.parse(record.ended_at) - Date.parse(record.connected_at)) / 1000))
    }
    about.push(agoText(record.started_at, Date.now()))
    return make(
      'li',
      {
        class: 'record',
        'data-testid': 'record',
        'data-kind': kind,
        'data-status': record.status,
        'data-call': record.call_uuid,
      },
      make('span', { class: 'record-icon' }, icon(kind === 'live' ? 'phone' : kind)),
      make(
        'span',
        { class: 'person-text' },
        make('span', { class: 'person-name' }, record.peer.display_name),
        make('span', { class: 'person-about' }, about.join(' · ')),
      ),
    )
  }

  return {
    render(records: CallRecord[]): void {
      parts.list.replaceChildren(...records.map(row))
      parts.empty.hidden = records.length > 0
      const missed = records.filter((record) => recordKind(record) === 'missed').length
      parts.missed.hidden = missed === 0
      parts.missed.textContent = `${missed} missed`
    },
  }
}
