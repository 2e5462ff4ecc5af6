// How figures are written.
import { type Comparison, type MeasurementResult, met, type Table } from './measurement.ts'

export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US').replaceAll(',', ' ')
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

/** Seconds as microseconds. */
export function microseconds(seconds: number): string {
  return (seconds * 1e6).toFixed(2)
}

export function formatTable({ title, head, rows }: Table): string {
  const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '-'.repeat(width))
  return [title, line(head), line(rule), ...rows.map(line)].join('\n')
}

export function formatMeasurement(result: MeasurementResult): string {
  return [...result.tables.map(formatTable), result.notes.join('\n')].filter((part) => part !== '').join('\n\n')
}

export const comparisonHead = ['measurement', 'against', 'median', 'min', 'max', 'target', '']

export function comparisonCells(comparison: Comparison): string[] {
  const { what, against, ratio } = comparison
  const figures = [ratio.median, ratio.min, ratio.max].map((figure) => figure.toFixed(2))
  return [what, against, ...figures, goalText(comparison), verdict(comparison)]
}

export function formatComparisons(comparisons: readonly Comparison[]): string {
  const title = 'Ratios: Ringwire over the other, one per round'
  return formatTable({ title, head: comparisonHead, rows: comparisons.map(comparisonCells) })
}

function goalText({ goal }: Comparison): string {
  if (goal === null) return '–'
  return `${goal.bound === 'at least' ? '≥' : '≤'} ${goal.value}`
}

function verdict(comparison: Comparison): string {
  const result = met(comparison)
  const words = result === null ? [] : [result ? 'met' : 'not met']
  return [...words, ...(comparison.noisy === true ? ['noisy'] : [])].join(', ')
}
