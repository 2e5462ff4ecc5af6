import { expect, test } from 'bun:test'
import { check } from './check/check.ts'
import type { Violation } from './check/findings.ts'
import { hasEndpoints } from './fault-kinds.ts'
import type { RunOptions } from './options.ts'
import type { Recording } from './recording.ts'
import { lineOf, printReport } from './report.ts'
import { runChaos } from './run.ts'
import { visitsOf } from './story.ts'

/** One seed, so that a failure is a change of the service; CHAOS_SEED takes another, `npm run chaos` a longer run. */
const seed = Number(process.env.CHAOS_SEED ?? 20)

export function registerChaos(name: string, given: Omit<RunOptions, 'seed' | 'record' | 'redis'>): void {
  test(`${name}: calls while things break, seed ${seed}: nothing that was acknowledged is lost`, async () => {
    const lines: string[] = []
    const say = (text: string) => void lines.push(text)
    const recording = await runChaos({ redis: 'one', ...given, seed, record: null }, say)
    const verdict = check(recording)
    printReport(recording, verdict, say)
    console.log(lines.join('\n'))
    if (verdict.violations.length > 0) throw new Error(digestOf(recording, verdict.violations))
    // It was a run that shows something.
    const { calls, relays, resumes, takes, faults, hooks } = verdict.counts
    expect(Object.keys(calls).sort()).toEqual(['cancelled', 'ended', 'missed', 'rejected'])
    // People on a machine that does ten other things say a fifth of what they say on an idle one.
    expect(relays.arrived).toBeGreaterThan(100)
    expect(resumes.recovered).toBeGreaterThan(0)
    expect(takes).toBeGreaterThan(0)
    expect(Object.keys(faults).length).toBeGreaterThan(2)
    if (hasEndpoints(given)) {
      expect(hooks.arrived).toBeGreaterThan(50)
      expect(hooks.failed).toBeGreaterThan(0)
      expect(hooks.cutOff).toBeGreaterThan(0)
    }
  }, 360_000)
}

/** What tells most of a failure where there is room for some lines: the first violations, and how their person's sockets went. */
function digestOf(recording: Recording, violations: readonly Violation[]): string {
  const { user, at = 0 } = violations.find((one) => one.user !== undefined) ?? {}
  const visits = user === undefined ? [] : visitsOf(recording, user, at + 10_000)
  const lines = [...violations.slice(0, 6).map(lineOf), ...visits.slice(-30)]
  return [`${violations.length} violations`, ...lines.map((line) => `+ ${line}`)].join('\n')
}
