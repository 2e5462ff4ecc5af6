/** What a run found: as text for a terminal, as JSON, and as JUnit for CI. */
import { type RuleId, ruleTitles } from './rules.ts'
import type { RuleVerdict, Verdict } from './verdicts.ts'

export interface PlayedScenario {
  readonly name: string
  /** `stopped`: a check failed without which it cannot go on. `not played`: `why` says why. */
  readonly outcome: 'played' | 'stopped' | 'not played'
  readonly why?: string
  readonly duration_ms: number
}

export interface Report {
  readonly tested: 'service' | 'client'
  readonly url: string
  readonly started_at: string
  readonly duration_ms: number
  readonly summary: { readonly passed: number; readonly failed: number; readonly not_seen: number }
  readonly scenarios: readonly PlayedScenario[]
  readonly rules: readonly (RuleVerdict & { readonly title: string })[]
}

export function createReport(
  run: Pick<Report, 'tested' | 'url' | 'started_at' | 'duration_ms' | 'scenarios'>,
  verdicts: readonly RuleVerdict[],
): Report {
  const count = (wanted: Verdict) => verdicts.filter(({ verdict }) => verdict === wanted).length
  const summary = { passed: count('passed'), failed: count('failed'), not_seen: count('not seen') }
  return { ...run, summary, rules: verdicts.map((verdict) => ({ ...verdict, title: titleOf(verdict.rule) })) }
}

const titleOf = (rule: RuleId) => ruleTitles[rule]

/** The lines of a terminal, without its colours. */
export function textOf(report: Report): string {
  const lines = report.rules.flatMap(({ rule, verdict, title, failures }) => [
    `${verdict.padEnd(8)}  ${rule.padEnd(7)}  ${title}`,
    ...failures.flatMap(({ scenario, message, frames }) => [
      `            in "${scenario}": ${message}`,
      ...frames
        .slice(-8)
        .map(({ at_ms, who, kind, text }) => `              ${at_ms} ms ${who} ${arrows[kind]} ${text}`),
    ]),
  ])
  const idle = report.scenarios.filter(({ outcome }) => outcome === 'not played')
  const notes = idle.map(({ name, why }) => `not played: ${name} (${why ?? 'left out'})`)
  const { passed, failed, not_seen } = report.summary
  return `${[...lines, ...notes, `${passed} passed, ${failed} failed, ${not_seen} not seen`].join('\n')}\n`
}

const arrows = { sent: '→', received: '←', note: '·' } as const

/** One test case per rule; a rule that was not seen is a skipped one. */
export function junitOf({ tested, duration_ms, started_at, summary, rules }: Report): string {
  const cases = rules.map(({ rule, title, verdict, failures }) => {
    const open = `  <testcase classname="ringwire.conformance.${tested}" name="${xmlText(`${rule} ${title}`)}"`
    if (verdict === 'passed') return `${open}/>`
    if (verdict === 'not seen') return `${open}><skipped message="not seen"/></testcase>`
    const told = failures.map(({ scenario, message, frames }) => {
      const shown = frames.map(({ at_ms, who, kind, text }) => `${at_ms} ms ${who} ${arrows[kind]} ${text}`).join('\n')
      return `\n    <failure message="${xmlText(`${scenario}: ${message}`)}">${xmlText(shown)}</failure>`
    })
    return `${open}>${told.join('')}\n  </testcase>`
  })
  const counts = `tests="${rules.length}" failures="${summary.failed}" skipped="${summary.not_seen}"`
  const seconds = (duration_ms / 1_000).toFixed(3)
  const suite = `<testsuite name="ringwire conformance ${tested}" ${counts} time="${seconds}" timestamp="${started_at}">`
  return `<?xml version="1.0" encoding="UTF-8"?>\n${suite}\n${cases.join('\n')}\n</testsuite>\n`
}

/** XML 1.0 has no control characters, whatever they are written as. */
function xmlText(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll(forbidden, '�')
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ud800-\udfff\ufffe\uffff]/gu
