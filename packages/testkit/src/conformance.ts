import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from './process.ts'
import { program } from './program.ts'
import { productKey } from './service.ts'

/** What `ringwire conformance --json-lines` says to the client under test. */
export type KitLine =
  | {
      readonly type: 'session'
      readonly url: string
      readonly session_url: string
      readonly client: { readonly user_id: string; readonly role: string }
      readonly peer: { readonly user_id: string; readonly role: string }
    }
  | { readonly type: 'do'; readonly action: string }
  | { readonly type: 'scenario' | 'over' | 'report'; readonly name?: string }

/** What tests read of a report. */
export interface KitReport {
  readonly rules: readonly {
    readonly rule: string
    readonly verdict: 'passed' | 'failed' | 'not seen'
    readonly failures: readonly { readonly scenario: string; readonly message: string }[]
  }[]
  readonly scenarios: readonly { readonly name: string; readonly outcome: string; readonly why?: string }[]
}

/** Runs the command as an automated client does: it reads each line and does what that says. */
export async function runKit(url: string, onLine: (line: KitLine) => void, args: readonly string[] = []) {
  const files = await makeTemporaryDirectory()
  const file = join(files.path, 'report.json')
  const command = [...program, 'conformance', '--json-lines', '--json', file, ...args]
  const env = { RINGWIRE_URL: url, RINGWIRE_KEY_ID: productKey.id, RINGWIRE_KEY_SECRET: productKey.secret }
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: files.path, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  try {
    let rest = ''
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) onLine(JSON.parse(line) as KitLine)
    }
    const code = await child.exited
    const written = readFileSync(file, 'utf8')
    return { code, written, report: JSON.parse(written) as KitReport }
  } finally {
    child.kill()
    await files.remove()
  }
}

/** What a failed test shows: each rule that failed, and each scenario that ended early. */
export function problemsOf({ rules, scenarios }: KitReport): string[] {
  return [
    ...rules.flatMap(({ rule, failures }) => failures.map((it) => `${rule}, ${it.scenario}: ${it.message}`)),
    ...scenarios.filter(({ outcome }) => outcome === 'stopped').map(({ name, why }) => `stopped: ${name}: ${why}`),
  ]
}

export function verdictsOf({ rules }: KitReport, wanted: KitReport['rules'][number]['verdict']): string[] {
  return rules.filter(({ verdict }) => verdict === wanted).map(({ rule }) => rule)
}
