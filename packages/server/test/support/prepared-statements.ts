import { Database } from 'bun:sqlite'
import { appendFileSync, readFileSync } from 'node:fs'

/** Appends the text of each statement that this thread prepares to a file. Returns a function that stops this. */
export function recordStatements(path: string): () => void {
  const { query, prepare } = Database.prototype
  const note = (text: string) => appendFileSync(path, `${JSON.stringify(text)}\n`)
  Database.prototype.query = function (this: Database, ...args) {
    note(args[0])
    return query.apply(this, args)
  } as typeof query
  Database.prototype.prepare = function (this: Database, ...args) {
    note(args[0])
    return prepare.apply(this, args)
  } as typeof prepare
  return () => Object.assign(Database.prototype, { query, prepare })
}

/** Each text that was recorded, once. */
export function recordedStatements(path: string): string[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  return [...new Set(lines)].map((line) => JSON.parse(line) as string)
}
