import { expect, test } from 'bun:test'
import { timingSafeEqual } from 'node:crypto'
import type { ProductKey } from '../ports/product-store.ts'
import { createProductAuth, hashSecret } from './product-auth.ts'

function keyWith(...secrets: string[]): ProductKey {
  return {
    keyId: 'k',
    secretHashes: secrets.map(hashSecret),
    products: ['shop'],
    disabled: false,
    origin: 'cli',
    createdAt: 0,
  }
}

function setUp(key: ProductKey | undefined) {
  const compared: [Uint8Array, Uint8Array][] = []
  const authenticate = createProductAuth({
    products: { findKey: (keyId) => (keyId === key?.keyId ? key : undefined) },
    now: () => 0,
    equal(a, b) {
      compared.push([a, b])
      return timingSafeEqual(a, b)
    },
  })
  return { authenticate, compared }
}

test('[TOK4] the right secret, a wrong one, an unknown key, a disabled key', async () => {
  const key = keyWith('right')
  expect(await setUp(key).authenticate('k', 'right')).toEqual({ ok: true, key })
  expect(await setUp(key).authenticate('k', 'wrong')).toEqual({ ok: false, code: 'PRODUCT_AUTH_INVALID_SECRET' })
  expect(await setUp(key).authenticate('other', 'right')).toEqual({ ok: false, code: 'PRODUCT_AUTH_INVALID_KEY' })
  for (const secret of ['right', 'wrong']) {
    const disabled = setUp({ ...key, disabled: true })
    expect(await disabled.authenticate('k', secret)).toEqual({ ok: false, code: 'PRODUCT_AUTH_INVALID_KEY' })
  }
})

test('[TOK4] the key of the demo is only right with RINGWIRE_DEMO', async () => {
  const key: ProductKey = { ...keyWith('right'), origin: 'demo' }
  const authenticate = (demo: boolean) => createProductAuth({ products: { findKey: () => key }, now: () => 0, demo })
  expect(await authenticate(true)('k', 'right')).toEqual({ ok: true, key })
  expect(await authenticate(false)('k', 'right')).toEqual({ ok: false, code: 'PRODUCT_AUTH_INVALID_KEY' })
})

test('[TOK4] both secrets of a rotated key are right', async () => {
  const key = keyWith('new', 'old')
  for (const secret of ['new', 'old']) expect((await setUp(key).authenticate('k', secret)).ok).toBe(true)
  expect((await setUp(key).authenticate('k', 'older')).ok).toBe(false)
})

test('[TOK4] every answer costs the same comparisons, of hashes of the same length', async () => {
  const cases: [ProductKey | undefined, string][] = [
    [undefined, 'x'],
    [keyWith('right'), 'right'],
    [keyWith('right'), 'wrong'],
    [keyWith('new', 'old'), 'new'],
    [keyWith('new', 'old'), 'old'],
    [keyWith('new', 'old'), ''],
    [{ ...keyWith('right'), disabled: true }, 'right'],
    [{ ...keyWith('right'), secretHashes: [] }, 'right'],
    [{ ...keyWith('right'), secretHashes: [new Uint8Array(5)] }, 'right'],
  ]
  for (const [key, secret] of cases) {
    const { authenticate, compared } = setUp(key)
    await authenticate('k', secret)
    expect(compared).toHaveLength(4)
    for (const [a, b] of compared) expect([a.length, b.length]).toEqual([32, 32])
  }
})

test('[TOK4] a stored hash that is the hash of nothing lets nobody in', async () => {
  const zeros = { ...keyWith(), secretHashes: [] }
  expect((await setUp(zeros).authenticate('k', '')).ok).toBe(false)
})
