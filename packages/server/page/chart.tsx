/** @jsxImportSource preact */

interface ChartProps {
  readonly name: string
  readonly values: readonly (number | null)[]
  readonly say: (value: number) => string
  /** What happens here is bad news. */
  readonly isBad?: boolean
}

const [width, height] = [300, 50]

/** A small live chart: the last ten minutes, the newest value in words, and the highest. */
export function Chart({ name, values, say, isBad = false }: ChartProps) {
  const known = values.filter((value) => value !== null)
  const latest = known.at(-1)
  const highest = Math.max(0, ...known)
  const said = latest === undefined ? 'nothing yet' : say(latest)
  const lines = linesOf(values, highest)
  const label = `${name}: ${said}; highest in ten minutes ${say(highest)}`
  return (
    <figure class="chart" data-tone={isBad && highest > 0 ? 'bad' : undefined} data-testid={`chart-${name}`}>
      <figcaption>
        {name} <strong>{said}</strong>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height + 2}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <path class="base" d={`M0 ${height + 1}H${width}`} />
        {lines.map((points) => (
          <g key={points[0]?.[0]}>
            <path
              class="area"
              d={`${pathOf(points)}L${points.at(-1)?.[0]} ${height + 1}L${points[0]?.[0]} ${height + 1}Z`}
            />
            <path class="line" d={pathOf(points)} />
          </g>
        ))}
      </svg>
      <div class="scale">
        <span>10 min</span>
        {highest > 0 && <span>highest {say(highest)}</span>}
      </div>
    </figure>
  )
}

/** How many points ten minutes have. */
const most = 150

type Point = readonly [x: number, y: number]

/** Times without a measurement are a gap. The newest value is at the right. */
function linesOf(values: readonly (number | null)[], highest: number): Point[][] {
  const lines: Point[][] = []
  const first = most - values.length
  let line: Point[] = []
  values.forEach((value, i) => {
    if (value === null) {
      if (line.length > 0) lines.push(line)
      line = []
      return
    }
    const y = highest === 0 ? height : height - (value / highest) * (height - 3)
    line.push([((first + i) / (most - 1)) * width, Math.round(y * 10) / 10])
  })
  if (line.length > 0) lines.push(line)
  return lines
}

const pathOf = (points: readonly Point[]) =>
  points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${Math.round(x * 10) / 10} ${y}`).join('') +
  (points.length === 1 ? 'h0.1' : '')
