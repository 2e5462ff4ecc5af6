import { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Step } from '../../call/effects.ts'
import type { CallStoreHarness } from '../../ports/call-store.fixture.ts'
import { createBatchWriter, encodeStep } from './batch.ts'
import { openConnection, type SqlValue } from './connection.ts'
import { openSqlite, type SqliteOptions, type SqliteStores } from './open.ts'

/** A data directory of its own, removed at the end. */
export function temporaryDataDir(): { path: string; database: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'ringwire-sqlite-'))
  return { path, database: join(path, 'ringwire.db'), remove: () => rmSync(path, { recursive: true, force: true }) }
}

export interface SqliteHarness extends CallStoreHarness {
  readonly dataDir: string
  readonly database: string
  stores(): SqliteStores
}

/** For tests in which no writer fails: none of their commits is late on a busy machine, either. In ms. */
export const unhurried = { commitLimitMs: 60_000 } as const

export async function openHarness(options: Partial<SqliteOptions> = {}): Promise<SqliteHarness> {
  const dir = temporaryDataDir()
  const open = () => openSqlite({ dataDir: dir.path, synchronous: 'NORMAL', exclusive: true, ...options })
  let stores = await open()
  return {
    dataDir: dir.path,
    database: dir.database,
    stores: () => stores,
    store: () => stores.calls,
    commits: () => stores.counts().commits,
    async forge(step) {
      forge(dir.database, step)
    },
    versions: async (callUuid) => versionsOf(dir.database, callUuid),
    async reopen(between = async () => {}) {
      await stores.close()
      await between()
      stores = await open()
    },
    async close() {
      await stores.close()
      dir.remove()
    },
  }
}

/** Writes a step over a connection of its own, with the same guard. */
export function forge(database: string, step: Step): void {
  const db = openConnection(database)
  try {
    const row = db
      .query<{ id: number }, [string, string]>('SELECT id FROM calls WHERE call_uuid = ? AND product = ?')
      .get(step.call.callUuid, step.call.product)
    const values: SqlValue[] = [1]
    encodeStep(values, step, row === null ? undefined : { id: row.id, call: step.call })
    const [id] = createBatchWriter(db)(values)
    if (id === undefined || id < 0) throw new Error('The forged step was not written.')
  } finally {
    db.close()
  }
}

export function versionsOf(database: string, callUuid: string): number[] {
  const db = new Database(database, { readwrite: true })
  try {
    return db
      .query<{ version: number }, [string]>(
        `SELECT call_events.version FROM call_events JOIN calls ON calls.id = call_id
         WHERE call_uuid = ? ORDER BY call_events.version`,
      )
      .all(callUuid)
      .map((row) => row.version)
  } finally {
    db.close()
  }
}

/** How many rows the outbox has. */
export function leftIn(database: string): number {
  const db = new Database(database, { readwrite: true })
  try {
    return db.query<{ n: number }, []>('SELECT count(*) AS n FROM outbox').get()?.n ?? 0
  } finally {
    db.close()
  }
}
