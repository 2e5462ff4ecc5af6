import { openHarness, temporaryDataDir } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { dumpOf } from '../support/dump.ts'
import { registerAuditContract } from './audit.ts'
import { registerCallListsContract } from './call-lists.ts'
import { registerCallStoreContract } from './call-store.ts'
import { registerDevicesContract } from './devices.ts'
import { registerErasureContract } from './erasure.ts'
import { registerGroupsContract } from './groups.ts'
import { registerMemberCallsContract } from './member-calls.ts'
import { registerOnlineContract } from './online.ts'
import { registerProductStoreContract } from './product-store.ts'
import { registerTimelineContract } from './timeline.ts'

registerCallStoreContract('SQLite', () => openHarness())
registerCallListsContract('SQLite', () => openHarness())
registerMemberCallsContract('SQLite', () => openHarness())

registerProductStoreContract('SQLite', async () => {
  const dir = temporaryDataDir()
  const options = { dataDir: dir.path, synchronous: 'NORMAL' } as const
  const serving = await openSqlite({ ...options, exclusive: true })
  const beside = await openSqlite({ ...options, exclusive: false })
  return {
    store: serving.products,
    other: beside.products,
    async close() {
      await beside.close()
      await serving.close()
      dir.remove()
    },
  }
})

registerDevicesContract('SQLite', async () => {
  const dir = temporaryDataDir()
  const options = { dataDir: dir.path, synchronous: 'NORMAL' } as const
  const serving = await openSqlite({ ...options, exclusive: true })
  const beside = await openSqlite({ ...options, exclusive: false })
  return {
    devices: serving.devices,
    other: beside.devices,
    async close() {
      await beside.close()
      await serving.close()
      dir.remove()
    },
  }
})

registerAuditContract('SQLite', async () => {
  const dir = temporaryDataDir()
  const options = { dataDir: dir.path, synchronous: 'NORMAL' } as const
  const serving = await openSqlite({ ...options, exclusive: true })
  const beside = await openSqlite({ ...options, exclusive: false })
  return {
    audit: serving.audit,
    other: beside.audit,
    async close() {
      await beside.close()
      await serving.close()
      dir.remove()
    },
  }
})

registerGroupsContract('SQLite', async () => {
  const dir = temporaryDataDir()
  const options = { dataDir: dir.path, synchronous: 'NORMAL' } as const
  const serving = await openSqlite({ ...options, exclusive: true })
  const beside = await openSqlite({ ...options, exclusive: false })
  return {
    groups: serving.groups,
    other: beside.groups,
    async close() {
      await beside.close()
      await serving.close()
      dir.remove()
    },
  }
})

registerErasureContract('SQLite', async () => {
  const harness = await openHarness()
  const { calls, webhooks, timeline, erasures } = harness.stores()
  const dump = () => dumpOf({ sqlite: harness.database })
  return { calls, webhooks, timeline, erasures, dump, close: harness.close }
})

registerOnlineContract('SQLite', async () => {
  const harness = await openHarness()
  const { online, webhooks } = harness.stores()
  return { online, other: online, webhooks: [webhooks], close: harness.close }
})

registerTimelineContract('SQLite', async () => {
  const dir = temporaryDataDir()
  const options = { dataDir: dir.path, synchronous: 'NORMAL' } as const
  const { calls, timeline, prune, ...serving } = await openSqlite({ ...options, exclusive: true })
  const beside = await openSqlite({ ...options, exclusive: false })
  return {
    calls,
    timeline,
    other: beside.timeline,
    prune,
    async close() {
      await beside.close()
      await serving.close()
      dir.remove()
    },
  }
})
