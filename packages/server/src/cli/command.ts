/** What every command of the command line has: where it writes, what it may use, and how it ends. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Config, type Environment, loadConfig, unknownVariables } from '../config/config.ts'
import { whyClosed, whyUnusable } from '../config/data-dir.ts'
import type { AuditStore } from '../ports/audit.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { Devices } from '../ports/devices.ts'
import type { Groups } from '../ports/groups.ts'
import type { Migrated, MigrationOptions } from '../ports/migration.ts'
import type { ProductStore } from '../ports/product-store.ts'
import type { CheckedStore } from '../ports/store-check.ts'
import type { TimelineStore } from '../ports/timeline.ts'
import type { WebhookStore } from '../ports/webhooks.ts'
import { auditedStore } from './audited-store.ts'

/** The stores of a data directory. */
export interface OpenStore {
  readonly calls: CallStore
  readonly products: ProductStore
  readonly devices: Devices
  readonly groups: Groups
  readonly webhooks: WebhookStore
  readonly timeline: TimelineStore
  readonly audit: AuditStore
  close(): void | Promise<void>
}

export type Tone = 'strong' | 'good' | 'warn' | 'bad' | 'dim'

/** Standard output where somebody looks at it. */
export interface Terminal {
  /** In a colour, where colours are wanted. */
  paint(tone: Tone, text: string): string
}

/** Lines that are typed, or come from a pipe. */
export interface LineConsole {
  /** Both standard input and output are a terminal. */
  readonly isInteractive: boolean
  /** null where no more come. */
  nextLine(prompt?: string): Promise<string | null>
  /** A line on standard output. */
  print(line: string): void
  /** A line for a person at the terminal: among the others there, else on standard error. */
  note(line: string): void
  close(): void
}

/** What every command is given: the world outside, and the warnings of this run. */
export interface Surroundings extends Outside {
  /** A line on standard error; once, however often the command comes upon it. */
  warnOnce(text: string): void
}

/** The world outside, given by main.ts. */
export interface Outside {
  readonly env: Environment
  readonly now: () => number
  out(text: string): void
  err(text: string): void
  readInput(): Promise<string>
  /** Set if standard output is a terminal, or must look like one. */
  readonly terminal: Terminal | undefined
  /** The same of standard error. */
  readonly errorTerminal: Terminal | undefined
  /** The answer of the person at the terminal; undefined if there is nobody. */
  ask(question: string): Promise<string | undefined>
  /** `words`: what a line can begin with. */
  openConsole(words: readonly string[]): LineConsole
  /** Resolves when somebody asks this process to stop; from then on it does not end by itself at that. */
  stopped(): Promise<unknown>
  /** Opens the store beside a running service. */
  openStore(config: Config): Promise<OpenStore>
  /** Looks at every configured store, and changes nothing. */
  checkStores(config: Config): Promise<readonly (CheckedStore & { readonly store: string })[]>
  /** Copies the data directory into the database. */
  migrate(options: MigrationOptions): Promise<Migrated>
  /** Copies the data directory, also while it is served. */
  backUp(config: Config, target: string): Promise<{ readonly calls: number; readonly bytes: number }>
  /** Runs the service until a signal stops it, and gives the exit code. */
  serve(config: Config, warnings: readonly string[], startedBy: StartedBy): Promise<number>
}

/** The process that started this one, where this one ends with it. */
export interface StartedBy {
  /** By the first of several: which of them this is. */
  readonly worker?: number | undefined
  readonly isLaunched: boolean
}

export const exitCodes = {
  done: 0,
  /** Refused, or it went wrong. */
  failed: 1,
  /** The command line itself is wrong. */
  usage: 2,
  /** There is no such key, or the token is not valid. */
  negative: 3,
} as const

/** Ends a command: `message` goes to stderr. */
export class CommandFailure extends Error {
  readonly exitCode: number
  constructor(exitCode: number, message: string) {
    super(message)
    this.name = 'CommandFailure'
    this.exitCode = exitCode
  }
}

/** The configuration, or the end with one line per problem. A variable that is no setting is a warning. */
export function requireConfig(surroundings: Surroundings): { config: Config } {
  const { config } = readConfig(surroundings)
  for (const warning of unknownVariables(surroundings.env)) surroundings.warnOnce(warning)
  return { config }
}

/** The same for a command that shows its warnings itself. */
export function readConfig({ env }: Pick<Surroundings, 'env'>): { config: Config; warnings: readonly string[] } {
  const loaded = loadConfig(env)
  if (!loaded.ok) {
    const warnings = loaded.warnings.map((warning) => `warning: ${warning}`)
    throw new CommandFailure(exitCodes.failed, [...loaded.problems, ...warnings].join('\n'))
  }
  return { config: loaded.config, warnings: loaded.warnings }
}

/** Does what needs the data directory; one that cannot be used ends the command with a line that names it. */
export async function inDataDir<T>(config: Config, open: () => T | Promise<T>): Promise<T> {
  try {
    return await open()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailure(exitCodes.failed, unusableDataDir(config.dataDir, reason))
  }
}

export function unusableDataDir(dataDir: string, reason: string): string {
  return `The data directory ${dataDir} (RINGWIRE_DATA_DIR) cannot be used: ${reason}`
}

/** Ends a command that would not find what is in a data directory that it cannot look into. */
export function requireOpen({ dataDir }: Pick<Config, 'dataDir'>): void {
  endWhere(dataDir, whyClosed(dataDir))
}

