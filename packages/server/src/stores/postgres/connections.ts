import { accessSync, constants } from 'node:fs'
import type { SQL } from 'bun'
import { failureOf, unavailable } from './failures.ts'

export interface ConnectionOptions {
  /** DATABASE_URL. */
  readonly url: string
  /** How long a statement may wait for a connection and its answer, in ms. */
  readonly limitMs: number
  readonly session: Session
}

/** Settings of a session in the server, by their names there; none holds a quote. */
export type Session = Readonly<Record<string, string>>

export type SqlParameter = string | number | boolean | Uint8Array | null
// biome-ignore lint/suspicious/noExplicitAny: the caller says what its statement gives.
export type Row = any

/** Figures since the start, for metrics and tests. */
export interface ConnectionCounts {
  readonly opened: number
  readonly lost: number
}

export interface RunOptions {
  /** A read that was interrupted is sent again; a write is not: its outcome is unknown. */
  readonly repeatable: boolean
  /** On the clock of performance.now(). */
  readonly deadline?: number
}

const firstBackoffMs = 20
const maxBackoffMs = 1000

interface Job extends Required<RunOptions> {
  readonly text: string
  readonly values: readonly SqlParameter[]
  resolve(rows: Row[]): void
  reject(error: Error): void
}

/**
 * Connections that carry one statement at a time, each of it a transaction of its own: nothing is open between two of
 * them. A connection is a `Bun.SQL` of size one, so that a statement which takes too long takes only its own along.
 */
export class Connections {
  readonly #options: ConnectionOptions
  readonly #queue: Job[] = []
  readonly #idle: Connection[] = []
  readonly #all: Connection[] = []
  readonly #size: number
  #closed = false
  #lastError: Error | undefined
  /** Since when no connection could be made, and none that is there has answered. */
  #downSince: number | undefined
  #counts = { opened: 0, lost: 0 }

  constructor(options: ConnectionOptions, size: number) {
    this.#options = options
    this.#size = size
  }

