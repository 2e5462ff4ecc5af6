import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const deploy = new URL('../../../../deploy/', import.meta.url).pathname

/** The part of a service in compose.yaml that the tests read. */
export interface ComposeService {
  readonly image: string
  readonly command?: readonly string[]
  readonly entrypoint?: readonly string[]
  readonly restart?: string
  readonly env_file?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly configs?: readonly { readonly source: string; readonly target: string }[]
  readonly depends_on?: unknown
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly networks?: unknown
  readonly ports?: readonly string[]
  readonly secrets?: readonly string[]
  readonly read_only?: boolean
  readonly mem_limit?: string
  readonly cpus?: number
  readonly pids_limit?: number
  readonly logging?: { readonly driver: string; readonly options: Readonly<Record<string, string>> }
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly configs: Readonly<Record<string, { readonly content: string }>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
  readonly volumes: Readonly<Record<string, unknown>>
}

export type Variables = Readonly<Record<string, string>>

const variable = /\$\{(\w+):\?\}/g

/** compose.yaml with its variables put in, as Compose does it; one that is missing stops. */
export function readCompose(variables: Variables): Compose {
  const text = readFileSync(join(deploy, 'compose.yaml'), 'utf8').replace(variable, (_, name: string) => {
    const value = variables[name]
    if (value === undefined || value === '') throw new Error(`${name} is not set`)
    return value
  })
  if (text.replaceAll('$$', '').includes('$')) {
    throw new Error('compose.yaml has a variable that is not written as one that has to be set')
  }
  return Bun.YAML.parse(text.replaceAll('$$', '$')) as Compose
}

/** The variables that compose.yaml asks for. */
export function variablesOfCompose(): Set<string> {
  const text = readFileSync(join(deploy, 'compose.yaml'), 'utf8')
  return new Set([...text.matchAll(variable)].map(([, name = '']) => name))
}

/** `NAME=value` lines, as in an environment file. */
export function readEnvironment(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

/** What the process of a service is started with: its file, and over it what compose.yaml says. */
export function environmentOf(service: ComposeService, file: Variables): Record<string, string> {
  return { ...(service.env_file === undefined ? {} : file), ...service.environment }
}

/** Runs make-secrets.sh for a directory, as root or with a `chown` of the test in `path`; gives the directory of the secrets. */
export function makeSecrets(directory: string, path = process.env.PATH ?? ''): string {
  mkdirSync(join(directory, 'deploy'), { recursive: true })
  cpSync(join(deploy, 'make-secrets.sh'), join(directory, 'deploy', 'make-secrets.sh'))
  const { success, stderr } = Bun.spawnSync([join(directory, 'deploy', 'make-secrets.sh')], { env: { PATH: path } })
  if (!success) throw new Error(stderr.toString())
  return join(directory, 'deploy', 'secrets')
}

/** What is in the secrets, by the names of the files. */
export function readSecrets(directory: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), 'utf8').trimEnd()]),
  )
}