/** Ends a command that could make nothing in the data directory. */
export function requireUsable({ dataDir }: Pick<Config, 'dataDir'>): void {
  endWhere(dataDir, whyUnusable(dataDir))
}

function endWhere(dataDir: string, reason: string | undefined): void {
  if (reason !== undefined) throw new CommandFailure(exitCodes.failed, unusableDataDir(dataDir, reason))
}

/** The file of SQLite in a data directory. */
export const storeFile = 'ringwire.db'

/** Whether there is a store to open: opening one makes a data directory where there is none. */
export function hasStore({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>): boolean {
  return databaseUrl !== null || existsSync(join(dataDir, storeFile))
}

/** Ends a command that finds no store. `so`: what is not done for that; `product`: of a first key, as a shell reads it. */
export function requireStore(config: Pick<Config, 'databaseUrl' | 'dataDir'>, so = '', product = '<name>'): void {
  if (hasStore(config)) return
  requireOpen(config)
  const message = `There is no data directory of a service at ${resolve(config.dataDir)} (RINGWIRE_DATA_DIR)${so}. Run this where the service runs, or set RINGWIRE_DATA_DIR to its directory. A new one begins with: ringwire keys create --product ${product}`
  throw new CommandFailure(exitCodes.failed, message)
}

export type StoreWork<T> = (store: OpenStore, config: Config) => T | Promise<T>

/** Opens the store that is there, for one command, and closes it whatever happens. */
export function withStore<T>(surroundings: Surroundings, work: StoreWork<T>): Promise<T> {
  return withAnyStore(surroundings, work, false)
}

/** The same; a data directory is made where there is none. */
export function withNewStore<T>(surroundings: Surroundings, work: StoreWork<T>): Promise<T> {
  return withAnyStore(surroundings, work, true)
}

async function withAnyStore<T>(surroundings: Surroundings, work: StoreWork<T>, mayMake: boolean): Promise<T> {
  const { config } = requireConfig(surroundings)
  if (!mayMake) requireStore(config)
  const isThere = hasStore(config)
  const store = await openStoreOf(surroundings, config)
  try {
    // Most often this was run in another folder than the service.
    if (!isThere) surroundings.err(begun(config))
    return await work(auditedStore(store, surroundings), config)
  } finally {
    await store.close()
  }
}

function begun({ dataDir }: Config): string {
  return `${resolve(dataDir)} (RINGWIRE_DATA_DIR) was begun as a new data directory: a service that runs with another one does not know of this.\n`
}

async function openStoreOf(surroundings: Surroundings, config: Config): Promise<OpenStore> {
  if (config.databaseUrl === null) return inDataDir(config, () => surroundings.openStore(config))
  try {
    return await surroundings.openStore(config)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailure(exitCodes.failed, `The database (DATABASE_URL) cannot be used: ${reason}`)
  }
}

/**
 * Ids and names are what applications made of them: what moves a terminal's cursor, or turns the order of its text, is
 * shown as an escape, which in JSON says the same.
 */
export function visible(text: string): string {
  return text.replaceAll(unseen, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A text of several lines, of which none may move the cursor. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}

/** Control characters, marks of direction, ends of lines of Unicode. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const unseen = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

export function printJson(surroundings: Surroundings, value: unknown): void {
  // The lines are its own; a line break in a text was escaped before.
  surroundings.out(`${visibleLines(JSON.stringify(value, null, 2))}\n`)
}

/** Which words of a table are good news and which are not: for a terminal. */
export type Tones = Readonly<Record<string, Tone>>

/** Rows under a heading, in columns. Without a terminal they stay as they always were, for programs. */
export function printTable(
  { out, terminal }: Pick<Surroundings, 'out' | 'terminal'>,
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  tones: Tones = {},
): void {
  const shown = [heading, ...rows].map((row) => row.map(visible))
  // In a terminal a sign of Chinese is two columns wide; programs count characters.
  const widthOf = terminal === undefined ? (cell: string) => cell.length : (cell: string) => Bun.stringWidth(cell)
  const widths = heading.map((_, column) => Math.max(...shown.map((row) => widthOf(row[column] ?? ''))))
  for (const [index, row] of shown.entries()) {
    const cells = row.map((cell, column) => {
      const isLast = column === row.length - 1
      const space = isLast ? '' : ' '.repeat((widths[column] ?? 0) - widthOf(cell))
      const tone = index === 0 ? 'strong' : Object.hasOwn(tones, cell) ? tones[cell] : undefined
      return `${terminal === undefined || tone === undefined ? cell : terminal.paint(tone, cell)}${space}`
    })
    out(`${cells.join('  ').trimEnd()}\n`)
    if (index === 0 && terminal !== undefined) {
      out(`${terminal.paint('dim', widths.map((width) => '─'.repeat(width)).join('  '))}\n`)
    }
  }
}

/** Names and values, a line each; `width` is that of the names. */
export function printFields(
  { out, terminal }: Pick<Surroundings, 'out' | 'terminal'>,
  fields: readonly (readonly [name: string, value: string])[],
  width = Math.max(...fields.map(([name]) => name.length)),
): void {
  for (const [name, value] of fields) {
    const label = terminal === undefined ? name : terminal.paint('strong', name)
    out(`${label}${' '.repeat(Math.max(0, width - name.length))}  ${visible(value)}\n`)
  }
}
