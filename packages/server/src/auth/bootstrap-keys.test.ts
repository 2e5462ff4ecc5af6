import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite, type SqliteStores } from '../adapters/sqlite/open.ts'
import { createSilentLogger } from '../observability/logger.ts'
import { applyBootstrapKeys, ensureDemoKey } from './bootstrap-keys.ts'
import { createProductAuth, hashSecret } from './product-auth.ts'

let dataDir: string
let stores: SqliteStores
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'ringwire-bootstrap-'))
  stores = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
})
afterEach(async () => {
  await stores.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const logger = createSilentLogger()
const now = Date.UTC(2026, 0, 1)
const listed = (keyId: string, secret: string, ...products: string[]) => ({ keyId, secret, products })
const apply = (...bootstrapKeys: ReturnType<typeof listed>[]) =>
  applyBootstrapKeys(stores.products, { bootstrapKeys }, now, logger)
const authenticate = (keyId: string, secret: string) =>
  createProductAuth({ products: stores.products, now: () => now, demo: true })(keyId, secret)

test('[TOK4] listed keys exist, with a hash in the place of the secret', async () => {
  await apply(listed('a', 'secret-a', 'shop'), listed('b', 'secret-b', 'one', 'two'))
  expect(await authenticate('a', 'secret-a')).toMatchObject({
    ok: true,
    key: { products: ['shop'], origin: 'bootstrap' },
  })
  expect(await authenticate('b', 'secret-b')).toMatchObject({ ok: true, key: { products: ['one', 'two'] } })
  const stored = await stores.products.findKey('a', now)
  expect(stored?.secretHashes).toEqual([new Uint8Array(hashSecret('secret-a'))])
})

test('[TOK4] the next start takes new secrets and products over', async () => {
  await apply(listed('a', 'before', 'shop'))
  await apply(listed('a', 'after', 'other'))
  expect(await authenticate('a', 'before')).toMatchObject({ ok: false, code: 'PRODUCT_AUTH_INVALID_SECRET' })
  expect(await authenticate('a', 'after')).toMatchObject({ ok: true, key: { products: ['other'] } })
})

test('[TOK4] one that is no longer listed is disabled, and comes back with the list', async () => {
  await apply(listed('a', 'x', 'shop'), listed('b', 'y', 'shop'))
  await apply(listed('b', 'y', 'shop'))
  expect(await authenticate('a', 'x')).toEqual({ ok: false, code: 'PRODUCT_AUTH_INVALID_KEY' })
  expect((await authenticate('b', 'y')).ok).toBe(true)
  await apply(listed('a', 'x', 'shop'))
  expect((await authenticate('a', 'x')).ok).toBe(true)
  expect((await authenticate('b', 'y')).ok).toBe(false)
})

test('[TOK4] keys of the command line and of the demo are never touched', async () => {
  await stores.products.putKey({ keyId: 'cli', secretHash: hashSecret('x'), products: ['p'], origin: 'cli' }, now)
  const demo = await ensureDemoKey(stores.products, { dataDir }, now)
  await apply()
  expect((await authenticate('cli', 'x')).ok).toBe(true)
  expect((await authenticate(demo.keyId, demo.secret)).ok).toBe(true)
})

test('the demo key: made once, its secret kept for the owner alone', async () => {
  const first = await ensureDemoKey(stores.products, { dataDir }, now)
  const again = await ensureDemoKey(stores.products, { dataDir }, now + 1)
  expect(again).toEqual(first)
  expect(Buffer.from(first.secret, 'base64url')).toHaveLength(32)
  expect(await authenticate(first.keyId, first.secret)).toMatchObject({ ok: true, key: { origin: 'demo' } })
  const path = join(dataDir, 'demo-secret')
  expect(readFileSync(path, 'utf8').trim()).toBe(first.secret)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})
