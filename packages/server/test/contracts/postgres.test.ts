import { afterAll, beforeAll } from 'bun:test'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { dumpOf } from '../support/dump.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { registerAuditContract } from './audit.ts'
import { registerCallListsContract } from './call-lists.ts'
import { registerCallStoreContract } from './call-store.ts'
import { registerCallStoreNodesContract } from './call-store-nodes.ts'
import { registerDevicesContract } from './devices.ts'
import { registerErasureContract } from './erasure.ts'
import { registerGroupsContract } from './groups.ts'
import { registerMemberCallsContract } from './member-calls.ts'
import { registerOnlineContract } from './online.ts'
import { openHarness } from './postgres-harness.ts'
import { registerProductStoreContract } from './product-store.ts'
import { registerTimelineContract } from './timeline.ts'

let server: Databases
beforeAll(async () => {
  server = await openDatabases()
})
afterAll(() => server.dispose())

registerCallStoreContract('PostgreSQL', () => openHarness(server))
registerCallListsContract('PostgreSQL', () => openHarness(server))
registerMemberCallsContract('PostgreSQL', () => openHarness(server))

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

registerAuditContract('PostgreSQL', async () => {
  const url = await server.database()
  const [one, other] = [await openPostgres({ url }), await openPostgres({ url })]
  return {
    audit: one.audit,
    other: other.audit,
    async close() {
      await one.close()
      await other.close()
    },
  }
})

registerGroupsContract('PostgreSQL', async () => {
  const url = await server.database()
  const [one, other] = [await openPostgres({ url }), await openPostgres({ url })]
  return {
    groups: one.groups,
    other: other.groups,
    async close() {
      await one.close()
      await other.close()
    },
  }
})

registerErasureContract('PostgreSQL', async () => {
  const harness = await openHarness(server)
  const { calls, webhooks, timeline, erasures } = harness.stores()
  const dump = () => dumpOf({ url: harness.url })
  return { calls, webhooks, timeline, erasures, dump, close: harness.close }
})

registerOnlineContract('PostgreSQL', async () => {
  const url = await server.database()
  const [one, other] = [await openPostgres({ url }), await openPostgres({ url })]
  return {
    online: one.online,
    other: other.online,
    webhooks: [one.webhooks, other.webhooks],
    async close() {
      await other.close()
      await one.close()
    },
  }
})

registerTimelineContract('PostgreSQL', async () => {
  const url = await server.database()
  const [{ calls, timeline, prune, close }, other] = [await openPostgres({ url }), await openPostgres({ url })]
  return {
    calls,
    timeline,
    other: other.timeline,
    prune,
    async close() {
      await other.close()
      await close()
    },
  }
})
