// What every measurement gets and gives.
import type { Chart } from './chart.ts'
import type { CoreDistance } from './core-distance.ts'
import type { Generator } from './generators.ts'
import type { Target } from './jobs/job.ts'
import type { Placement } from './process.ts'
import type { Spread } from './statistics.ts'
import { spread } from './statistics.ts'
import type { RunningSystem } from './systems.ts'

export const MEASUREMENTS = [
  'relay',
  'extended',
  'connect',
  'resume',
  'memory',
  'clients',
  'call',
  'sip',
  'token',
  'media',
  'nodes',
  'ring',
  'group',
  'hook',
  'scale',
  'workers',
  'capacity',
  'trips',
  'start',
  'floods',
  'metrics',
  'webhooks',
  'push',
  'timeline',
  'traces',
  'large',
  'history',
  'load',
  'tls',
  'network',
] as const
export type MeasurementName = (typeof MEASUREMENTS)[number]

export interface Bench {
  seconds: number
  rounds: number
  placement: Placement
  /** One on each core that the server does not have, at most three; the first one's core is the one whose distance is known. */
  generators: [Generator, ...Generator[]]
  distance: CoreDistance | null
  /** For data directories and logs; removed at the end. */
  directory: string
  say(progress: string): void
}

export interface Goal {
  bound: 'at least' | 'at most'
  value: number
}

/** One line of the result: Ringwire's value over another one's, round by round. */
export interface Comparison {
  what: string
  against: string
  ratio: Spread
  rounds: number[]
  goal: Goal | null
  /** Others used the cores in many of the rounds: the ratio says less. */
  noisy?: boolean
}

export interface Table {
  title: string
  head: string[]
  rows: string[][]
}

export interface MeasurementResult {
  name: MeasurementName
  tables: Table[]
  comparisons: Comparison[]
  /** What `--plot` draws besides the ratios. */
  charts?: Chart[]
  notes: string[]
  /** Everything that was read, for `--json`. */
  raw: unknown
}

export function comparison(what: string, against: string, rounds: number[], goal: Goal | null): Comparison {
  return { what, against, ratio: spread(rounds), rounds, goal }
}

/** Judged by the median; null if there is no goal. */
export function met({ ratio, goal }: Comparison): boolean | null {
  if (goal === null) return null
  return goal.bound === 'at least' ? ratio.median >= goal.value : ratio.median <= goal.value
}

export function targetOf(running: RunningSystem): Target {
  return { system: running.system, port: running.port, pid: running.pid, core: running.core }
}
