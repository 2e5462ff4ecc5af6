import { dlopen } from 'bun:ffi'
import { Database } from 'bun:sqlite'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemProgram } from '@ringwire/testkit/system'

/** What SQLite did on a thread. */
export interface SqliteWork {
  /** Instructions of the programs of statements. Each row that a statement looks at takes several, whether it answers the row or not. */
  readonly steps: number
  /** Rows that statements answered. */
  readonly rows: number
  /** Statements that may write. */
  readonly writes: number
  /** The text of the statement that took the most steps. */
  readonly dearest: string
}

export interface SqliteMeter {
  /** What was done on this thread since the last call. */
  take(): SqliteWork
}

/** Counts what SQLite does on this thread, in every connection that is opened later. Builds an extension with the C compiler. */
export function meterSqlite(): SqliteMeter {
  const folder = mkdtempSync(join(tmpdir(), 'ringwire-sqlite-work-'))
  const library = join(folder, 'work.so')
  const source = new URL('./sqlite-work.c', import.meta.url).pathname
  const built = spawnSync(systemProgram('c-compiler'), ['-shared', '-fPIC', '-o', library, source], {
    encoding: 'utf8',
  })
  if (built.status !== 0) throw new Error(`The C compiler failed: ${built.stderr}`)
  const db = new Database(':memory:')
  db.loadExtension(library)
  db.close()
  const { symbols } = dlopen(library, {
    watch_this_thread: {},
    forget: {},
    steps_so_far: { returns: 'f64' },
    rows_so_far: { returns: 'f64' },
    writes_so_far: { returns: 'f64' },
    dearest_so_far: { returns: 'cstring' },
  })
  rmSync(folder, { recursive: true })
  symbols.watch_this_thread()
  return {
    take() {
      const work = {
        steps: symbols.steps_so_far(),
        rows: symbols.rows_so_far(),
        writes: symbols.writes_so_far(),
        dearest: String(symbols.dearest_so_far()),
      }
      symbols.forget()
      return work
    },
  }
}
