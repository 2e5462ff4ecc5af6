import { lineOf } from '../chaos/report.ts'
import type { Outcome, WorldOptions } from './world.ts'

/** What one seed came to, in a few words. */
export interface Lived {
  readonly seed: number
  /** How many events its world had. */
  readonly steps: number
  readonly calls: number
  /** The kinds of its faults. */
  readonly faults: readonly string[]
  /** What was wrong, each in a line. */
  readonly violations: readonly string[]
  /** The simulation itself failed. */
  readonly failure?: string
}

export function outlineOf({ seed }: WorldOptions, { recording, verdict, steps }: Outcome): Lived {
  return {
    seed,
    steps,
    calls: recording.calls.length,
    faults: recording.header.faults.map(({ kind }) => kind),
    violations: verdict.violations.map(lineOf),
  }
}

export function isBad({ violations, failure }: Lived): boolean {
  return violations.length > 0 || failure !== undefined
}
