import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSilentLogger } from '../observability/logger.ts'
import { defaultProductSettings } from '../ports/product-store.ts'
import { openSqlite, type SqliteStores } from '../stores/sqlite/open.ts'
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
const authenticate = (keyId: string, secret: string, at = now) =>
  createProductAuth({ products: stores.products, now: () => at, demo: true })(keyId, secret)

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

test('[TOK4] the next start takes new secrets and products over; the old secret is valid for a day', async () => {
  await apply(listed('a', 'before', 'shop'))
  await apply(listed('a', 'after', 'other'))
  const dayMs = 86_400_000
  for (const secret of ['before', 'after'])
    expect(await authenticate('a', secret)).toMatchObject({ ok: true, key: { products: ['other'] } })
  expect((await authenticate('a', 'before', now + dayMs - 1)).ok).toBe(true)
  expect(await authenticate('a', 'before', now + dayMs)).toMatchObject({ code: 'PRODUCT_AUTH_INVALID_SECRET' })
  expect((await authenticate('a', 'after', now + dayMs)).ok).toBe(true)
})

test('[TOK4] nodes that start one after another, some with the old list, lock nobody out', async () => {
  const lists = ['before', 'after', 'before', 'after', 'after']
  for (const secret of lists) {
    await apply(listed('a', secret, 'shop'))
    for (const known of new Set(lists.slice(0, lists.indexOf(secret) + 1))) {
      expect((await authenticate('a', known)).ok).toBe(true)
    }
  }
  const secrets = (await stores.products.findKey('a', now))?.secretHashes
  expect(secrets?.map((hash) => Buffer.from(hash))).toEqual(
    [hashSecret('after'), hashSecret('before')].map((h) => Buffer.from(h)),
  )
})

test('[TOK4] a key that was disabled comes back with the secret of the list alone', async () => {
  await apply(listed('a', 'leaked', 'shop'))
  await apply()
  await apply(listed('a', 'fresh', 'shop'))
  expect((await authenticate('a', 'leaked')).ok).toBe(false)
  expect((await authenticate('a', 'fresh')).ok).toBe(true)
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

test('[PRES1] the people of the demo see each other, whatever else its product is set to', async () => {
  await stores.products.changeSettings('demo', { busy: 'reject' })
  for (let start = 0; start < 2; start++) {
    await ensureDemoKey(stores.products, { dataDir }, now + start)
    expect(await stores.products.settings('demo')).toEqual({
      ...{ ...defaultProductSettings, busy: 'reject', presence: 'peers' },
    })
  }
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
