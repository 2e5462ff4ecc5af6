import { connectionName } from '../../ports/node-name.ts'
import { StoreError } from '../../ports/store-error.ts'
import {
  type CallPage,
  type Content,
  type ContentRow,
  keyColumns,
  leftColumns,
  type PlainTable,
  pageSize,
  plainTables,
  secretColumns,
} from '../sql/content.ts'
import { callColumns, eventColumns } from '../sql/rows.ts'
import { settingsColumns } from '../sql/settings-rows.ts'
import { endpointColumns } from '../sql/subscribers.ts'
import { connectSession, openClient, type Row, type SqlParameter } from './connections.ts'
import { failureOf, startFailure, unavailable } from './failures.ts'
import { migrate } from './migrations.ts'

/** The content of a database while another store is copied into it: one transaction, of which all is committed or nothing. */
export interface PostgresContent extends Content {
  addCalls(page: CallPage): Promise<void>
  /** A key that is there already is replaced, with all of its secrets. */
  addKeys(keys: readonly ContentRow[], secrets: readonly ContentRow[]): Promise<void>
  addSettings(settings: readonly ContentRow[]): Promise<void>
  /** Endpoints that are there already stay. */
  addWebhookEndpoints(endpoints: readonly ContentRow[]): Promise<void>
  /** Answers them as they are then. */
  addDeliveries(deliveries: readonly ContentRow[]): Promise<readonly ContentRow[]>
  /** Rows that are there already stay. Answers how many of them are there as they are given. */
  addRows(table: PlainTable, rows: readonly ContentRow[]): Promise<number>
  commit(): Promise<void>
  /** Rows that were not committed never were. */
  close(): Promise<void>
}

/** How long another process may hold what is locked here: a migration that was killed is over by then. */
const lockMs = 10_000

const session = {
  application_name: 'ringwire migrate',
  statement_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  lock_timeout: String(lockMs),
  // Pages are read through their index, also while nothing is known of the new tables.
  enable_seqscan: 'off',
  // If this machine is gone, the server notices within a minute, and gives the locks back.
  tcp_keepalives_idle: '30',
  tcp_keepalives_interval: '10',
  tcp_keepalives_count: '3',
}

/** Nobody else writes. Their order is that of the rows that the service locks. */
const lockSql = 'LOCK TABLE calls, product_keys, product_settings IN SHARE ROW EXCLUSIVE MODE'
/** A transaction sees one state of the connections, until it lets go of it. */
const lookAgainSql = 'SELECT pg_stat_clear_snapshot()'
/** `asked`: those that began a statement after an instant. */
const servedSql = `
  SELECT count(*)::int AS count, count(*) FILTER (WHERE query_start > to_timestamp($1::float8 / 1000))::int AS asked
  FROM pg_stat_activity
  WHERE datname = current_database() AND (application_name = '${connectionName()}' OR starts_with(application_name, '${connectionName('')}'))`
const nowSql = 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now'

const isBigint = (column: string) => column.endsWith('_at') || column === 'at' || column.endsWith('_until')
const isFlag = (column: string) => ['disabled', 'reveal_busy', 'enabled', 'take'].includes(column)

function selected(columns: readonly string[]): string {
  return columns
    .map((column) => {
      if (isBigint(column)) return `${column}::float8 AS ${column}`
      if (isFlag(column)) return `${column}::int AS ${column}`
      return column === 'secret_hash' ? `encode(${column}, 'hex') AS ${column}` : column
    })
    .join(', ')
}

const callsSql = `
  SELECT id::float8 AS id, ${selected(callColumns)} FROM calls WHERE id > $1::float8::bigint ORDER BY calls.id LIMIT ${pageSize}`
const eventsSql = `
  SELECT call_id::float8 AS call_id, ${selected(eventColumns)} FROM call_events
  WHERE call_id > $1::float8::bigint AND call_id <= $2::float8::bigint ORDER BY call_events.call_id, version`
const countsSql = `
  SELECT (SELECT count(*) FROM calls)::float8 AS calls, (SELECT count(*) FROM call_events)::float8 AS events`

/** The ids of the rows belong to the other store: here every call gets the next one. */
const addCallsSql = `
  WITH source AS MATERIALIZED (
    SELECT * FROM json_populate_recordset(NULL::calls, $1::text::json)
  ), made AS (
    INSERT INTO calls (${callColumns}) SELECT ${callColumns} FROM source ORDER BY source.id
    RETURNING id, call_uuid, product
  )
  INSERT INTO call_events (call_id, ${eventColumns})
  SELECT made.id, ${eventColumns.map((column) => `event.${column}`)}
  FROM json_populate_recordset(NULL::call_events, $2::text::json) AS event
  JOIN source ON source.id = event.call_id
  JOIN made ON made.call_uuid = source.call_uuid AND made.product = source.product`

const add = (table: string, columns: readonly string[]) =>
  `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1::text::json)`
const addKeysSql = `${add('product_keys', keyColumns)}
  ON CONFLICT (key_id) DO UPDATE SET ${keyColumns.map((column) => `${column} = excluded.${column}`)}`
const addEndpointsSql = `${add('webhook_endpoints', endpointColumns)} ON CONFLICT (id) DO NOTHING`
/** A pending delivery is due at once. */
const addDeliveriesSql = `
  INSERT INTO webhook_deliveries (${leftColumns}, due_at)
  SELECT ${leftColumns}, CASE status WHEN 'pending' THEN clock_timestamp() END
  FROM json_populate_recordset(NULL::webhook_deliveries, $1::text::json) ON CONFLICT (id) DO NOTHING`
