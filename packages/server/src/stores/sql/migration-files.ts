import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { StoreError } from '../../ports/store-error.ts'

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

/** A migration after which older versions cannot go on. Without the word, they can: it only adds to what they use. */
const breaking = /^\d{4}_breaking_/

/**
 * How many of the known ones are applied. Later ones belong to a newer version; the database is refused, with a
 * StoreError, if one of them is breaking, or if a known one has another content.
 */
export function checkApplied(applied: readonly Applied[], migrations: readonly Migration[]): number {
  const broken = applied.slice(migrations.length).find(({ name }) => breaking.test(name))
  if (broken !== undefined) {
    throw new StoreError(
      'unavailable',
      `The database is newer than this version of Ringwire, which knows the schema up to ${migrations.length}: ` +
        `since ${broken.name} it needs a newer version.`,
    )
  }
  for (const [index, known] of migrations.slice(0, applied.length).entries()) {
    const row = applied[index] as Applied
    if (known.number !== row.number || checksumOf(known) !== row.checksum) {
      const problem = `The database was made by another ${known.name}: a migration never changes once it is applied.`
      throw new StoreError('unavailable', problem)
    }
  }
  return Math.min(applied.length, migrations.length)
}

export function checksumOf(migration: Migration): string {
  return createHash('sha256').update(migration.sql).digest('hex')
}
