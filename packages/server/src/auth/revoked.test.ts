import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { revocationKeptMs } from '../ports/product-store.ts'
import { participantHash } from '../ports/session-id.ts'
import { openSqlite, type SqliteStores } from '../stores/sqlite/open.ts'
import { createRevoked } from './revoked.ts'

let dataDir: string
let stores: SqliteStores
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'ringwire-revoked-'))
  stores = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
})
afterEach(async () => {
  await stores.close()
  rmSync(dataDir, { recursive: true, force: true })
})

test('[SRV2] who was sent away longer ago than any token lasts is forgotten, in the store and here', async () => {
  const now = Date.UTC(2026, 0, 10)
  const someone = (userId: string) => ({ product: 'shop', role: 'customer', userId })
  const [long, lately, last] = [someone('ann'), someone('ben'), someone('eve')]
  const products = stores.products
  await products.revoke(participantHash(long), now - revocationKeptMs - 1, now - 3)
  await products.revoke(participantHash(lately), now - revocationKeptMs, now - 2)
  await products.revoke(participantHash(last), now, now - 1)
  const pruned = Promise.withResolvers<number>()
  const revoked = createRevoked({
    products: {
      revoke: products.revoke,
      revocations: products.revocations,
      async pruneRevocations(before) {
        const count = await products.pruneRevocations(before)
        pruned.resolve(count)
        return count
      },
    },
    now: () => now,
    onRevoked() {},
    onError: pruned.reject,
  })
  try {
    await revoked.start()
    const isRevoked = (participant: typeof long) => revoked.isRevoked({ participant, issuedAt: 0, key: null })
    expect([long, lately, last].map(isRevoked)).toEqual([true, true, true])
    expect(await pruned.promise).toBe(1)
    expect([long, lately, last].map(isRevoked)).toEqual([false, true, true])
    expect(await products.revocations(0)).toHaveLength(2)
  } finally {
    revoked.stop()
  }
})