const leftSql = `
  SELECT ${selected(leftColumns)} FROM webhook_deliveries
  WHERE id IN (SELECT added.id FROM json_to_recordset($1::text::json) AS added (id text)) ORDER BY id`
const dropSecretsSql = `
  DELETE FROM product_key_secrets
  WHERE key_id IN (SELECT key_id FROM json_populate_recordset(NULL::product_keys, $1::text::json))`
const addSettingsSql = `${add('product_settings', settingsColumns)} ON CONFLICT (product) DO NOTHING`

/**
 * Brings the schema up to date and locks what will be written. Rejects with a StoreError where the database is served,
 * or cannot be had.
 */
export async function openPostgresContent(url: string, now: number): Promise<PostgresContent> {
  const transaction = createTransaction(url)
  const { run, commit, close } = transaction
  try {
    await migrate(url, now)
    await transaction.begin()
    await refuseServed(run)
    await run(lockSql)
  } catch (error) {
    await close()
    throw startFailure(error, url)
  }
  const rowsOf = (table: string, columns: readonly string[], order: string): Promise<ContentRow[]> =>
    run(`SELECT ${selected(columns)} FROM ${table} ORDER BY ${order}`)

  return {
    async counts() {
      const [row] = await run(countsSql)
      return { calls: row.calls, events: row.events }
    },
    async callsAfter(id) {
      const calls: ContentRow[] = await run(callsSql, [id])
      const events: ContentRow[] = await run(eventsSql, [id, Number(calls.at(-1)?.id ?? id)])
      return { calls, events }
    },
    async products() {
      return {
        keys: await rowsOf('product_keys', keyColumns, 'key_id'),
        secrets: await rowsOf('product_key_secrets', secretColumns, 'key_id, product_key_secrets.secret_hash'),
        settings: await rowsOf('product_settings', settingsColumns, 'product'),
      }
    },
    webhookEndpoints: () => rowsOf('webhook_endpoints', endpointColumns, 'id'),
    async addWebhookEndpoints(endpoints) {
      await run(addEndpointsSql, [JSON.stringify(endpoints)])
    },
    async addDeliveries(deliveries) {
      await run(addDeliveriesSql, [JSON.stringify(deliveries)])
      return run(leftSql, [JSON.stringify(deliveries)])
    },
    async addRows(table, rows) {
      const given = [JSON.stringify(rows)]
      const columns = plainTables[table]
      await run(`${add(table, columns)} ON CONFLICT DO NOTHING`, given)
      const isSame = columns.map((column) => `t.${column} = given.${column}`).join(' AND ')
      const [row] = await run(
        `SELECT count(*)::int AS count FROM json_populate_recordset(NULL::${table}, $1::text::json) AS given
         JOIN ${table} t ON ${isSame}`,
        given,
      )
      return row.count
    },
    async addCalls({ calls, events }) {
      await run(addCallsSql, [JSON.stringify(calls), JSON.stringify(events)])
    },
    async addKeys(keys, secrets) {
      await run(dropSecretsSql, [JSON.stringify(keys)])
      await run(addKeysSql, [JSON.stringify(keys)])
      const rows = secrets.map((secret) => ({ ...secret, secret_hash: `\\x${secret.secret_hash}` }))
      await run(add('product_key_secrets', secretColumns), [JSON.stringify(rows)])
    },
    async addSettings(settings) {
      await run(addSettingsSql, [JSON.stringify(settings)])
    },
    commit,
    close,
  }
}

type Run = (text: string, values?: readonly SqlParameter[]) => Promise<Row[]>

/** How long connections of a process that has ended may still be seen; one that goes on to ask for things serves. */
const endingMs = 10_000
const servingMs = 2_000
const lookMs = 100

async function refuseServed(run: Run): Promise<void> {
  const begin = performance.now()
  const [{ now }] = await run(nowSql)
  for (;;) {
    await run(lookAgainSql)
    const [{ count, asked }] = await run(servedSql, [now + servingMs])
    if (count === 0) return
    if (asked > 0 || performance.now() - begin > endingMs) {
      throw unavailable('A process of Ringwire is connected to the database: stop it first.')
    }
    await Bun.sleep(lookMs)
  }
}

interface Transaction {
  begin(): Promise<void>
  readonly run: Run
  commit(): Promise<void>
  close(): Promise<void>
}

/** One connection, one transaction. A connection that was lost takes all of it along, and no other takes its place. */
function createTransaction(url: string): Transaction {
  let lost = false
  const sql = openClient(url, session.application_name, () => {
    lost = true
  })

  async function send(text: string, values: readonly SqlParameter[]): Promise<Row[]> {
    // The client would connect again, and what follows would be outside of the transaction.
    if (lost) throw unavailable('The connection to PostgreSQL was lost.')
    return await sql.unsafe(text, [...values])
  }

  const run: Run = async (text, values = []) => {
    try {
      return await send(text, values)
    } catch (error) {
      throw stepFailure(error, 'unavailable')
    }
  }

  return {
    async begin() {
      await connectSession(sql, session)
      await run('BEGIN')
    },
    run,
    async commit() {
      try {
        await send('COMMIT', [])
      } catch (error) {
        throw stepFailure(error, 'unknown')
      }
    },
    close: () => sql.close({ timeout: 0 }),
  }
}

/**
 * A refusal of the database is not a bug: a right that the role does not have, a trigger. If the connection was lost,
 * nothing is done without the commit, and nobody knows after it.
 */
function stepFailure(error: unknown, whenLost: StoreError['kind']): unknown {
  const failure = failureOf(error, true)
  if (failure.error === error) return error
  const { message } = failure.error
  if (failure.kind !== 'lost') return unavailable(message, error)
  return new StoreError(whenLost, `The connection to PostgreSQL was lost: ${message}`, { cause: error })
}
