/** `ringwire config …`: what the environment says. */
import { accessSync, constants } from 'node:fs'
import type { Command } from 'commander'
import { type Config, describeConfig, loadConfig, settingRows } from '../config.ts'
import { CommandFailure, exitCodes, printJson, printTable, type Surroundings } from './command.ts'

export function addConfigCommands(program: Command, surroundings: Surroundings): void {
  const config = program.command('config').description('The configuration, which is read from the environment.')
  config
    .command('check')
    .description('Say what every setting is, and what is wrong. Secrets are not shown.')
    .option('--json', 'print JSON')
    .action((options) => check(surroundings, options))
  config
    .command('list')
    .description('List every setting with its default and what it means.')
    .option('--json', 'print JSON')
    .action((options) => list(surroundings, options))
}

function check(surroundings: Surroundings, options: { json?: boolean }): void {
  const loaded = loadConfig(surroundings.env)
  const problems = loaded.ok ? fileProblems(loaded.config) : loaded.problems
  const settings = describeConfig(surroundings.env)
  if (options.json) {
    printJson(surroundings, { ok: problems.length === 0, problems, warnings: loaded.warnings, settings })
  } else {
    const rows = settings.map(({ name, value, source }) => [name, value, source === 'set' ? 'set' : ''])
    printTable(surroundings, ['SETTING', 'VALUE', ''], rows)
    for (const warning of loaded.warnings) surroundings.err(`warning: ${warning}\n`)
  }
  if (problems.length > 0) throw new CommandFailure(exitCodes.failed, problems.join('\n'))
  if (!options.json) surroundings.err('The configuration is good.\n')
}

/** Files that are named have to be there before the service starts. */
export function fileProblems(config: Pick<Config, 'tlsCert' | 'tlsKey' | 'databaseUrl'>): string[] {
  const { databaseUrl } = config
  const files = [
    ['RINGWIRE_TLS_CERT', config.tlsCert],
    ['RINGWIRE_TLS_KEY', config.tlsKey],
    ['sslrootcert in DATABASE_URL', databaseUrl === null ? null : new URL(databaseUrl).searchParams.get('sslrootcert')],
  ] as const
  return files.flatMap(([name, path]) => (path === null || isReadable(path) ? [] : [`${name} names no readable file`]))
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK)
    return true
  } catch {
    return false
  }
}

function list(surroundings: Surroundings, options: { json?: boolean }): void {
  const rows = settingRows()
  if (options.json) {
    printJson(surroundings, rows)
    return
  }
  for (const { name, type, unit, description, ...row } of rows) {
    const suffix = unit === '' ? '' : ` ${unit}`
    surroundings.out(`${name}\n    ${description}\n    ${type}; default: ${row.default}${suffix}\n`)
  }
}
