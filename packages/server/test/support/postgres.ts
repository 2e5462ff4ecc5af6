import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort } from '@ringwire/testkit/ports'
import { SQL, type Subprocess } from 'bun'
import { findSystemProgram } from '../../../../scripts/system.mjs'

type Settings = Readonly<Record<string, string>>

const superuser = 'ringwire'
/** Test hosts may have little shared memory; nothing of a killed server may stay behind outside of its directory. */
const settings = {
  listen_addresses: '127.0.0.1',
  fsync: 'on',
  shared_buffers: '64MB',
  dynamic_shared_memory_type: 'mmap',
  max_connections: '200',
  max_wal_size: '256MB',
  log_min_messages: 'fatal',
  unix_socket_directories: '',
}

/** A server in which tests make databases of their own. */
export interface Databases {
  url(database?: string): string
  /** The address of a new, empty database. */
  database(): Promise<string>
  /** Runs one statement on a connection of its own. */
  // biome-ignore lint/suspicious/noExplicitAny: rows are whatever the statement gives.
  query(statement: string, url?: string): Promise<any[]>
  dispose(): Promise<void>
}

/**
 * The server that a run of the tests shares, where there is one, else a server of its own. A server that is broken or
 * configured on purpose is never shared: for that there is `Postgres.start()`.
 */
export async function openDatabases(): Promise<Databases> {
  const shared = process.env.RINGWIRE_TEST_POSTGRES
  return shared === undefined ? await Postgres.start() : new SharedPostgres(shared)
}

class SharedPostgres implements Databases {
  private readonly server: string
  private readonly made: string[] = []

  constructor(server: string) {
    this.server = server
  }

  url(database = 'postgres'): string {
    return `${this.server}/${database}`
  }

  query(statement: string, url = this.url()) {
    return queryOnce(statement, url)
  }

  async database(): Promise<string> {
    const name = newDatabaseName()
    this.made.push(name)
    await this.query(`CREATE DATABASE ${name}`)
    return this.url(name)
  }

  async dispose(): Promise<void> {
    for (const name of this.made) await this.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }
}

const mostLaunches = 100

/** A PostgreSQL server of its own, with all of its data in a directory that is removed at the end. */
export class Postgres implements Databases {
  /** What the server wrote to its log. */
  log = ''
  port: number
  readonly dataDir: string
  private readonly bin: string
  private readonly directory: string
  private readonly user: string[]
  private server: Subprocess<'ignore', 'ignore', 'pipe'> | undefined

  private constructor(bin: string, directory: string, user: string[], port: number) {
    this.bin = bin
    this.directory = directory
    this.dataDir = join(directory, 'data')
    this.user = user
    this.port = port
  }

  /** The files of a cluster, in a directory of their own that its maker removes: each server of a run begins with a copy. */
  static makeTemplate(): string {
    const postgres = Postgres.create(0)
    output(postgres.initdb())
    return postgres.directory
  }

  /** Starts a server on a cluster of its own. `extra` are settings of it. */
  static async start(extra: Settings = {}): Promise<Postgres> {
    const postgres = Postgres.create(await freePort())
    try {
      const made = process.env.RINGWIRE_TEST_POSTGRES_FILES
      output(made === undefined ? postgres.initdb() : ['cp', '-a', join(made, 'data'), postgres.dataDir])
      await postgres.upSomewhere(extra)
    } catch (error) {
      await postgres.dispose()
      throw error
    }
    return postgres
  }

  /** PostgreSQL refuses to run as root: then it runs as the system's own user for it. */
  private static create(port: number): Postgres {
    const program = findSystemProgram('postgresql')
    if (program === undefined) throw new Error('PostgreSQL is missing: node scripts/system.mjs postgresql')
    const directory = mkdtempSync(join(tmpdir(), 'ringwire-postgres-'))
    let user: string[] = []
    if (process.getuid?.() === 0) {
      const [uid, gid] = ['-u', '-g'].map((flag) => Number(output(['id', flag, 'postgres'])))
      chownSync(directory, uid as number, gid as number)
      user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--']
    }
    return new Postgres(dirname(program), directory, user, port)
  }

  /** The server itself runs with fsync; only making the files does not wait for the disk. */
  private initdb(): string[] {
    return this.command('initdb', [
      '-D',
      this.dataDir,
      '-U',
      superuser,
      '-A',
      'trust',
      '--no-sync',
      '-E',
      'UTF8',
      '--locale=C',
    ])
  }

  private command(program: string, args: readonly string[]): string[] {
    return [...this.user, join(this.bin, program), ...args]
  }

  get pid(): number {
    return this.server?.pid ?? 0
  }

  /** Its address without a database. */
  get address(): string {
    return `postgres://${superuser}@127.0.0.1:${this.port}`
  }

