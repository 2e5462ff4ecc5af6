import { afterAll, beforeAll } from 'bun:test'
import { openPostgres } from '../../src/adapters/postgres/open.ts'
import { Postgres } from '../support/postgres.ts'
import { registerCallStoreContract } from './call-store.ts'
import { openHarness } from './postgres-harness.ts'
import { registerProductStoreContract } from './product-store.ts'

let server: Postgres
beforeAll(async () => {
  server = await Postgres.start()
})
afterAll(() => server.dispose())

registerCallStoreContract('PostgreSQL', () => openHarness(server))

registerProductStoreContract('PostgreSQL', async () => {
  const url = await server.database()
  const [one, other] = [await openPostgres({ url }), await openPostgres({ url })]
  return {
    store: one.products,
    other: other.products,
    async close() {
      await one.close()
      await other.close()
    },
  }
})
