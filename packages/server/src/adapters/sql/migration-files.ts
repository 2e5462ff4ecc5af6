import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
}

/** A row of schema_migrations. */
export interface Applied {
  readonly number: number
  readonly name: string
  readonly checksum: string
}

/** The numbered files of a directory, in order. */
export function readMigrations(directory: URL): Migration[] {
  const names = readdirSync(fileURLToPath(directory)).filter((name) => name.endsWith('.sql'))
  return names.sort().map((name, index) => {
    const number = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1])
    if (number !== index + 1) throw new Error(`Migration ${name}: the files are numbered 0001_, 0002_ and so on.`)
    return { number, name, sql: readFileSync(new URL(name, directory), 'utf8') }
  })
}

/** How many are applied; refuses a database that this code does not know. */
export function checkApplied(applied: readonly Applied[], migrations: readonly Migration[]): number {
  for (const [index, row] of applied.entries()) {
    const known = migrations[index]
    if (known === undefined) {
      throw new Error(
        `The database is newer than this version of Ringwire: it has schema ${applied.length} (${row.name}), ` +
          `this version knows ${migrations.length}.`,
      )
    }
    if (known.number !== row.number || checksumOf(known) !== row.checksum) {
      throw new Error(`The database was made by another ${known.name}: a migration never changes once it is applied.`)
    }
  }
  return applied.length
}

export function checksumOf(migration: Migration): string {
  return createHash('sha256').update(migration.sql).digest('hex')
}
