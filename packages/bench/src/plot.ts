// The ratios of a run as a picture: an SVG without scripts, fonts or colours from elsewhere, for light and dark pages.
import { type Comparison, met } from './measurement.ts'

const WIDTH = 760
const ROW = 22
const HEAD = 26
const TOP = 34
/** Where the axis begins and ends; the names are before it, the figures after it. */
const LEFT = 230
const RIGHT = 590

const STYLE = `
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.what { font-weight: 600 }
.tick, .figure { fill: #59636e }
.grid { stroke: #d1d9e0 }
.even { stroke: #59636e }
.range { stroke-width: 2; stroke: #59636e }
.target { stroke-width: 2; stroke: #1f2328 }
.met { fill: #1a7f37 }
.missed { fill: #bc4c00 }
.plain { fill: #0969da }
.line0 { fill: #0969da; stroke: #0969da }
.line1 { fill: #bc4c00; stroke: #bc4c00 }
.line2 { fill: #1a7f37; stroke: #1a7f37 }
.line3 { fill: #8250df; stroke: #8250df }
.line4 { fill: #bf3989; stroke: #bf3989 }
.line5 { fill: #59636e; stroke: #59636e }
.curve { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.tick, .figure { fill: #9198a1 }
.grid { stroke: #3d444d }
.even, .range { stroke: #9198a1 }
.target { stroke: #f0f6fc }
.met { fill: #3fb950 }
.missed { fill: #db6d28 }
.plain { fill: #4493f8 }
.line0 { fill: #4493f8; stroke: #4493f8 }
.line1 { fill: #db6d28; stroke: #db6d28 }
.line2 { fill: #3fb950; stroke: #3fb950 }
.line3 { fill: #ab7df8; stroke: #ab7df8 }
.line4 { fill: #db61a2; stroke: #db61a2 }
.line5 { fill: #9198a1; stroke: #9198a1 }
.curve { fill: none }
}`

/**
 * A row for each ratio: its median, its smallest and largest round, and the target. The axis is logarithmic, so that twice and
 * half are equally far from 1.
 */
export function plotOf(comparisons: readonly Comparison[], title: string): string {
  const groups = Map.groupBy(comparisons, ({ what }) => what)
  const height = TOP + groups.size * HEAD + comparisons.length * ROW + 14
  const axis = axisOf(comparisons)
  const parts: string[] = []
  let y = TOP
  for (const [what, rows] of groups) {
    parts.push(`<text class="what" x="12" y="${y + 18}">${escaped(what)}</text>`)
    y += HEAD
    for (const row of rows) {
      parts.push(rowOf(row, axis.at, y + ROW / 2))
      y += ROW
    }
  }
  const ticks = axis.ticks.map((tick) => tickOf(tick, axis.at(tick), height - 14))
  return svgOf(WIDTH, height, title, comparisons.map(sentenceOf).join(' '), [...ticks, ...parts])
}

/** A whole picture; `text` says the same as the picture to somebody who does not see it. */
export function svgOf(width: number, height: number, title: string, text: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title text">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="text">${escaped(text)}</desc>`,
    `<style>${STYLE}\n</style>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

/** Powers of two around everything that is shown. */
function axisOf(comparisons: readonly Comparison[]) {
  const shown = comparisons.flatMap(({ ratio, goal }) => [ratio.min, ratio.max, goal?.value ?? 1, 1])
  const first = Math.floor(Math.log2(Math.min(...shown)))
  const last = Math.max(first + 1, Math.ceil(Math.log2(Math.max(...shown))))
  const at = (value: number) => LEFT + ((Math.log2(value) - first) / (last - first)) * (RIGHT - LEFT)
  return { at, ticks: Array.from({ length: last - first + 1 }, (_, n) => 2 ** (first + n)) }
}

function tickOf(value: number, x: number, bottom: number): string {
  const name = value === 1 ? 'even' : 'grid'
  const line = `<line class="${name}" x1="${place(x)}" x2="${place(x)}" y1="${TOP - 6}" y2="${bottom}"/>`
  return `${line}<text class="tick" text-anchor="middle" x="${place(x)}" y="${TOP - 14}">${value} ×</text>`
}

function rowOf(row: Comparison, at: (value: number) => number, y: number): string {
  const { ratio, goal, against } = row
  const isMet = met(row)
  const name = isMet === null ? 'plain' : isMet ? 'met' : 'missed'
  const target = goal === null ? '' : vertical(at(goal.value), y)
  return [
    `<text x="24" y="${y + 4}">over ${escaped(against)}</text>`,
    `<line class="range" x1="${place(at(ratio.min))}" x2="${place(at(ratio.max))}" y1="${y}" y2="${y}"/>`,
    target,
    `<circle class="${name}" cx="${place(at(ratio.median))}" cy="${y}" r="5"/>`,
    `<text class="figure" x="${RIGHT + 14}" y="${y + 4}">${figureOf(row)}</text>`,
  ].join('')
}

const vertical = (x: number, y: number) =>
  `<line class="target" x1="${place(x)}" x2="${place(x)}" y1="${y - 8}" y2="${y + 8}"/>`

export const place = (value: number) => value.toFixed(1)

const figureOf = ({ ratio: { median, min, max } }: Comparison) =>
  `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`

function sentenceOf(row: Comparison): string {
  const { goal } = row
  const target = goal === null ? '' : `, target ${goal.bound} ${goal.value}`
  return `${row.what}, over ${row.against}: ${figureOf(row)}${target}.`
}

export const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
