/** @jsxImportSource preact */
import type { CallView, TimelineEntry } from '@ringwire/protocol/backend'
import { isBad, lanesOf } from './lanes.ts'
import { saidOf, seconds } from './wording.ts'

/** A pause that is worth a line of its own, in seconds. */
const longPause = 1

/** What happened, as a picture: time goes down, and each device, the service, pushes and webhooks have a lane. */
export function Timeline({ call, entries: all }: { call: CallView | null; entries: readonly TimelineEntry[] }) {
  const { lanes, entries } = lanesOf(call, all)
  if (entries.length === 0) return null
  return (
    <section class="panel" data-testid="timeline">
      <h2>What happened</h2>
      <ul class="legend">
        {lanes.map(({ key, name, kind }, i) => (
          <li key={key} data-kind={kind}>
            <span class="dot">{i + 1}</span> {name}
          </li>
        ))}
      </ul>
      <ol class="lanes">
        {entries.map(({ entry, lane, after, gap }, row) => (
          <li key={row}>
            {gap >= longPause && (
              <div class="pause">
                <Cells {...{ lanes }} />
                <span>{seconds(gap)} later</span>
              </div>
            )}
            <div class="event" data-bad={isBad(entry) ? '' : undefined}>
              <time dateTime={entry.at} title={entry.at}>
                {after === 0 ? '0' : `+${after.toFixed(3)}`}
              </time>
              <Cells {...{ lanes, lane }} />
              <span class="what">
                <strong>{entry.what.replaceAll('_', ' ')}</strong>
                {entry.who && (
                  <span class="soft">
                    {' '}
                    {entry.who.role}/{entry.who.user_id}
                  </span>
                )}{' '}
                <span class="soft">{saidOf(entry.detail)}</span>
                {gap > 0 && gap < longPause && <span class="gap">{seconds(gap)} after the one before</span>}
              </span>
            </div>
          </li>
        ))}
      </ol>
    </section>
  )
}

/** The lanes of a line; of an event one has a dot. */
function Cells({ lanes, lane }: { lanes: ReturnType<typeof lanesOf>['lanes']; lane?: number }) {
  return (
    <span class="cells" aria-hidden="true">
      {lanes.map(({ key, kind }, i) => (
        <span key={key} data-kind={kind}>
          {i === lane && <span class="dot">{i + 1}</span>}
        </span>
      ))}
    </span>
  )
}
