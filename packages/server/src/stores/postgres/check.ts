import { connectionName } from '../../ports/node-name.ts'
import type { CheckedStore } from '../../ports/store-check.ts'
import { StoreError } from '../../ports/store-error.ts'
import { checkApplied, readMigrations } from '../sql/migration-files.ts'
import { connectSession, openClient, type Row, within } from './connections.ts'
import { startFailure } from './failures.ts'
import { migrationFiles } from './migrations.ts'
import { requireSessions } from './pooling.ts'

/** The tests run on this version. */
const testedVersion = 15

/** The rights that the service needs on each table; docs/operations.md grants them. */
export const neededRights: Readonly<Record<string, string>> = {
  schema_migrations: 'SELECT',
  deployment: 'SELECT, UPDATE',
  calls: 'SELECT, INSERT, UPDATE, DELETE',
  call_events: 'SELECT, INSERT, UPDATE',
  outbox: 'SELECT, INSERT, UPDATE, DELETE',
  product_keys: 'SELECT, INSERT, UPDATE',
  product_key_secrets: 'SELECT, INSERT, UPDATE, DELETE',
  product_settings: 'SELECT, INSERT, UPDATE',
  devices: 'SELECT, INSERT, UPDATE, DELETE',
  revocations: 'SELECT, INSERT, UPDATE, DELETE',
  webhook_endpoints: 'SELECT, INSERT, UPDATE, DELETE',
  webhook_deliveries: 'SELECT, INSERT, UPDATE, DELETE',
  webhook_removals: 'SELECT, INSERT, DELETE',
  webhook_revision: 'SELECT',
  erasures: 'SELECT, INSERT, UPDATE, DELETE',
  call_timeline: 'SELECT, INSERT, UPDATE, DELETE',
  call_members: 'SELECT, INSERT, UPDATE, DELETE',
  call_groups: 'SELECT, INSERT, UPDATE, DELETE',
  call_group_members: 'SELECT, INSERT, DELETE',
  audit: 'SELECT, INSERT, UPDATE, DELETE',
  online: 'SELECT, INSERT, DELETE',
  nodes: 'SELECT, INSERT, UPDATE, DELETE',
  outages: 'SELECT, INSERT, UPDATE, DELETE',
  readiness: 'UPDATE',
}

const factsSql = `
  SELECT current_setting('server_version_num')::int / 10000 AS version,
    current_setting('server_encoding') AS encoding,
    has_schema_privilege(current_schema(), 'CREATE') AS may_create,
    to_regclass('schema_migrations') IS NOT NULL AS is_recorded,
    pg_is_in_recovery() AS is_standby`

const missingSql = `
  SELECT string_agg(privilege || ' on ' || name, ', ' ORDER BY name, privilege) AS missing
  FROM json_to_recordset($1::text::json) AS needed (name text, privilege text)
  WHERE to_regclass(name) IS NOT NULL AND NOT has_table_privilege(name, privilege)`

/** Looks at a database, and changes nothing; answers within `ms`. `deployment`: the id that Redis has a copy of [REDIS1]. */
export async function checkPostgres(url: string, ms: number): Promise<CheckedStore & { readonly deployment?: string }> {
  const deadline = performance.now() + ms
  const sql = openClient(url, connectionName(), () => {})
  const ask = async (text: string, values: readonly string[] = []) =>
    await within(sql.unsafe(text, [...values]), deadline)
  try {
    await within(connectSession(sql, { default_transaction_read_only: 'on', statement_timeout: String(ms) }), deadline)
    const [facts] = await ask(factsSql)
    const problems = [...factProblems(facts)]
    if (facts.is_recorded) problems.push(...(await schemaProblems(ask, facts.may_create)))
    else if (!facts.may_create) problems.push('this role may not make the tables: give it CREATE on the schema')
    await within(requireSessions(url), deadline)
    const warnings = facts.version < testedVersion ? [`is version ${facts.version}; ${testedVersion} is tested`] : []
    const deployment = problems.length === 0 && facts.is_recorded ? await deploymentOf(ask) : undefined
    return { problems, warnings, ...(deployment !== undefined && { deployment }) }
  } catch (error) {
    const failure = startFailure(error, url)
    if (!(failure instanceof StoreError)) throw failure
    return { problems: [failure.message], warnings: [] }
  } finally {
    void sql.close({ timeout: 0 })
  }
}

type Ask = (text: string, values?: readonly string[]) => Promise<Row[]>

function* factProblems(facts: Row): Generator<string> {
  if (facts.encoding !== 'UTF8') yield `the encoding of the database is ${facts.encoding}; Ringwire needs UTF8`
  if (facts.is_standby) yield 'it is a standby that takes no writes: name the primary server'
}

async function schemaProblems(ask: Ask, mayCreate: boolean): Promise<string[]> {
  const migrations = readMigrations(migrationFiles)
  const applied = await ask('SELECT number, name, checksum FROM schema_migrations ORDER BY number')
  const pending = migrations.length - checkApplied(applied as never, migrations)
  if (pending > 0 && !mayCreate) {
    return [`the schema lacks ${pending} migrations, and this role may not change it: run a command as its owner first`]
  }
  const needed = Object.entries(neededRights).flatMap(([name, privileges]) =>
    privileges.split(', ').map((privilege) => ({ name, privilege })),
  )
  const [row] = await ask(missingSql, [JSON.stringify(needed)])
  return row?.missing == null ? [] : [`this role lacks ${row.missing}`]
}

async function deploymentOf(ask: Ask): Promise<string | undefined> {
  const [row] = await ask("SELECT to_regclass('deployment') IS NOT NULL AS is_there")
  if (row?.is_there !== true) return undefined
  const [named] = await ask('SELECT id FROM deployment')
  return named?.id
}