  get counts(): ConnectionCounts {
    return { ...this.#counts }
  }

  /** How many statements can be sent at once without waiting for one another. */
  get free(): number {
    return this.#idle.length + this.#size - this.#all.length
  }

  /** Runs one statement; rejects with a StoreError, or with an Error where PostgreSQL refused the statement itself. */
  run(text: string, values: readonly SqlParameter[], options: RunOptions): Promise<Row[]> {
    if (this.#closed) return Promise.reject(unavailable('The store is closed.'))
    const now = performance.now()
    const { repeatable, deadline = now + this.#options.limitMs } = options
    // Down for longer than anybody waits: a new request is refused at once, while one of the others tries to connect.
    if (this.#downSince !== undefined && now - this.#downSince > this.#options.limitMs && this.#queue.length > 0) {
      return Promise.reject(this.#refusal())
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ text, values, repeatable, deadline, resolve, reject })
      this.#start()
    })
  }

  /** Statements that are under way finish, waiting ones are refused. */
  async close(): Promise<void> {
    this.#closed = true
    for (const job of this.#queue.splice(0)) job.reject(unavailable('The store is closed.'))
    await Promise.all(this.#all.map((connection) => connection.finished))
    await Promise.all(this.#all.map((connection) => connection.drop()))
  }

  #start(): void {
    const open = this.#idle.findLastIndex(({ isOpen }) => isOpen)
    let connection = open < 0 ? this.#idle.pop() : this.#idle.splice(open, 1)[0]
    if (connection === undefined && this.#all.length < this.#size) {
      connection = new Connection(this.#options)
      this.#all.push(connection)
    }
    if (connection !== undefined) connection.finished = this.#serve(connection)
  }

  /**
   * Works off what waits, then rests. A statement that waits for a new connection stays in the queue: another one may be
   * free before.
   */
  async #serve(connection: Connection): Promise<void> {
    let backoffMs = firstBackoffMs
    for (let job = this.#queue[0]; job !== undefined; job = this.#queue[0]) {
      if (performance.now() >= job.deadline) {
        this.#queue.shift()
        job.reject(this.#refusal())
      } else if (connection.isOpen) {
        this.#queue.shift()
        backoffMs = firstBackoffMs
        await this.#carryOut(connection, job)
      } else if (!(await this.#connects(connection, job.deadline))) {
        await Bun.sleep(Math.min(backoffMs, Math.max(0, job.deadline - performance.now())))
        backoffMs = Math.min(maxBackoffMs, backoffMs * 2)
      }
    }
    this.#idle.push(connection)
  }

  async #connects(connection: Connection, deadline: number): Promise<boolean> {
    try {
      await connection.open(deadline)
      this.#counts.opened++
      this.#downSince = undefined
      this.#lastError = undefined
      return true
    } catch (error) {
      // The server's words explain more than that the last attempt had no time left.
      if (this.#lastError === undefined || !isTimeout(error)) this.#lastError = failureOf(error, false).error
      this.#downSince ??= performance.now()
      return false
    }
  }

  async #carryOut(connection: Connection, job: Job): Promise<void> {
    try {
      job.resolve(await connection.run(job.text, job.values, job.deadline))
      this.#downSince = undefined
    } catch (error) {
      const failure = failureOf(error, true)
      if (failure.kind !== 'lost') return job.reject(failure.error)
      this.#counts.lost++
      this.#lastError = failure.error
      await connection.drop()
      if (!job.repeatable) job.reject(failure.error)
      else if (this.#closed || performance.now() >= job.deadline) job.reject(this.#refusal())
      else {
        this.#queue.unshift(job)
        // This one has to be made again first, and perhaps cannot be.
        if (this.#idle.some(({ isOpen }) => isOpen)) this.#start()
      }
    }
  }

  #refusal(): Error {
    const why = this.#lastError === undefined ? '' : `: ${this.#lastError.message}`
    return unavailable(`PostgreSQL does not answer${why}`)
  }
}

class Connection {
  finished: Promise<void> = Promise.resolve()
  readonly #options: ConnectionOptions
  #sql: SQL | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#sql !== undefined
  }

  async open(deadline: number): Promise<void> {
    const { url, session } = this.#options
    const sql = openClient(url, session.application_name, () => {
      if (this.#sql === sql) this.#sql = undefined
    })
    try {
      await within(connectSession(sql, session), deadline)
      this.#sql = sql
    } catch (error) {
      void sql.close({ timeout: 0 })
      throw error
    }
  }

  async run(text: string, values: readonly SqlParameter[], deadline: number): Promise<Row[]> {
    const sql = this.#sql as SQL
    return await within(sql.unsafe(text, [...values]), deadline)
  }

  /** Ends the connection, and with it what is under way on it. */
  async drop(): Promise<void> {
    const sql = this.#sql
    this.#sql = undefined
    await sql?.close({ timeout: 0 })
  }
}

/** One connection that is never closed for being idle or old, and fails rather than connects again by itself. */
export function openClient(url: string, name: string | undefined, onclose: () => void): SQL {
  const { pathname, searchParams } = new URL(url)
  checkRootCertificate(searchParams.get('sslrootcert'))
  // Else PGDATABASE of the environment would count for more than the URL.
  const database = decodeURIComponent(pathname.slice(1))
  const connection = name === undefined ? {} : { application_name: name }
  return new Bun.SQL({ url, database, max: 1, idleTimeout: 0, maxLifetime: 0, connection, onclose })
}

/** The client would only say that some path cannot be used. */
function checkRootCertificate(file: string | null): void {
  try {
    if (file !== null) accessSync(file, constants.R_OK)
  } catch {
    throw unavailable(`sslrootcert names no readable file: ${file}`)
  }
}

/**
 * Connects, and sets what the session goes by. As parameters of the connection a pooler would refuse the settings, or take
 * them and do nothing (PgBouncer: ignore_startup_parameters) [PG1].
 */
export async function connectSession(sql: SQL, session: Session): Promise<void> {
  await sql.connect()
  const { application_name: _, ...settings } = session
  const calls = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`)
  if (calls.length > 0) await sql.unsafe(`SELECT ${calls.join(', ')}`).simple()
}

/** A statement, or an attempt to connect, that is given up at its deadline. */
export async function within<T>(attempt: PromiseLike<T>, deadline: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(timeout()), Math.max(1, deadline - performance.now()))
  try {
    return await Promise.race([attempt, late])
  } finally {
    clearTimeout(timer)
  }
}

const timeoutCode = 'ERR_POSTGRES_TIMEOUT'

function isTimeout(error: unknown): boolean {
  return error instanceof Bun.SQL.PostgresError && error.code === timeoutCode
}

function timeout(): Error {
  return new Bun.SQL.PostgresError('PostgreSQL took too long.', {
    code: timeoutCode,
    detail: '',
    hint: '',
    severity: '',
  })
}
