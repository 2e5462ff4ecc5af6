/**
 * The command line.
 *
 *   await runCommandLine(args, surroundings) → the exit code
 */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import description from '../../package.json' with { type: 'json' }
import { settings } from '../config/settings.ts'
import { StoreError } from '../ports/store-error.ts'
import { addAuditCommand } from './audit.ts'
import { addBackupCommand } from './backup.ts'
import { addCallCommands } from './call.ts'
import { CommandFailure, exitCodes, type Outside, readConfig, type Surroundings, visibleLines } from './command.ts'
import { findSlip, isHidden } from './command-table.ts'
import { addCompletionCommand } from './completion.ts'
import { addConfigCommands, fileProblems, fileWarnings } from './config.ts'
import { addConformanceCommand } from './conformance.ts'
import { addGroupCommands } from './groups.ts'
import { addJwtKeyCommand } from './jwt-key.ts'
import { addKeyCommands } from './keys.ts'
import { lanEnvironment } from './lan.ts'
import { addMigrateCommand } from './migrate.ts'
import { addOverviewCommands } from './overview.ts'
import { addParticipantCommands } from './participant.ts'
import { addPhoneCommand } from './phone/phone.ts'
import { addProductCommands } from './products.ts'
import { addTokenCommands } from './token.ts'
import { addTurnCommands } from './turn.ts'
import { addVapidCommand } from './vapid.ts'
import { addWebhookCommands } from './webhooks.ts'
import { launchedOption, workerOption } from './worker-process.ts'

const help = `
Start here:
  $ ringwire keys create --product shop      make a key for an application backend
  $ ringwire serve                           run the service; Ctrl-C stops it
  $ ringwire token --product shop --user ann --role customer --peer-role agent
                                             a token for a test, without a backend
  $ ringwire phone --product shop --user ann --role customer --peer-role agent
                                             call from the terminal; help in it says what to type

Try it with two browser tabs, no backend needed:
  $ RINGWIRE_DEMO=1 ringwire serve

ringwire COMMAND --help lists the options of a command, with their units and defaults.
Settings are environment variables: ringwire config list explains them, ringwire config check shows what they are now.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no such key or token not valid.
`

const settingNames = Object.values<{ readonly name: string }>(settings).map(({ name }) => name)

interface ServeFlags {
  readonly workers?: string
  readonly lan?: boolean
  readonly asWorkerOfThisNode?: number
  readonly asChildOfTheLauncher?: boolean
}

export async function runCommandLine(args: readonly string[], outside: Outside): Promise<number> {
  const surroundings = { ...outside, warnOnce: createWarnings(outside) }
  let exitCode: number = exitCodes.done
  const program = createProgram(surroundings, (code) => {
    exitCode = code
  })
  try {
    if (args.length === 0) {
      surroundings.err(program.helpInformation() + help)
      return exitCodes.usage
    }
    const slip = findSlip(program, args, settingNames)
    if (slip !== undefined) slip.at.error(slip.message, { code: 'ringwire.slip', exitCode: exitCodes.usage })
    await program.parseAsync([...args], { from: 'user' })
    return exitCode
  } catch (error) {
    return endWith(error, surroundings)
  }
}

/** A command may read its configuration several times. */
function createWarnings({ err }: Pick<Outside, 'err'>): (text: string) => void {
  const said = new Set<string>()
  return (text) => {
    if (!said.has(text)) err(`warning: ${text}\n`)
    said.add(text)
  }
}

