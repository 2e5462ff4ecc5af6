import { StoreError } from '../../ports/store-error.ts'

/** Why a statement failed. Messages of PostgreSQL that could hold values of a row are not passed on [LOG1]. */
export type Failure =
  /** Nothing was written, and trying again may help: no connection could be had, or PostgreSQL ended the transaction. */
  | { readonly kind: 'not_done'; readonly error: StoreError }
  /** The connection was lost while the statement was under way: it may or may not have been carried out. */
  | { readonly kind: 'lost'; readonly error: StoreError }
  /** PostgreSQL refused the statement or a value in it: a bug, or a database that is not ours. Nothing was written. */
  | { readonly kind: 'refused'; readonly error: Error }

/** SQLSTATEs and their classes after which the same statement may succeed. */
const passing = [
  '25006', // connected to a standby
  '40', // deadlock, serialization failure
  '53', // out of connections, memory, disk
  '55P03', // lock_timeout
  '57', // cancelled (statement_timeout), starting up, shutting down
  '58', // system errors
]
/** The server ended the connection: the commit of the statement may have been over already. */
const endings = ['08', '57P01', '57P02', '57P05']

/** `sent` is false where there was no connection yet to send the statement on. */
export function failureOf(error: unknown, sent: boolean): Failure {
  if (!(error instanceof Bun.SQL.PostgresError)) {
    if (!sent) return { kind: 'not_done', error: unavailable(messageOf(error), error) }
    // Errors of the socket and of TLS have a code; what has none is a bug.
    if (!(error instanceof Error && 'code' in error)) return { kind: 'refused', error: error as Error }
    return { kind: 'lost', error: new StoreError('unknown', error.message, { cause: error }) }
  }
  const state = isOfServer(error) ? String(error.errno) : undefined
  const message = state === undefined ? error.message : `PostgreSQL: ${describe(state, error.message)} (${state})`
  if (!sent) return { kind: 'not_done', error: unavailable(message, error) }
  if (state === undefined || endings.some((start) => state.startsWith(start))) {
    return { kind: 'lost', error: new StoreError('unknown', message, { cause: error }) }
  }
  if (passing.some((start) => state.startsWith(start))) return { kind: 'not_done', error: unavailable(message, error) }
  return { kind: 'refused', error: new Error(message) }
}

/** Why the database cannot be opened, without its password; a bug is what it is. */
export function startFailure(error: unknown, url: string): unknown {
  if (isOfServer(error)) return failureOf(error, false).error
  // Of the client itself, TLS and sockets, which do not say whom they could not reach.
  const isOfConnection = error instanceof Error && !(error instanceof StoreError) && 'code' in error
  if (!isOfConnection) return error
  const { hostname, port } = new URL(url)
  return unavailable(
    `No connection to PostgreSQL at ${hostname}:${port || 5432} (DATABASE_URL): ${error.message}`,
    error,
  )
}

/**
 * The error came from the server, with an SQLSTATE. An import of `SQL` would load the client in services without
 * PostgreSQL, too.
 */
function isOfServer(error: unknown): boolean {
  return error instanceof Bun.SQL.PostgresError && error.code === 'ERR_POSTGRES_SERVER_ERROR'
}

export function unavailable(message: string, cause?: unknown): StoreError {
  return new StoreError('unavailable', message, { cause })
}

/** Class 22 and 23 messages quote what was refused. */
function describe(state: string, message: string): string {
  return state.startsWith('22') || state.startsWith('23') ? 'a value was refused' : message
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
