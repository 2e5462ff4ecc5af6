import { afterEach, beforeEach, expect } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkStores, migrate } from '../backend.ts'
import type { Config } from '../config/config.ts'
import { openSqlite } from '../stores/sqlite/open.ts'
import { runCommandLine } from './program.ts'

/** Of the test that is running. */
export let dataDir: string

/** Each test of the file has a data directory of its own. */
export function useDataDirs(): void {
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'ringwire-cli-'))
  })
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }))
}

export interface Ran {
  code: number
  out: string
  err: string
  served: Config | undefined
  /** What the service is given to log when it starts. */
  warnings: readonly string[]
}

/** Runs the command line as a process would, on the data directory of the test. */
export async function run(
  args: string | readonly string[],
  options: { env?: Record<string, string>; input?: string; now?: number } = {},
): Promise<Ran> {
  const ran: Ran = { code: -1, out: '', err: '', served: undefined, warnings: [] }
  ran.code = await runCommandLine(typeof args === 'string' ? args.split(' ').filter(Boolean) : args, {
    env: { RINGWIRE_DATA_DIR: dataDir, ...options.env },
    now: () => options.now ?? Date.UTC(2026, 0, 1),
    out: (text) => {
      ran.out += text
    },
    err: (text) => {
      ran.err += text
    },
    terminal: undefined,
    errorTerminal: undefined,
    // Nobody sits there.
    ask: async () => undefined,
    openConsole: () => {
      throw new Error('not asked for')
    },
    stopped: () => new Promise(() => {}),
    readInput: async () => options.input ?? '',
    openStore: (config) =>
      openSqlite({ dataDir: config.dataDir, synchronous: config.sqliteSynchronous, exclusive: false }),
    checkStores,
    backUp: () => Promise.reject(new Error('not asked for')),
    migrate,
    serve: async (config, warnings) => {
      ran.served = config
      ran.warnings = warnings
      return 7
    },
  })
  return ran
}

/** What it prints as JSON, where it ends with 0. */
export async function json<T>(args: string, options?: Parameters<typeof run>[1]): Promise<T> {
  const { code, out, err } = await run(`${args} --json`, options)
  // The first command of a test begins the data directory, and says so.
  expect([args, code, err.replace(/^.* was begun as a new data directory.*\n/, '')]).toEqual([args, 0, ''])
  return JSON.parse(out) as T
}

/** A file of the data directory that every account may read. */
export function openToAll(name: string): string {
  const file = join(dataDir, name)
  writeFileSync(file, '')
  chmodSync(file, 0o644)
  return file
}
