// Figures of a run as pictures, in the look of the ratios: bars for systems, lines for how a figure grows with another.
import type { Bars, Chart, Lines } from './chart.ts'
import { escaped, place, svgOf } from './plot.ts'

const WIDTH = 760
const ROW = 26
const TOP = 52
const LEFT = 280
const RIGHT = 670
const BOTTOM = 330

export function chartOf(chart: Chart): string {
  return chart.kind === 'bars' ? barsOf(chart) : linesOf(chart)
}

function barsOf({ title, unit, bars }: Bars): string {
  const most = Math.max(...bars.map(({ value }) => value))
  const rows = bars.map(({ label, value }, i) => {
    const y = TOP + i * ROW
    const width = ((RIGHT - LEFT) * value) / most
    return [
      `<text x="12" y="${y + 15}">${escaped(label)}</text>`,
      `<rect class="line0" x="${LEFT}" y="${y + 2}" width="${place(width)}" height="${ROW - 8}" rx="2"/>`,
      `<text class="figure" x="${place(LEFT + width + 8)}" y="${y + 15}">${figure(value)}</text>`,
    ].join('')
  })
  const said = bars.map(({ label, value }) => `${label}: ${figure(value)}.`).join(' ')
  return svgOf(WIDTH, TOP + bars.length * ROW + 12, title, `${unit}. ${said}`, [...heading(title, unit), ...rows])
}

const heading = (title: string, below: string) => [
  `<text class="what" x="12" y="20">${escaped(title)}</text>`,
  `<text class="tick" x="12" y="40">${escaped(below)}</text>`,
]

function linesOf({ title, x, y, lines }: Lines): string {
  const points = lines.flatMap((line) => line.points)
  const most = niceAbove(Math.max(...points.map(([at]) => at)))
  const low = Math.floor(Math.log10(Math.min(...points.map(([, value]) => value))))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...points.map(([, value]) => value)))))
  const [left, right] = [80, 560]
  const xOf = (value: number) => left + (value / most) * (right - left)
  const yOf = (value: number) => BOTTOM - ((Math.log10(value) - low) / (high - low)) * (BOTTOM - TOP - 10)
  const across = Array.from({ length: high - low + 1 }, (_, n) => 10 ** (low + n)).map((tick) => {
    const at = place(yOf(tick))
    const line = `<line class="grid" x1="${left}" x2="${right}" y1="${at}" y2="${at}"/>`
    return `${line}<text class="tick" text-anchor="end" x="${left - 8}" y="${place(yOf(tick) + 4)}">${figure(tick)}</text>`
  })
  const along = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const at = place(xOf(share * most))
    return `<text class="tick" text-anchor="middle" x="${at}" y="${BOTTOM + 20}">${figure(share * most)}</text>`
  })
  const drawn = lines.map(({ label, points: own }, i) => {
    const path = own.map(([at, value]) => `${place(xOf(at))},${place(yOf(value))}`)
    const dots = path.map(
      (point) => `<circle class="line${i % 6}" cx="${point.split(',')[0]}" cy="${point.split(',')[1]}" r="4"/>`,
    )
    const key = TOP + 12 + i * 22
    return [
      `<polyline class="curve line${i % 6}" points="${path.join(' ')}"/>${dots.join('')}`,
      `<circle class="line${i % 6}" cx="${right + 24}" cy="${key - 4}" r="5"/>`,
      `<text x="${right + 36}" y="${key}">${escaped(label)}</text>`,
    ].join('')
  })
  const named = `<text class="tick" text-anchor="middle" x="${(left + right) / 2}" y="${BOTTOM + 42}">${escaped(x)}</text>`
  const said = lines.map(
    ({ label, points: own }) =>
      `${label}: ${own.map(([at, value]) => `${figure(value)} at ${figure(at)}`).join(', ')}.`,
  )
  return svgOf(WIDTH, BOTTOM + 54, title, `${y}, over ${x}. ${said.join(' ')}`, [
    ...heading(title, y),
    ...across,
    ...along,
    ...drawn,
    named,
  ])
}

/** The end of an axis from 0 whose quarters are short numbers. */
function niceAbove(value: number): number {
  const step = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 4, 8, 10].map((factor) => factor * step).find((end) => end >= value)!
}

/** Three digits that count, and thin spaces between thousands. */
export function figure(value: number): string {
  const rounded = Number(value.toPrecision(3))
  return rounded >= 1000 ? rounded.toLocaleString('en-US').replaceAll(',', '\u202f') : String(rounded)
}
