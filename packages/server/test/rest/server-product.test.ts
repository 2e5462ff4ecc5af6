import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ProductChanged, ProductShown } from '@ringwire/protocol/backend'
import { asker, credentials, failureOf, keys, openStores, type RestService, read, startRest } from './rest-service.ts'

const path = '/v1/server/product'
const url = 'https://backend.example.com/invites'
let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
beforeAll(async () => {
  shared = await openStores()
  rest = startRest({ stores: shared.stores })
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

const ask = asker(() => rest, path)

const first = {
  product: 'shop',
  ...{ busy: 'allow', reveal_busy: false, ring_timeout_ms: null, media: 'all', presence: 'off' },
  ...{ take: true, invite_url: null, invite_failure: 'refuse' },
}

test('[HOOK5] settings are shown and changed; what is not given stays, and null means what a product has at first', async () => {
  expect(await read(ProductShown, ask('GET'))).toEqual(first)
  const change = {
    busy: 'reject',
    reveal_busy: true,
    ring_timeout_ms: 5_000,
    media: 'relay',
    presence: 'peers',
    take: false,
    more: 1,
  }
  const { more: _, ...changed } = change
  expect(await read(ProductChanged, ask('PATCH', '', change))).toEqual({ ...first, ...changed })
  expect(await read(ProductChanged, ask('PATCH', '', { ring_timeout_ms: null }))).toEqual({
    ...{ ...first, ...changed, ring_timeout_ms: null },
  })
  const { product: _product, ...back } = first
  expect(await read(ProductChanged, ask('PATCH', '', back))).toEqual(first)
  expect(await read(ProductShown, ask('GET'))).toEqual(first)
})

test('[HOOK5] the secret is shown where the URL is set, and nowhere else', async () => {
  const { invite_secret: secret, ...set } = await read(ProductChanged, ask('PATCH', '', { invite_url: url }))
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/)
  expect(set).toEqual({ ...first, invite_url: url })
  expect(await read(ProductShown, ask('GET'))).toEqual(set)
  expect(await read(ProductChanged, ask('PATCH', '', { busy: 'allow' }))).toEqual(set)
  expect(await read(ProductChanged, ask('PATCH', '', { invite_url: `${url}/2` }))).toMatchObject({
    invite_secret: secret,
  })
  expect(await read(ProductChanged, ask('PATCH', '', { invite_url: null }))).toEqual(first)
})

for (const [body, message] of [
  [{ busy: 'no' }, 'busy must be allow or reject.'],
  [{ reveal_busy: 1 }, 'reveal_busy must be true or false.'],
  [{ ring_timeout_ms: 4_999 }, 'ring_timeout_ms must be a whole number of ms from 5000 to 180000'],
  [{ ring_timeout_ms: '9000' }, 'ring_timeout_ms must be a whole number'],
  [{ media: null }, 'media must be all or relay.'],
  [{ presence: 'all' }, 'presence must be off or peers.'],
  [{ take: 'no' }, 'take must be true or false.'],
  [{ invite_failure: 'ring' }, 'invite_failure must be allow or refuse.'],
  [{ invite_url: 7 }, 'invite_url must be an absolute URL'],
  [{ invite_url: 'http://backend.example.com/' }, 'invite_url must begin with https://.'],
  [{ invite_url: 'https://10.0.0.1/' }, 'RINGWIRE_WEBHOOK_ALLOW=127.0.0.1'],
  [{ invite_url: 'https://me:secret@backend.example.com/' }, 'invite_url must hold no user name and no password.'],
  [{ busy: 'reject', invite_url: '' }, 'invite_url must be an absolute URL'],
] as const) {
  test(`what is wrong is named, and nothing is changed: ${JSON.stringify(body)}`, async () => {
    const failure = await failureOf(await ask('PATCH', '', body))
    expect(failure).toMatchObject({ status: 400, code: 'INVALID_REQUEST_BODY' })
    expect(failure.message).toContain(message)
    expect(failure.message).not.toContain('secret')
    expect(await read(ProductShown, ask('GET'))).toEqual(first)
  })
}

test('[SRV1] a key reads and changes its own products', async () => {
  const headers = credentials(keys.both)
  expect((await failureOf(await ask('GET', '', undefined, headers))).code).toBe('PRODUCT_REQUIRED')
  await read(ProductChanged, ask('PATCH', '', { product: 'clinic', busy: 'reject' }, headers))
  expect(await read(ProductShown, ask('GET', '?product=clinic', undefined, headers))).toMatchObject({
    ...{ product: 'clinic', busy: 'reject' },
  })
  const foreign = await failureOf(await ask('PATCH', '?product=clinic', { busy: 'reject' }))
  expect(foreign.code).toBe('PRODUCT_AUTH_PRODUCT_MISMATCH')
})
