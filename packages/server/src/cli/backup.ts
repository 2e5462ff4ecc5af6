/** `ringwire backup`: a copy of the data directory, also while it is served. */
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { whyClosed, whyUnusable } from '../config/data-dir.ts'
import { CommandFailure, exitCodes, printJson, requireConfig, requireStore, type Surroundings } from './command.ts'

const help = `
The copy is a data directory: RINGWIRE_DATA_DIR=TARGET ringwire serve starts from it. It holds secrets, as the original.
Copying the files of a running service with other programs loses calls.

  $ ringwire backup /backups/2026-01-31
`

export function addBackupCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('backup <target>')
    .description('Copy the data directory (SQLite) to a new directory. The service may run meanwhile.')
    .option('--json', 'print JSON instead of text')
    .addHelpText('after', help)
    .action((target: string, options) => backup(surroundings, resolve(target), options))
}

async function backup(surroundings: Surroundings, target: string, { json }: { json?: boolean }): Promise<void> {
  const { config } = requireConfig(surroundings)
  if (config.databaseUrl !== null) {
    throw new CommandFailure(exitCodes.failed, 'Calls are in PostgreSQL (DATABASE_URL): back it up with pg_dump.')
  }
  requireStore(config, ', so there is nothing to copy')
  const { calls, bytes } = await backUpOrSay(surroundings, config, target)
  if (json) return printJson(surroundings, { target, calls, bytes })
  surroundings.out(`${target}: ${calls.toLocaleString('en')} calls, ${bytes.toLocaleString('en')} bytes\n`)
}

/** It may be either side that fails: the reason names the file. */
async function backUpOrSay({ backUp }: Surroundings, config: Config, target: string) {
  try {
    // It appears beside the target, and takes its name in the end.
    const unusable = whyClosed(target) ?? whyUnusable(dirname(target))
    if (unusable !== undefined) throw new Error(`${target} cannot be written: ${unusable}`)
    return await backUp(config, target)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailure(exitCodes.failed, `No backup was made: ${reason}`)
  }
}
