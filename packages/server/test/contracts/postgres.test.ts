import { afterAll, beforeAll } from 'bun:test'
import { openPostgres } from '../../src/adapters/postgres/open.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { registerCallListsContract } from './call-lists.ts'
import { registerCallStoreContract } from './call-store.ts'
import { registerCallStoreNodesContract } from './call-store-nodes.ts'
import { registerDevicesContract } from './devices.ts'
import { openHarness } from './postgres-harness.ts'
import { registerProductStoreContract } from './product-store.ts'

let server: Databases
beforeAll(async () => {
  server = await openDatabases()
})
afterAll(() => server.dispose())

registerCallStoreContract('PostgreSQL', () => openHarness(server))
registerCallListsContract('PostgreSQL', () => openHarness(server))

registerCallStoreNodesContract('PostgreSQL', async () => {
  const harness = await openHarness(server)
  const other = await openPostgres({ url: harness.url })
  return {
    nodes: [harness.store(), other.calls],
    versions: harness.versions,
    async close() {
      await other.close()
      await harness.close()
    },
  }
})

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

registerDevicesContract('PostgreSQL', async () => {
  const url = await server.database()
  const [one, other] = [await openPostgres({ url }), await openPostgres({ url })]
  return {
    devices: one.devices,
    other: other.devices,
    async close() {
      await one.close()
      await other.close()
    },
  }
})
