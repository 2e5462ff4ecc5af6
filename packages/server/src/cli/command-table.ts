/**
 * The commands as data: what --help lists, what a slip is compared with, and what a shell completes.
 *
 *   tableOf(program)            → every command that can be run, with its options
 *   findSlip(program, args, variables) → the first word of the command line that is neither command nor option, or undefined
 */
import type { Command, Option } from 'commander'
import { nearest } from '../config/nearest.ts'

export interface CommandRow {
  /** `['keys', 'create']` */
  readonly path: readonly string[]
  readonly description: string
  readonly options: readonly Option[]
  /** Names of its arguments. */
  readonly args: readonly { readonly name: string; readonly choices: readonly string[] }[]
  /** It is what the command above it does when none of its commands is named. */
  readonly isDefault: boolean
}

export function tableOf(command: Command, above: readonly string[] = []): CommandRow[] {
  const help = command.createHelp()
  return command.commands
    .filter((child) => child.name() !== 'help' && !isHidden(child))
    .flatMap((child) => {
      const path = [...above, child.name()]
      if (child.commands.length > 0) return tableOf(child, path)
      const args = child.registeredArguments.map((arg) => ({ name: arg.name(), choices: arg.argChoices ?? [] }))
      const options = help.visibleOptions(child)
      return [{ path, description: child.description(), options, args, isDefault: isDefault(command, child) }]
    })
}

// Commander has these two, and does not say so in its types.
function isDefault(group: Command, child: Command): boolean {
  return (group as unknown as { _defaultCommandName?: string | null })._defaultCommandName === child.name()
}
/** Whether the help leaves it out. */
export function isHidden(command: Command): boolean {
  return (command as unknown as { _hidden?: boolean })._hidden === true
}

export interface Slip {
  readonly message: string
  /** The command that does not know the word. */
  readonly at: Command
}

/**
 * Commander looks at options that are missing before those that are unknown, and gives what it does not know to a default
 * command: so `token --usr ann` would hear that --user is missing. `variables`: the settings, which some type as options.
 */
export function findSlip(
  program: Command,
  args: readonly string[],
  variables: readonly string[] = [],
): Slip | undefined {
  let at = program
  for (let index = 0; index < args.length; index++) {
    const word = args[index] ?? ''
    if (word === '--' || word === '--help' || word === '-h') return undefined
    if (word.startsWith('-') && word !== '-') {
      const [flag = ''] = word.split('=')
      const option = optionsOf(at).find(({ long, short }) => long === flag || short === flag)
      if (option === undefined) return unknownOption(at, flag, variables)
      if (option.required && !word.includes('=')) index++
      continue
    }
    if (at.commands.length === 0) continue
    if (word === 'help') return undefined
    const child = at.commands.find((command) => command.name() === word)
    if (child === undefined) return unknownCommand(at, word)
    at = child
  }
  return undefined
}

/** The options of the default command, too; hidden ones count, and are suggested to nobody. */
function optionsOf(command: Command): readonly Option[] {
  const fallback = command.commands.find((child) => isDefault(command, child))
  return [...command.options, ...(fallback?.options ?? [])]
}

/** `--port` and `--ringwire-port` mean RINGWIRE_PORT, `--database-url` DATABASE_URL: settings are not options. */
function settingHint(flag: string, variables: readonly string[], isOption: boolean): string | undefined {
  const words = flag.replace(/^-+/, '').replaceAll('-', '_').toUpperCase()
  const find = (text: string) => variables.find((name) => name === text || name === `RINGWIRE_${text}`)
  const all = 'ringwire config list explains all of them.'
  const variable = find(words)
  if (variable !== undefined) return `That is a setting: set ${variable} in the environment. ${all}`
  const near = isOption
    ? undefined
    : nearest(
        words,
        variables.map((name) => name.replace(/^RINGWIRE_/, '')),
      )
  return near && `Did you mean the setting ${find(near)}? It is set in the environment; ${all}`
}

function unknownOption(at: Command, flag: string, variables: readonly string[]): Slip {
  const shown = optionsOf(at).filter(({ hidden }) => !hidden)
  const names = [...shown.flatMap(({ long }) => long ?? []), '--help']
  const meant = nearest(flag, names)
  const hint = settingHint(flag, variables, meant !== undefined) ?? hintOf(meant, `Options: ${names.join(', ')}`)
  return { message: `error: unknown option '${shorten(flag)}'\n(${hint})`, at }
}

function unknownCommand(at: Command, word: string): Slip {
  // A token that was given to the wrong command must appear neither in the error nor where errors are kept.
  if (isTokenLike(word)) {
    return { message: 'error: a token is not a command; ringwire token verify reads it from standard input', at }
  }
  const names = at.commands.filter((command) => !isHidden(command)).map((command) => command.name())
  const rows = at.parent === null ? tableOf(at).filter(({ path }) => path.length > 1) : []
  const own = nearest(word, names)
  // `ringwire rotate` means `ringwire keys rotate`.
  const below = rows.filter(
    ({ path }) =>
      path.at(-1) ===
      (nearest(
        word,
        rows.map((row) => row.path.at(-1) ?? ''),
      ) ?? ''),
  )
  const meant = own ?? (below.length === 0 ? undefined : below.map(({ path }) => path.join(' ')).join(' or '))
  const hint = hintOf(meant, `Commands: ${names.join(', ')}`)
  return { message: `error: unknown command '${shorten(word)}'\n(${hint})`, at }
}

const hintOf = (meant: string | undefined, all: string) => (meant === undefined ? all : `Did you mean ${meant}?`)
const isTokenLike = (word: string) => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(word) && word.length > 40
const shorten = (word: string) => (word.length > 60 ? `${word.slice(0, 60)}…` : word)
