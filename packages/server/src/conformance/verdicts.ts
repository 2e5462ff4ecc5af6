/** What was found of each rule: only what was looked at counts, and what nobody could look at is "not seen". */
import type { RuleId } from './rules.ts'
import type { Redactor, SeenFrame, Transcript } from './transcript.ts'

export type Verdict = 'passed' | 'failed' | 'not seen'

export interface Failure {
  readonly scenario: string
  readonly message: string
  readonly frames: readonly SeenFrame[]
}

export interface RuleVerdict {
  readonly rule: RuleId
  readonly verdict: Verdict
  /** How often it was looked at. */
  readonly checks: number
  readonly failures: readonly Failure[]
}

/** Ends a scenario of which the rest cannot be played. Its verdicts so far stand. */
export class Stop extends Error {}

/** One scenario, as it judges. */
export interface Judge {
  /** Answers whether it is so. */
  check(rule: RuleId, isSo: boolean, message: string): boolean
  /** The same; without it the scenario cannot go on. */
  must(rule: RuleId, isSo: boolean, message: string): asserts isSo
}

/** Of one rule in one scenario the first failures are enough. */
const mostFailures = 5

export interface Verdicts {
  judge(scenario: string, transcript: Transcript): Judge
  of(rules: readonly RuleId[]): readonly RuleVerdict[]
}

export function createVerdicts(redactor: Redactor): Verdicts {
  const checks = new Map<RuleId, number>()
  const failures = new Map<RuleId, Failure[]>()
  return {
    judge(scenario, transcript) {
      const check = (rule: RuleId, isSo: boolean, message: string) => {
        checks.set(rule, (checks.get(rule) ?? 0) + 1)
        const found = failures.get(rule) ?? []
        if (!isSo && found.length < mostFailures)
          failures.set(rule, [...found, { scenario, message: redactor.clean(message), frames: transcript.last() }])
        return isSo
      }
      return {
        check,
        must(rule, isSo, message) {
          if (!check(rule, isSo, message)) throw new Stop(message)
        },
      }
    },
    of: (rules) =>
      rules.map((rule) => {
        const failed = failures.get(rule) ?? []
        const looked = checks.get(rule) ?? 0
        const verdict = failed.length > 0 ? 'failed' : looked > 0 ? 'passed' : 'not seen'
        return { rule, verdict, checks: looked, failures: failed }
      }),
  }
}
