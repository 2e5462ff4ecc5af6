import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@ringwire/testkit/patience'
import type { Postgres } from './postgres.ts'

/** One node of a plan as auto_explain writes it. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly Plans?: readonly PlanNode[]
}

export interface Executed {
  readonly text: string
  /** Tables that were read by a sequential scan. */
  readonly scanned: readonly string[]
  /** Rows that were read from tables. */
  readonly read: number
}

/** Settings with which a server logs the plan of each statement that it ran, also inside functions. */
export const explaining = {
  log_min_messages: 'log',
  log_checkpoints: 'off',
  track_functions: 'all',
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
}
/** For each later connection to a database: logs every plan, and makes plans as `mode` says (`plan_cache_mode`). */
export const explainSql = (database: string, mode: 'force_custom_plan' | 'force_generic_plan') =>
  `ALTER DATABASE ${database} SET auto_explain.log_min_duration = 0; ALTER DATABASE ${database} SET plan_cache_mode = ${mode}`

/** Every statement that the server has run since a place in its log. No statement may still be running. */
export async function executedOn(server: Postgres, from: number): Promise<Executed[]> {
  // The log comes through a pipe. When this word has come, everything before it has come too.
  const end = `all-executed-${crypto.randomUUID()}`
  await server.query(`DO $$ BEGIN RAISE LOG '${end}'; END $$`)
  await until('the log has all of it', () => server.log.slice(from).includes(`LOG:  ${end}`))
  return server.log
    .slice(from)
    .split(/^(?=\S.* LOG: {2}duration: )/m)
    .flatMap((entry) => {
      const begin = entry.indexOf('plan:\n')
      if (begin < 0) return []
      const lines = entry.slice(begin + 'plan:\n'.length).split('\n')
      const end = lines.findIndex((line) => line !== '' && !line.startsWith('\t'))
      const json = (end < 0 ? lines : lines.slice(0, end)).map((line) => line.slice(1)).join('\n')
      const { 'Query Text': text, Plan: plan } = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode }
      const nodes = nodesOf(plan)
      const scanned = nodes.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? ''] : []))
      return [{ text, scanned, read: nodes.reduce((sum, node) => sum + readBy(node), 0) }]
    })
}

/** Functions of a database that no statement has called. Waits until every other client has left. */
export async function uncalledOf(server: Postgres, url: string): Promise<string[]> {
  // A connection adds its counts before it is gone.
  const othersSql = `
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`
  await until('the other sessions have ended', async () => (await server.query(othersSql, url)).length === 0)
  const rows: { name: string }[] = await server.query(
    `SELECT proname AS name FROM pg_proc
     WHERE pronamespace = 'public'::regnamespace AND oid NOT IN (SELECT funcid FROM pg_stat_user_functions)
     ORDER BY proname`,
    url,
  )
  return rows.map(({ name }) => name)
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

/** Rows that a node read from a table, with those that its filter dropped. */
function readBy(node: PlanNode): number {
  if (!/Scan$/.test(node['Node Type']) || !('Relation Name' in node || node['Node Type'] === 'Bitmap Index Scan'))
    return 0
  const rows =
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return rows * node['Actual Loops']
}

/** A statement in the source, or a part of one. */
export interface Written {
  readonly file: string
  readonly text: string
  /** Whether an executed statement contains it. */
  matches(executed: string): boolean
}

/** Every string in the files of a folder that begins like a statement. */
export function writtenIn(folder: string, without: readonly string[]): Written[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts') && !/\.(test|fixture)\./.test(name))
  return files.filter((name) => !without.includes(name)).flatMap((name) => textsOf(join(folder, name)))
}

function textsOf(path: string): Written[] {
  return literalsIn(readFileSync(path, 'utf8')).flatMap((parts) => {
    if (!/^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b/.test(parts[0] ?? '')) return []
    const pattern = new RegExp(parts.map(patternOf).join('[\\s\\S]*?'))
    return [{ file: path, text: parts.join('…').trim(), matches: (executed: string) => pattern.test(executed) }]
  })
}

/** Every string of a file, split at its `${…}`. Strings inside a `${…}` come before the one around them. */
function literalsIn(source: string): string[][] {
  const found: string[][] = []
  let at = 0
  function code(end?: string): void {
    for (; at < source.length; at++) {
      const char = source[at]
      if (char === end) return
      if (source.startsWith('//', at)) at = source.indexOf('\n', at)
      else if (source.startsWith('/*', at)) at = source.indexOf('*/', at) + 1
      else if (char === '{') within(() => code('}'))
      else if (char === '`') within(template)
      else if (char === "'" || char === '"') within(() => quoted(char))
    }
  }
  /** Steps over the opening character first. */
  function within(read: () => void): void {
    at++
    read()
  }
  function quoted(mark: string): void {
    const begin = at
    while (source[at] !== mark) at += source[at] === '\\' ? 2 : 1
    found.push([source.slice(begin, at)])
  }
  function template(): void {
    const parts = ['']
    for (; source[at] !== '`'; at++) {
      if (source.startsWith('${', at)) {
        at += 2
        code('}')
        parts.push('')
      } else parts.push(`${parts.pop()}${source[at]}`)
    }
    found.push(parts)
  }
  code()
  return found
}

/** Where several reads go in one statement, their parameters have other numbers. */
const patternOf = (text: string) =>
  text
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\\\$\d+/g, '\\$\\d+'))
    .join('\\s+')
    .replace(/^/, '\\s*')
    .replace(/$/, '\\s*')
