import { openSqlite } from '../../src/adapters/sqlite/open.ts'
import { registerCallListsContract } from './call-lists.ts'
import { registerCallStoreContract } from './call-store.ts'
import { registerDevicesContract } from './devices.ts'
import { registerProductStoreContract } from './product-store.ts'
import { openHarness, temporaryDataDir } from './sqlite-harness.ts'

registerCallStoreContract('SQLite', () => openHarness())
registerCallListsContract('SQLite', () => openHarness())

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
