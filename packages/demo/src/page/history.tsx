import { useEffect, useState } from 'react'
import { About } from './about.tsx'
import type { CallRecord } from './backend.ts'
import type { Desk } from './desk.ts'
import { Icon } from './icons.tsx'
import { usePlace } from './place.ts'
import { keepSeen, loadSeen } from './seen.ts'
import { useStore } from './store.ts'
import { agoText, durationText, recordKind, recordText } from './wording.ts'

/** Recent calls from the service. A missed one counts as seen once the person has come to the list. */
export function History({ desk }: { desk: Desk }) {
  const records = useStore(desk.history)
  const [seen, setSeen] = useState(loadSeen)
  const missed = records.filter((record) => recordKind(record) === 'missed' && record.started_at > seen).length
  const see = () => {
    const newest = records[0]?.started_at
    if (newest === undefined || newest <= seen) return
    keepSeen(newest)
    setSeen(newest)
  }
  return (
    <section
      className="panel recent"
      aria-labelledby="history-title"
      data-testid="history-panel"
      onPointerEnter={see}
      onPointerDown={see}
      onFocus={see}
    >
      <h2 id="history-title">
        Recent calls{' '}
        {missed > 0 && (
          <span className="badge" data-testid="missed">
            {`${missed} missed`}
          </span>
        )}
      </h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard */}
      <ul className="rows" tabIndex={0} aria-labelledby="history-title" data-testid="history">
        {records.map((record) => (
          <Record key={record.call_uuid} record={record} />
        ))}
      </ul>
      {records.length === 0 && <p className="empty">Your calls will be listed here.</p>}
    </section>
  )
}

function Record({ record }: { record: CallRecord }) {
  const { mayCall, call } = usePlace()
  const kind = recordKind(record)
  const { connected_at, ended_at, peer } = record
  const lasted = connected_at && ended_at ? durationText((Date.parse(ended_at) - Date.parse(connected_at)) / 1000) : ''
  const type = record.call_type === 'video' ? 'video' : 'audio'
  const label = `Call ${peer.display_name} back`
  return (
    <li
      className="record"
      data-testid="record"
      data-kind={kind}
      data-status={record.status}
      data-call={record.call_uuid}
    >
      <span className="record-icon">
        <Icon name={kind === 'live' ? 'phone' : kind} />
      </span>
      <span className="person-text">
        <span className="person-name" title={peer.display_name}>
          {peer.display_name}
        </span>
        <About parts={[recordText(record), lasted, <Ago key="ago" instant={record.started_at} />].filter(Boolean)} />
      </span>
      {kind !== 'live' && (
        <button
          type="button"
          className="call-button quiet"
          data-type={type}
          aria-label={label}
          title={label}
          disabled={!mayCall}
          data-testid="call-back"
          onClick={() => call(peer, type)}
        >
          <Icon name={type === 'video' ? 'video' : 'phone'} />
        </button>
      )}
    </li>
  )
}

/** How long ago; it grows by itself. */
function Ago({ instant }: { instant: string }) {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 60_000)
    return () => clearInterval(timer)
  }, [])
  return <time dateTime={instant}>{agoText(instant, Math.max(now, Date.parse(instant)))}</time>
}
