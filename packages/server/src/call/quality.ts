/** Reports of media quality, added up [STAT1]. Pure. */
import type { CallQuality, SideQuality } from '@ringwire/protocol/backend'
import { type CallStats, statNumbers } from '@ringwire/protocol/events/call'
import type { TimelineRow } from './observed.ts'

type StatName = keyof typeof statNumbers
const names = Object.keys(statNumbers) as StatName[]

/** `n`: how many reports named it. */
interface Summed {
  readonly min: number
  readonly avg: number
  readonly max: number
  readonly n: number
}

/** What one side reported through one process: what is stored. The texts are those of the last report. */
export interface SideReports extends Readonly<Partial<Record<StatName, Summed>>> {
  readonly reports: number
  readonly candidate_pair?: CallStats['stats']['candidate_pair']
  readonly codec?: string
}

export function addReport(before: SideReports | undefined, stats: CallStats['stats']): SideReports {
  const { candidate_pair, codec } = stats
  const numbers = names.map((name) => [name, stats[name]] as const)
  const one: SideReports = {
    reports: 1,
    ...Object.fromEntries(
      numbers.flatMap(([name, value]) => (value == null ? [] : [[name, { min: value, avg: value, max: value, n: 1 }]])),
    ),
    ...(candidate_pair != null && { candidate_pair }),
    ...(codec != null && { codec }),
  }
  return before === undefined ? one : both(before, one)
}

/** `b` is the later one. */
function both(a: SideReports, b: SideReports): SideReports {
  const summed = names.flatMap((name) => {
    const [one, other] = [a[name], b[name]]
    const sum = one !== undefined && other !== undefined ? add(one, other) : (one ?? other)
    return sum === undefined ? [] : [[name, sum]]
  })
  return { ...a, ...b, ...Object.fromEntries(summed), reports: a.reports + b.reports }
}

function add(a: Summed, b: Summed): Summed {
  const n = a.n + b.n
  return { min: Math.min(a.min, b.min), avg: a.avg + ((b.avg - a.avg) * b.n) / n, max: Math.max(a.max, b.max), n }
}

/** Of both sides, of whichever processes they reported to; null where nobody did. */
export function qualityOf(rows: readonly TimelineRow[]): CallQuality | null {
  const reports = rows.filter(({ what }) => what === 'quality')
  if (reports.length === 0) return null
  const of = (side: TimelineRow['side']) => {
    const [first, ...more] = reports
      .filter((row) => row.side === side)
      .map(({ detail }) => detail as unknown as SideReports)
    return first === undefined ? null : shown(more.reduce(both, first))
  }
  return { caller: of('caller'), callee: of('callee') }
}

/** As it is shown. */
export function shown(reports: SideReports): SideQuality {
  const numbers = names.flatMap((name) => {
    const sum = reports[name]
    return sum === undefined ? [] : [[name, { min: sum.min, avg: rounded(sum.avg), max: sum.max }]]
  })
  const { candidate_pair, codec } = reports
  return {
    reports: reports.reports,
    ...Object.fromEntries(numbers),
    ...(candidate_pair !== undefined && { candidate_pair }),
    ...(codec !== undefined && { codec }),
  }
}

const rounded = (value: number) => Math.round(value * 10_000) / 10_000
