import { SQL } from 'bun'
import type { Step } from '../../src/call/effects.ts'
import type { CallStoreHarness } from '../../src/ports/call-store.fixture.ts'
import { commitSql, encodeBatch, writeOf } from '../../src/stores/postgres/batch.ts'
import { openPostgres, type PostgresOptions, type PostgresStores } from '../../src/stores/postgres/open.ts'
import type { Databases } from '../support/postgres.ts'

export interface PostgresHarness extends CallStoreHarness {
  readonly url: string
  readonly database: string
  stores(): PostgresStores
}

/** Stores in the given server, on a database of their own where none is named. */
export async function openHarness(server: Databases, options: Partial<PostgresOptions> = {}): Promise<PostgresHarness> {
  const url = options.url ?? (await server.database())
  const open = () => openPostgres({ ...options, url })
  let stores = await open()
  const beside = new SQL({ url, max: 1 })
  return {
    url,
    database: new URL(url).pathname.slice(1),
    stores: () => stores,
    store: () => stores.calls,
    commits: () => stores.counts().commits,
    async forge(step: Step) {
      const [row] = await beside.unsafe(commitSql, encodeBatch([writeOf([step], undefined, () => undefined)]))
      if (row.refused !== '{}') throw new Error('The forged step was not written.')
    },
    async versions(callUuid) {
      const rows = await beside.unsafe(
        `SELECT call_events.version FROM call_events JOIN calls ON calls.id = call_id
         WHERE call_uuid = $1 ORDER BY call_events.version`,
        [callUuid],
      )
      return rows.map((row: { version: number }) => row.version)
    },
    async reopen(between = async () => {}) {
      await stores.close()
      await between()
      stores = await open()
    },
    async close() {
      await stores.close()
      await beside.close()
    },
  }
}