/** Every command, none of them run. */
export function createProgram(surroundings: Surroundings, exit: (code: number) => void): Command {
  const program = new Command('ringwire')
    .description('Call signaling between two participants of an application.')
    .version(versionText(), '--version', 'print the version')
    .addHelpText('after', help)
    .showHelpAfterError('Add --help for help.')
    .exitOverride()
    .configureOutput({
      writeOut: surroundings.out,
      writeErr: (text) => surroundings.err(visibleLines(text)),
      outputError: (text) => surroundings.err(inRed(surroundings, visibleLines(text))),
    })
    .configureHelp({ visibleCommands, subcommandTerm })
  program
    .command('serve')
    .description('Run the service until SIGTERM or SIGINT. It prints one line with its URL when it listens.')
    .option(
      '--workers <count>',
      'processes that share the port, or auto: one a core (default: RINGWIRE_WORKERS, which is 1)',
    )
    .option('--lan', 'show the demo to phones in the same network, over https with a certificate that is made for it')
    .addOption(new Option(`${workerOption} <number>`, 'be one of them').argParser(readWorker).hideHelp())
    .addOption(new Option(launchedOption, 'end with the launcher').hideHelp())
    .action(async ({ workers, lan, asWorkerOfThisNode: worker, asChildOfTheLauncher: isLaunched }: ServeFlags) => {
      const given = workers === undefined ? surroundings.env : { ...surroundings.env, RINGWIRE_WORKERS: workers }
      const env = lan ? lanEnvironment({ ...surroundings, env: given }) : given
      const { config, warnings } = readConfig({ env })
      const problems = fileProblems(config)
      if (problems.length > 0) throw new CommandFailure(exitCodes.failed, problems.join('\n'))
      const all = worker === undefined ? [...warnings, ...fileWarnings(config, process.platform)] : []
      // A person starts the demo and may see no log: the log of a start that failed is not shown.
      const isShown = config.demo !== false
      if (isShown) for (const warning of all) surroundings.warnOnce(warning)
      exit(await surroundings.serve(config, isShown ? [] : all, { worker, isLaunched: isLaunched === true }))
    })
  addKeyCommands(program, surroundings)
  addProductCommands(program, surroundings)
  addGroupCommands(program, surroundings)
  addWebhookCommands(program, surroundings)
  addTokenCommands(program, surroundings)
  addPhoneCommand(program, surroundings, exit)
  addConformanceCommand(program, surroundings, exit)
  addCallCommands(program, surroundings)
  addParticipantCommands(program, surroundings)
  addJwtKeyCommand(program, surroundings)
  addTurnCommands(program, surroundings)
  addVapidCommand(program, surroundings)
  addConfigCommands(program, surroundings)
  addOverviewCommands(program, surroundings)
  addAuditCommand(program, surroundings)
  addMigrateCommand(program, surroundings)
  addBackupCommand(program, surroundings)
  addCompletionCommand(program, surroundings)
  program
    .command('version')
    .description('Print the version.')
    .action(() => surroundings.out(`${versionText()}\n`))
  // The help of a group is that of its commands: `ringwire token --help` says what `ringwire token` takes.
  for (const group of program.commands.filter(({ commands }) => commands.length > 0)) {
    group.addHelpText('after', () => `\n${group.commands.map((command) => command.helpInformation()).join('\n')}`)
  }
  return program
}

/** The help of the program lists what can be run, and no groups. */
function visibleCommands(command: Command): Command[] {
  const shown = command.commands.filter((child) => !isHidden(child))
  return command.parent === null ? shown.flatMap((child) => leavesOf(child)) : shown
}

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)
}

function subcommandTerm(command: Command): string {
  const above = command.parent?.parent == null ? '' : `${command.parent.name()} `
  const args = command.registeredArguments.map((arg) => (arg.required ? ` <${arg.name()}>` : ` [${arg.name()}]`))
  return `${above}${command.name()}${args.join('')}`
}

function readWorker(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('It has to be a number from 1.')
  return Number(text)
}

function versionText(): string {
  return `${description.name} ${description.version} (Bun ${Bun.version})`
}

/** The first line; what follows it is a hint. */
function inRed({ errorTerminal }: Surroundings, text: string): string {
  const end = text.indexOf('\n')
  return errorTerminal === undefined ? text : `${errorTerminal.paint('bad', text.slice(0, end))}${text.slice(end)}`
}

/** What a command ends with is told in one place; a bug goes on to the caller of the command line. */
function endWith(error: unknown, surroundings: Surroundings): number {
  // Commander has already written its message; help and version are not mistakes.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
  if (error instanceof CommandFailure) {
    surroundings.err(inRed(surroundings, `${error.message}\n`))
    return error.exitCode
  }
  if (error instanceof StoreError) {
    surroundings.err(inRed(surroundings, `The store cannot be used: ${error.message}\n`))
    return exitCodes.failed
  }
  throw error
}
