import { Database } from 'bun:sqlite'
import { SQL } from 'bun'

/** Every row of every table as JSON, a line each: what is kept, wherever it is. */
export async function dumpOf(store: { readonly sqlite: string } | { readonly url: string }): Promise<string> {
  return 'url' in store ? dumpPostgres(store.url) : dumpSqlite(store.sqlite)
}

function dumpSqlite(path: string): string {
  const db = new Database(path, { readwrite: true })
  try {
    const tables = db.query<{ name: string }, []>(`SELECT name FROM sqlite_master WHERE type = 'table'`).all()
    const rows = tables.flatMap(({ name }) => db.query(`SELECT '${name}' AS "table", * FROM "${name}"`).all())
    return rows.map((row) => JSON.stringify(row)).join('\n')
  } finally {
    db.close()
  }
}

async function dumpPostgres(url: string): Promise<string> {
  const sql = new SQL({ url, max: 1 })
  try {
    const tables: { name: string }[] = await sql.unsafe(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`,
    )
    const lines: string[] = []
    for (const { name } of tables) {
      const rows: { line: string }[] = await sql.unsafe(
        `SELECT '${name} ' || row_to_json(t)::text AS line FROM "${name}" t`,
      )
      lines.push(...rows.map(({ line }) => line))
    }
    return lines.join('\n')
  } finally {
    await sql.close()
  }
}
