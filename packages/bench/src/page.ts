// docs/benchmark-results.md: a chapter for each measurement, with what its last run gave. `--write` writes it.
import {
  type Comparison,
  MEASUREMENTS,
  type MeasurementName,
  type MeasurementResult,
  type Table,
} from './measurement.ts'
import { comparisonCells, comparisonHead } from './report.ts'

/** From docs/. */
export const PICTURES = 'images/bench'

const HEAD = `# Benchmark results

\`npm run bench -- --write\` wrote this page: for each measurement what its last run gave, as it was printed. What each number
means, and what it says about Ringwire, is in [benchmarks.md](benchmarks.md). A run of some measurements
(\`--only relay,call\`) replaces their chapters only. The first table repeats each ratio that has a target.
`

export interface Run {
  readonly results: readonly MeasurementResult[]
  /** The machine and the programs, a line each. */
  readonly about: readonly string[]
  /** As in 2026-11-30. */
  readonly date: string
}

/** The page with the chapters of this run instead of earlier ones of the same measurements, in the usual order. */
export function pageWith(page: string, run: Run): string {
  const chapters = chaptersOf(page)
  for (const result of run.results) chapters.set(result.name, chapterOf(result, run))
  const inOrder = MEASUREMENTS.flatMap((name) => chapters.get(name) ?? [])
  return [HEAD, targetsIn(inOrder), ...inOrder].join('\n')
}

/** A line of a chapter's ratios that has a target. */
const withTarget = /^\| .* \| [≥≤] [^|]+ \| .*\|$/gm

/** Everything that has a target, whichever run measured it. */
function targetsIn(chapters: readonly string[]): string {
  const rows = chapters.flatMap((chapter) => chapter.match(withTarget) ?? [])
  return ['## Targets', '', headOf(comparisonHead), ...rows, ''].join('\n')
}

function chaptersOf(page: string): Map<MeasurementName, string> {
  const [, ...chapters] = page.split(/^(?=## )/m)
  const named = chapters.map((chapter) => [chapter.slice(3, chapter.indexOf('\n')), `${chapter.trim()}\n`] as const)
  // A measurement that there is no more has no chapter any more.
  return new Map(
    MEASUREMENTS.flatMap((name) => named.filter(([title]) => title === name).map(([, text]) => [name, text])),
  )
}

function chapterOf({ name, tables, comparisons, charts = [], notes }: MeasurementResult, { about, date }: Run): string {
  const parts = [
    `## ${name}`,
    [date, ...about].map(sentence).join(' '),
    ...charts.map((chart) => `![${chart.title}](${PICTURES}/${chart.name}.svg)`),
    ...tables.map(tableOf),
    comparisons.length === 0 ? '' : ratiosOf(comparisons),
    notes.map((note) => `- ${escaped(note)}`).join('\n'),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

const sentence = (line: string) => (line.endsWith('.') ? line : `${line}.`)

const tableOf = ({ title, head, rows }: Table) => `**${escaped(title)}**\n\n${lines(head, rows)}`

function ratiosOf(comparisons: readonly Comparison[]): string {
  return `**Ratios: Ringwire over the other, one per round**\n\n${lines(comparisonHead, comparisons.map(comparisonCells))}`
}

function lines(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [headOf(head), ...rows.map(line)].join('\n')
}

const headOf = (head: readonly string[]) =>
  `${line(head)}\n|${head.map((_, column) => (column === 0 ? '---' : '--:')).join('|')}|`

const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(' | ')} |`

const escaped = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')
