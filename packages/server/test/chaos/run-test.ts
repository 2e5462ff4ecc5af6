import { expect, test } from 'bun:test'
import { check } from './check/check.ts'
import type { Violation } from './check/findings.ts'
import { hasEndpoints } from './fault-kinds.ts'
import type { RunOptions } from './options.ts'
import { isRelay, type Recording, type Trace } from './recording.ts'
import { lineOf, printReport } from './report.ts'
import { runChaos } from './run.ts'
import { visitsOf } from './story.ts'

/** One seed, so that a failure is a change of the service; CHAOS_SEED takes another, `npm run chaos` a longer run. */
const seed = Number(process.env.CHAOS_SEED ?? 20)
const fewestRelays = 100

export function registerChaos(name: string, given: Omit<RunOptions, 'seed' | 'record' | 'redis'>): void {
  test(`${name}: calls while things break, seed ${seed}: nothing that was acknowledged is lost`, async () => {
    const lines: string[] = []
    const say = (text: string) => void lines.push(text)
    const recording = await runChaos({ redis: 'one', ...given, seed, record: null, isEnough }, say)
    const verdict = check(recording)
    printReport(recording, verdict, say)
    console.log(lines.join('\n'))
    if (verdict.violations.length > 0) throw new Error(digestOf(recording, verdict.violations))
    // It was a run that shows something.
    const { calls, relays, resumes, takes, faults, hooks } = verdict.counts
    expect(Object.keys(calls).sort()).toEqual(['cancelled', 'ended', 'missed', 'rejected'])
    expect(relays.arrived).toBeGreaterThan(fewestRelays)
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

/** Whether it was a run that shows something, as far as people's phones know. */
function isEnough(traces: readonly Trace[]): boolean {
  const relays = traces.flatMap(({ entries }) => entries.filter((each) => each.kind === 'in' && isRelay(each.frame)))
  return relays.length > fewestRelays && traces.some(hasTaken)
}

function hasTaken({ entries }: Trace): boolean {
  const asked = new Set(
    entries.flatMap((each) => (each.kind === 'out' && each.frame.event === 'call.take' ? [each.frame.request_id] : [])),
  )
  return entries.some(({ kind, ...each }) => {
    return kind === 'in' && 'frame' in each && each.frame.event === 'call.ack' && asked.has(each.frame.request_id)
  })
}

/** What tells most of a failure where there is room for some lines: the first violations, and how their person's sockets went. */
function digestOf(recording: Recording, violations: readonly Violation[]): string {
  const { user, at = 0 } = violations.find((one) => one.user !== undefined) ?? {}
  const visits = user === undefined ? [] : visitsOf(recording, user, at + 10_000)
  const lines = [...violations.slice(0, 6).map(lineOf), ...visits.slice(-30)]
  return [`${violations.length} violations`, ...lines.map((line) => `+ ${line}`)].join('\n')
}
