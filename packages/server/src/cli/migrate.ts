/** `ringwire migrate`: from the data directory to PostgreSQL. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { hasJwtSecrets, jwtSecretsFile, loadJwtSecrets, writeJwtSecrets } from '../auth/jwt-secrets.ts'
import type { Config } from '../config/config.ts'
import { type Migrated, MigrationRefusal } from '../ports/migration.ts'
import { StoreError } from '../ports/store-error.ts'
import {
  CommandFailure,
  exitCodes,
  inDataDir,
  printJson,
  requireConfig,
  requireOpen,
  type Surroundings,
} from './command.ts'

const help = `
It copies all or nothing: if it is interrupted, run it again. The data directory stays as it is.
The database has to hold no calls yet. Before it ends, both sides are counted and compared.

  $ ringwire migrate                          with RINGWIRE_DATA_DIR and DATABASE_URL set, the service stopped
  $ ringwire migrate --print-jwt-secrets      the RINGWIRE_JWT_SECRETS that every node needs, so that tokens stay valid
`

interface MigrateOptions {
  printJwtSecrets?: boolean
  json?: boolean
}

export function addMigrateCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('migrate')
    .description('Copy calls, keys and settings of the data directory (SQLite) to PostgreSQL (DATABASE_URL).')
    .option('--print-jwt-secrets', 'print the secrets that sign session tokens, and copy nothing')
    .option('--json', 'print JSON instead of text')
    .addHelpText('after', help)
    .action((options: MigrateOptions) =>
      options.printJwtSecrets ? printJwtSecrets(surroundings) : migrate(surroundings, options),
    )
}

/** A secret only goes to stdout, and only on request. */
async function printJwtSecrets(surroundings: Surroundings): Promise<void> {
  // Several nodes are refused without these secrets, and here somebody asks what they are.
  const { config } = requireConfig({ ...surroundings, env: { ...surroundings.env, REDIS_URL: undefined } })
  if (!hasJwtSecrets(config)) {
    requireOpen(config)
    const path = resolve(config.dataDir, jwtSecretsFile)
    throw new CommandFailure(exitCodes.negative, `There is no ${path}: no token was issued with this data directory.`)
  }
  const secrets = await inDataDir(config, () => loadJwtSecrets(config))
  surroundings.out(`${writeJwtSecrets(secrets)}\n`)
}

async function migrate(surroundings: Surroundings, { json }: MigrateOptions): Promise<void> {
  const { config } = requireConfig(surroundings)
  const { databaseUrl, dataDir } = config
  if (databaseUrl === null) {
    throw new CommandFailure(exitCodes.failed, 'DATABASE_URL is not set: it names the database to copy to.')
  }
  let told = surroundings.now()
  const onProgress = (copied: number, of: number) => {
    if (surroundings.now() - told < progressMs) return
    told = surroundings.now()
    surroundings.err(`${figure(copied)} of ${figure(of)} calls\n`)
  }
  const now = surroundings.now()
  const migrated = await orSay(() => surroundings.migrate({ dataDir, url: databaseUrl, now, onProgress }))
  if (json) return printJson(surroundings, describe(migrated))
  surroundings.out(`${summary(migrated)}\nSHA-256 of calls and events on both sides: ${migrated.sha256}\n`)
  surroundings.err(nextSteps(config))
}

const progressMs = 5000
const figure = (count: number) => count.toLocaleString('en')

async function orSay(run: () => Promise<Migrated>): Promise<Migrated> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof MigrationRefusal) throw new CommandFailure(exitCodes.failed, error.message)
    if (!(error instanceof StoreError)) throw error
    const outcome =
      error.kind === 'unknown'
        ? 'Run it again: it says whether all was copied.'
        : 'Nothing was copied. It can be run again.'
    throw new CommandFailure(exitCodes.failed, `${error.message}\n${outcome}`)
  }
}

function describe({ copied, calls, live, events, keys, settings, sha256 }: Migrated) {
  return { copied, calls, live_calls: live, events, keys, settings, sha256 }
}

function summary({ copied, calls, live, events, keys, settings }: Migrated): string {
  const what = `${figure(calls)} calls (${figure(live)} live), ${figure(events)} events, ${figure(keys)} keys, ${figure(settings)} products with settings`
  return copied ? `Copied: ${what}.` : `All of it was there already, nothing was copied: ${what}.`
}

function nextSteps(config: Config): string {
  const start =
    'Start the service with DATABASE_URL. Without this setting, it would go on with the data directory as it was.\n'
  if (config.jwtSecrets !== null) return `RINGWIRE_JWT_SECRETS stays as it is: every node needs the same.\n${start}`
  if (!hasJwtSecrets(config)) return start
  const path = resolve(config.dataDir, jwtSecretsFile)
  return (
    `Tokens are signed with ${path}. A node with another data directory needs them in\n` +
    `RINGWIRE_JWT_SECRETS: ringwire migrate --print-jwt-secrets prints the value.\n${start}`
  )
}
