/**
 * The environment, read by the table of settings in settings.ts.
 *
 *   loadConfig(env)      → { ok: true, config, warnings } | { ok: false, problems, warnings }
 *   unknownVariables(env) → a warning for each variable that is not a setting; loadConfig has them among its warnings
 *   settingRows()        → one row per variable, for documents and help
 *   describeConfig(env)  → one row per variable with what it is set to; secrets do not show
 *
 * A secret may be in a file instead, which NAME_FILE names.
 */
import { contradictions, withoutEffect } from './contradictions.ts'
import type { JwtSecret } from './jwt-secrets.ts'
import { nearest } from './nearest.ts'
import { readSecretFile } from './secret-files.ts'
import type { Setting } from './setting.ts'
import { type Config, settings } from './settings.ts'
import {
  type BootstrapKey,
  isLoopbackHost,
  type MessageRate,
  type Parsed,
  type Rate,
  type TrustProxy,
} from './values.ts'

export type { BootstrapKey, Config, JwtSecret, MessageRate, Rate, TrustProxy }
export { isLoopbackHost }

export type Environment = Readonly<Record<string, string | undefined>>

export type LoadedConfig =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[]; readonly warnings: readonly string[] }

/** Reads the environment; all problems at once, one line each, every line naming its variable. */
export function loadConfig(env: Environment): LoadedConfig {
  const problems: string[] = []
  const warnings: string[] = []
  const secretFiles: string[] = []
  const values: Record<string, unknown> = { secretFiles }
  for (const [field, entry] of Object.entries<Setting<unknown>>(settings)) {
    const given = readSetting(env, entry)
    if (given === undefined) {
      values[field] = entry.fallback()
      continue
    }
    const { variable, path, text: read } = given
    if (path !== undefined && entry.secret) secretFiles.push(path)
    const parsed = read.ok ? entry.type.parse(read.value) : read
    if (parsed.ok) {
      values[field] = parsed.value
      secretFiles.push(...(parsed.secretFiles ?? []))
      for (const warning of parsed.warnings ?? []) warnings.push(`${variable}: ${warning}`)
    } else problems.push(`${variable} ${parsed.problem}`)
  }
  warnings.push(...unknownVariables(env))
  // A variable that could not be read is not judged a second time together with others.
  const config = values as Config
  problems.push(...contradictions(config))
  warnings.push(...withoutEffect(config))
  return problems.length === 0 ? { ok: true, config, warnings } : { ok: false, problems, warnings }
}

/** An empty variable counts as unset, as compose files and shells write it. */
function readVariable(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim()
  return value === '' ? undefined : value
}

interface Given {
  /** What problems name. */
  readonly variable: string
  /** Of the file that the variable names. */
  readonly path?: string
  readonly text: Parsed<string>
}

/** The text that a setting is given, by its variable or, where it may have one, by a file; undefined where it is not set. */
function readSetting(env: Environment, { name, hasFile }: Setting<unknown>): Given | undefined {
  const value = readVariable(env, name)
  const path = hasFile ? readVariable(env, fileVariable(name)) : undefined
  if (path === undefined) return value === undefined ? undefined : { variable: name, text: { ok: true, value } }
  if (value !== undefined) {
    return { variable: name, text: { ok: false, problem: `and ${fileVariable(name)} exclude each other` } }
  }
  return { variable: fileVariable(name), path, text: readSecretFile(path) }
}

/** The variable that names the file of a setting. */
export function fileVariable(name: string): string {
  return `${name}_FILE`
}

/** What commands that ask a running service read. */
const ofCommands = ['RINGWIRE_URL', 'RINGWIRE_KEY_ID', 'RINGWIRE_KEY_SECRET']

/** A line for each variable that looks like a setting but is not one. */
export function unknownVariables(env: Environment): string[] {
  const all = Object.values<Setting<unknown>>(settings)
  const known = new Set(all.flatMap(({ name, hasFile }) => (hasFile ? [name, fileVariable(name)] : [name])))
  for (const name of ofCommands) known.add(name)
  const unknown = Object.keys(env).filter((name) => name.startsWith(prefix) && !known.has(name))
  const lines = unknown.sort().map((name) => {
    const meant = meantBy(name, [...known])
    const hint = meant === undefined ? '' : `. Did you mean ${meant}?`
    return `${name} is not a setting of Ringwire; it is ignored${hint}`
  })
  return [...lines, ...unusedTelemetry(env, known)]
}

/** Variables of OpenTelemetry that have no effect here. Many are set for all programs of a machine, so they only matter with traces. */
function unusedTelemetry(env: Environment, known: ReadonlySet<string>): string[] {
  const { otlpEndpoint, otlpTracesEndpoint } = settings
  if (![otlpEndpoint, otlpTracesEndpoint].some(({ name }) => readVariable(env, name) !== undefined)) return []
  const unused = Object.keys(env).filter((name) => name.startsWith('OTEL_') && !known.has(name))
  return unused.sort().map((name) => `${name} has no effect on Ringwire`)
}

const prefix = 'RINGWIRE_'

/** All have the prefix, or none is meant to: with it, short names would look alike. */
function meantBy(name: string, known: readonly string[]): string | undefined {
  const bare = (variable: string) => variable.replace(prefix, '')
  const meant = nearest(bare(name), known.map(bare))
  return known.find((variable) => bare(variable) === meant)
}

export interface SettingRow {
  readonly name: string
  readonly type: string
  readonly default: string
  readonly unit: string
  readonly secret: boolean
  readonly hasFile: boolean
  readonly description: string
}

export function settingRows(): SettingRow[] {
  return Object.values<Setting<unknown>>(settings).map(
    ({ name, type, unit, secret, hasFile, description, ...entry }) => ({
      name,
      type: type.label,
      default: entry.default,
      unit,
      secret,
      hasFile,
      description,
    }),
  )
}

/** What each variable is set to. A secret shows only that it is set, or that a file has it. */
export function describeConfig(env: Environment): { name: string; value: string; source: 'set' | 'default' }[] {
  return Object.values<Setting<unknown>>(settings).map(({ name, secret, hasFile, ...entry }) => {
    const given = readVariable(env, name)
    if (given !== undefined) return { name, value: secret ? '(set, not shown)' : given, source: 'set' }
    const isInFile = hasFile && readVariable(env, fileVariable(name)) !== undefined
    return isInFile ? { name, value: '(from file)', source: 'set' } : { name, value: entry.default, source: 'default' }
  })
}
