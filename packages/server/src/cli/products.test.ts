import { beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { createProductAuth } from '../products/product-auth.ts'
import { openSqlite } from '../stores/sqlite/open.ts'
import { dataDir, json, run, useDataDirs } from './program.fixture.ts'

useDataDirs()

async function authenticate(keyId: string, secret: string, now = Date.UTC(2026, 0, 1)) {
  const { products, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
  try {
    const answer = await createProductAuth({ products, now: () => now })(keyId, secret)
    return answer.ok ? 'ok' : answer.code
  } finally {
    await close()
  }
}

describe('keys', () => {
  test('[TOK4] create prints 256 random bits once, and they authenticate', async () => {
    const { code, out, err } = await run('keys create --product shop')
    expect(code).toBe(0)
    const keyId = /Key ID +(\S+)/.exec(out)?.[1] ?? ''
    const secret = /Secret +(\S+)/.exec(out)?.[1] ?? ''
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32)
    expect(err).not.toContain(secret)
    expect(await authenticate(keyId, secret)).toBe('ok')
    const list = await run('keys list')
    expect(list.out).toContain(keyId)
    expect(list.out).not.toContain(secret)
  })

  test('create for several products, with an ID of its own, as JSON', async () => {
    const key = await json<{ key_id: string; secret: string }>('keys create --key-id mine --product a --product b')
    expect(key).toEqual({ key_id: 'mine', secret: expect.any(String), products: ['a', 'b'] } as never)
    expect(await json<object[]>('keys list')).toEqual([
      {
        key_id: 'mine',
        products: ['a', 'b'],
        state: 'enabled',
        origin: 'cli',
        created_at: '2026-01-01T00:00:00.000Z',
        secrets: 1,
      },
    ])
  })

  test('an ID that is taken is refused, and the key stays as it was', async () => {
    const { secret } = await json<{ secret: string }>('keys create --key-id mine --product a')
    const again = await run('keys create --key-id mine --product b')
    expect(again).toMatchObject({ code: 1, out: '' })
    expect(await authenticate('mine', secret)).toBe('ok')
  })

  test('disable and enable', async () => {
    const { secret } = await json<{ secret: string }>('keys create --key-id mine --product a')
    expect((await run('keys disable mine')).code).toBe(0)
    expect(await authenticate('mine', secret)).toBe('PRODUCT_AUTH_INVALID_KEY')
    expect((await run('keys enable mine')).code).toBe(0)
    expect(await authenticate('mine', secret)).toBe('ok')
  })

  test('rotate: the old secret ends with its grace', async () => {
    const now = Date.UTC(2026, 0, 1)
    const { secret: old } = await json<{ secret: string }>('keys create --key-id mine --product a')
    const { secret: fresh, ...rotated } = await json<{ secret: string }>('keys rotate mine --grace 60')
    expect(rotated).toEqual({ key_id: 'mine', old_secret_valid_until: '2026-01-01T00:01:00.000Z' } as never)
    expect([await authenticate('mine', old, now + 59_000), await authenticate('mine', fresh, now + 59_000)]).toEqual([
      'ok',
      'ok',
    ])
    expect(await authenticate('mine', old, now + 61_000)).toBe('PRODUCT_AUTH_INVALID_SECRET')
    expect(await authenticate('mine', fresh, now + 61_000)).toBe('ok')
  })

  test('a key that is not there: 3', async () => {
    await run('keys create --product shop')
    for (const args of ['keys disable no', 'keys enable no', 'keys rotate no']) {
      expect(await run(args)).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringMatching(/^There is no key no\. Keys: key_\w+\.\n$/),
      })
    }
  })

  test('a key of the environment is not rotated here', async () => {
    const { products, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
    await products.putKey({ keyId: 'env', secretHash: new Uint8Array(32), products: ['a'], origin: 'bootstrap' }, 0)
    await close()
    expect(await run('keys rotate env')).toMatchObject({
      code: 1,
      err: expect.stringContaining('RINGWIRE_BOOTSTRAP_KEYS'),
    })
    expect(await run('keys disable env')).toMatchObject({
      code: 0,
      err: expect.stringContaining('RINGWIRE_BOOTSTRAP_KEYS'),
    })
  })

  test("a key that was made on the operator's page is rotated here, too", async () => {
    const { products, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
    await products.putKey({ keyId: 'paged', secretHash: new Uint8Array(32), products: ['a'], origin: 'page' }, 0)
    await close()
    const { secret } = await json<{ secret: string }>('keys rotate paged')
    expect(await authenticate('paged', secret)).toBe('ok')
  })
})

describe('products', () => {
  beforeEach(() => run('keys create --product shop'))

  test('a product without a key is warned of, with those that have one, and what was asked is done', async () => {
    const warning = `warning: the product shpo has no key in ${dataDir}. Products with a key: shop.\n`
    for (const args of ['products set shpo --busy reject', 'webhooks create https://example.com/ --product shpo']) {
      expect(await run(args)).toMatchObject({ code: 0, err: expect.stringContaining(warning) })
      expect((await run(args.replace('shpo', 'shop'))).err).not.toContain('warning')
      // A service that starts with this setting makes the key.
      const env = { RINGWIRE_BOOTSTRAP_KEYS: `k:${'s'.repeat(32)}:shpo` }
      expect((await run(args, { env })).err).not.toContain('warning')
    }
    expect((await json<object[]>('products list')).length).toBe(2)
    expect((await json<object[]>('webhooks list --product shpo')).length).toBe(2)
  })

  test('[INV5] set changes what is given and keeps the rest', async () => {
    expect(await json<object>('products set shop --busy reject')).toEqual({
      product: 'shop',
      busy: 'reject',
      reveal_busy: false,
      ring_timeout_ms: null,
      media: 'all',
      presence: 'off',
      take: true,
      invite_url: null,
      invite_failure: 'refuse',
    })
    await json('products set shop --reveal-busy true --ring-timeout-ms 20000')
    await json('products set shop --ring-timeout-ms default')
    await json('products set shop --media relay')
    await json('products set shop --presence peers')
    await json('products set shop --take false')
    const changed = { busy: 'reject', reveal_busy: true, ring_timeout_ms: null, media: 'relay', presence: 'peers' }
    const hook = { take: false, invite_url: null, invite_failure: 'refuse' }
    expect(await json<object[]>('products list')).toEqual([{ product: 'shop', ...changed, ...hook }])
    expect((await run('products list')).out).toMatch(/shop +reject +true +default +relay +peers +false/)
  })

  test('[HOOK5] who decides on invites: the secret is printed where the URL is set, and in no list', async () => {
    const url = 'https://backend.example.com/invites'
    const { out } = await run(`products set shop --invite-url ${url} --invite-failure allow`)
    const secret = /Questions are signed with (whsec_\S{32})\n/.exec(out)?.[1] ?? ''
    expect(out).toMatch(/shop .* https:\/\/backend\.example\.com\/invites +allow/)
    expect(await json<object>(`products set shop --invite-url ${url}`)).toMatchObject({ invite_secret: secret })
    expect(await json<object>('products set shop --busy reject')).not.toHaveProperty('invite_secret')
    expect((await run('products list')).out).not.toContain('whsec_')
    const { code, err } = await run('products set shop --invite-url http://127.0.0.1:3000/')
    expect([code, err]).toEqual([1, expect.stringContaining('RINGWIRE_WEBHOOK_ALLOW=127.0.0.1')])
    expect(await json<object>('products set shop --invite-url none')).toMatchObject({ invite_url: null })
  })
})

describe('vapid', () => {
  test('[PUSH2] prints a pair that the settings take, another one each time, and stores nothing', async () => {
    const { code, out, err } = await run('vapid')
    const env = Object.fromEntries(
      out
        .trim()
        .split('\n')
        .map((line) => line.split('=')),
    )
    expect([code, Object.keys(env)]).toEqual([0, ['RINGWIRE_VAPID_PRIVATE_KEY', 'RINGWIRE_VAPID_PUBLIC_KEY']])
    expect(err).not.toContain(env.RINGWIRE_VAPID_PRIVATE_KEY)
    const subject = { RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com' }
    expect((await run('config check', { env: { ...env, ...subject } })).code).toBe(0)
    const other = await json<{ private_key: string; public_key: string }>('vapid')
    // The public key of another pair does not fit.
    const mixed = { ...env, RINGWIRE_VAPID_PUBLIC_KEY: other.public_key, ...subject }
    expect((await run('config check', { env: mixed })).code).not.toBe(0)
    const second = { RINGWIRE_VAPID_PRIVATE_KEY: other.private_key, RINGWIRE_VAPID_PUBLIC_KEY: other.public_key }
    expect((await run('config check', { env: { ...second, ...subject } })).code).toBe(0)
    expect(readdirSync(dataDir)).toEqual([])
  })
})
