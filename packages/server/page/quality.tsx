/** @jsxImportSource preact */
import type { CallQuality, SideQuality } from '@ringwire/protocol/backend'

const measures = [
  ['rtt_ms', 'Round trip', (value: number) => `${Math.round(value)} ms`],
  ['jitter_ms', 'Jitter', (value: number) => `${Math.round(value)} ms`],
  ['loss', 'Loss', (value: number) => `${Math.round(value * 1_000) / 10} %`],
  ['bitrate', 'Bitrate', (value: number) => `${Math.round(value / 1_000)} kbit/s`],
  ['frames_dropped', 'Frames dropped', (value: number) => String(Math.round(value))],
] as const

const [width, height] = [240, 22]

/** Media as both sides reported it: from the least to the greatest, with a mark at the mean. */
export function Quality({ quality }: { quality: CallQuality }) {
  const sides = [
    ['Caller', quality.caller],
    ['Callee', quality.callee],
  ] as const
  return (
    <section class="panel" data-testid="quality">
      <h2>Media quality</h2>
      <div class="columns">
        {sides.map(([name, side]) => (
          <div key={name}>
            <h3>{name}</h3>
            {side === null ? <p class="soft">It has reported nothing.</p> : <Side side={side} quality={quality} />}
          </div>
        ))}
      </div>
    </section>
  )
}

function Side({ side, quality }: { side: SideQuality; quality: CallQuality }) {
  const { reports, codec, candidate_pair: pair } = side
  return (
    <>
      <table>
        <tbody>
          {measures.map(([key, name, say]) => {
            const range = side[key]
            if (range === undefined) return null
            const most = Math.max(quality.caller?.[key]?.max ?? 0, quality.callee?.[key]?.max ?? 0) || 1
            const at = (value: number) => (value / most) * (width - 4) + 2
            return (
              <tr key={key}>
                <th scope="row">{name}</th>
                <td>
                  <svg
                    class="range"
                    viewBox={`0 0 ${width} ${height}`}
                    role="img"
                    aria-label={`${name}: ${say(range.min)} to ${say(range.max)}, on average ${say(range.avg)}`}
                  >
                    <path class="base" d={`M0 11H${width}`} />
                    <rect
                      x={at(range.min)}
                      y="7"
                      width={Math.max(2, at(range.max) - at(range.min))}
                      height="8"
                      rx="4"
                    />
                    <circle cx={at(range.avg)} cy="11" r="5" />
                  </svg>
                </td>
                <td class="number">
                  {say(range.avg)}{' '}
                  <span class="soft">
                    {say(range.min)} to {say(range.max)}
                  </span>
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
      <p class="soft">
        {reports} {reports === 1 ? 'report' : 'reports'}
        {codec && `, ${codec}`}
        {pair && `, ${pair.local} to ${pair.remote}`}
      </p>
    </>
  )
}