  url(database = 'postgres'): string {
    return `${this.address}/${database}`
  }

  /** Starts the server, or starts it again on the same data; resolves when it takes connections. */
  async up(extra: Settings = {}): Promise<void> {
    const options = Object.entries({ ...settings, port: String(this.port), ...extra })
    const args = ['-D', this.dataDir, ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
    for (let tries = 1; ; tries++) {
      const from = this.log.length
      if (await this.launch(args)) return
      // Processes of a server that was killed may not have ended yet.
      const isTaken = this.log.slice(from).includes('pre-existing shared memory block')
      if (!isTaken || tries === mostLaunches) throw new Error(`PostgreSQL did not start:\n${this.log.slice(from)}`)
      await Bun.sleep(100)
    }
  }

  private async launch(args: readonly string[]): Promise<boolean> {
    const server = Bun.spawn(this.command('postgres', args), {
      cwd: this.directory,
      env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' },
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
    })
    this.server = server
    const collected = this.collect(server.stderr)
    const ready = this.command('pg_isready', ['-q', '-h', '127.0.0.1', '-p', String(this.port)])
    while (Bun.spawnSync(ready).exitCode !== 0) {
      if (server.exitCode !== null) {
        await collected
        return false
      }
      await Bun.sleep(20)
    }
    return true
  }

  /** Somebody else may have taken the port since it was found to be free. */
  private async upSomewhere(extra: Settings): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.up(extra)
      } catch (error) {
        if (tries === 5 || !this.log.includes('could not create any TCP/IP sockets')) throw error
        this.log = ''
        this.port = await freePort()
      }
    }
  }

  private async collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    for await (const bytes of stream) this.log += decoder.decode(bytes, { stream: true })
  }

  async database(): Promise<string> {
    const name = newDatabaseName()
    await this.query(`CREATE DATABASE ${name}`)
    return this.url(name)
  }

  query(statement: string, url = this.url()) {
    return queryOnce(statement, url)
  }

  /** Ends every other connection, as an administrator or a failover does. */
  async terminateBackends(database: string): Promise<number> {
    const rows = await this.query(
      `SELECT count(pg_terminate_backend(pid))::int AS count FROM pg_stat_activity
       WHERE datname = '${database}' AND pid <> pg_backend_pid()`,
    )
    return rows[0]?.count ?? 0
  }

  /**
   * Ends all connections again and again, until the test stops it. Each time, one that is made beside theirs has to be
   * served first: on a machine that needs long to make connections, nobody else would ever have one for a whole
   * statement.
   */
  async storm(database: string, goesOn: () => boolean): Promise<void> {
    const sql = new SQL({ url: this.url(), max: 1 })
    while (goesOn()) {
      await sql.unsafe(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`)
      const endedAt = performance.now()
      await this.query('SELECT 1')
      await Bun.sleep(Math.random() * Math.max(20, 2 * (performance.now() - endedAt)))
    }
    await sql.close()
  }

  /** The server and all of its processes stop where they are, or go on. */
  freeze(signal: 'SIGSTOP' | 'SIGCONT'): void {
    process.kill(this.pid, signal)
    for (const pid of this.children()) signalIfThere(pid, signal)
  }

  /** kill -9 of the server: its processes end at once, and the next start recovers from the log. */
  async kill(): Promise<void> {
    process.kill(this.pid, 'SIGSTOP')
    for (const pid of [this.pid, ...this.children()]) signalIfThere(pid, 'SIGKILL')
    await this.server?.exited
  }

  private children(): number[] {
    const list = readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8').trim()
    return list === '' ? [] : list.split(' ').map(Number)
  }

  /** Stops it at once and removes all of its data. */
  async dispose(): Promise<void> {
    if (this.server?.exitCode === null) {
      this.server.kill('SIGCONT')
      // SIGINT is PostgreSQL's fast stop: it ends its connections and its own processes.
      this.server.kill('SIGINT')
      const patience = setTimeout(() => this.server?.kill('SIGKILL'), 10_000)
      await this.server.exited
      clearTimeout(patience)
    }
    rmSync(this.directory, { recursive: true, force: true })
  }
}

function newDatabaseName(): string {
  return `test_${crypto.randomUUID().replaceAll('-', '')}`
}

// biome-ignore lint/suspicious/noExplicitAny: rows are whatever the statement gives.
async function queryOnce(statement: string, url: string): Promise<any[]> {
  const sql = new SQL({ url, max: 1 })
  try {
    return await sql.unsafe(statement)
  } finally {
    await sql.close()
  }
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended meanwhile, by itself or with its parent.
  }
}

function output(command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} failed:\n${stderr}`)
  return stdout.toString().trim()
}
