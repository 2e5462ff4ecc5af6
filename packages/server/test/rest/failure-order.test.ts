import { afterAll, beforeAll, expect, test } from 'bun:test'
import { credentials, failureOf, goodBody, keys, openStores, type RestService, startRest } from './rest-service.ts'

let shared: Awaited<ReturnType<typeof openStores>>
beforeAll(async () => {
  shared = await openStores()
})
afterAll(() => shared.close())

interface Asked {
  headers: Record<string, string | undefined>
  body: Record<string, unknown>
  /** What has to happen at the service before. */
  before: ((service: RestService) => Promise<unknown>)[]
}

type Cause = (asked: Asked) => void

const header = (name: string, value: string | undefined): Cause => {
  return ({ headers }) => {
    headers[name] = value
  }
}
const field = (name: string, value: unknown): Cause => {
  return ({ body }) => {
    body[name] = value
  }
}
const ipLimit: Cause = ({ before }) => {
  before.push(({ limits }) => limits.tokenRequest('127.0.0.1'))
}
const keyLimit: Cause = ({ before }) => {
  for (const key of [keys.shop, keys.both]) before.push(({ limits }) => limits.tokenKey(key.id))
}
const keyOfSeveral: Cause = ({ headers }) => {
  Object.assign(headers, credentials(keys.both))
}

/** Every failure of the endpoint, in the order of TOK1, and how a request comes to have it. */
const failures: [name: string, code: string, cause: Cause][] = [
  ['IP limit', 'BOOTSTRAP_IP_RATE_LIMITED', ipLimit],
  ['no key ID', 'PRODUCT_AUTH_KEY_ID_REQUIRED', header('X-SVC-Product-Key-ID', undefined)],
  ['no secret', 'PRODUCT_AUTH_SECRET_REQUIRED', header('X-SVC-Product-Secret', undefined)],
  ['unknown key', 'PRODUCT_AUTH_INVALID_KEY', header('X-SVC-Product-Key-ID', 'nobody')],
  ['wrong secret', 'PRODUCT_AUTH_INVALID_SECRET', header('X-SVC-Product-Secret', 'wrong')],
  ['key limit', 'BOOTSTRAP_KEY_RATE_LIMITED', keyLimit],
  ['wrong type', 'INVALID_REQUEST_BODY', field('device_id', 5)],
  ['no product', 'PRODUCT_REQUIRED', keyOfSeveral],
  ['other product', 'PRODUCT_AUTH_PRODUCT_MISMATCH', field('product', 'other')],
  ['no context_type', 'CONTEXT_TYPE_REQUIRED', field('context_type', undefined)],
  ['no context_id', 'CONTEXT_ID_REQUIRED', field('context_id', null)],
  ['no role', 'ROLE_REQUIRED', field('role', ' ')],
  ['no user_id', 'USER_ID_REQUIRED', field('user_id', undefined)],
  ['no display_name', 'DISPLAY_NAME_REQUIRED', field('display_name', '')],
  ['no allowed_peer_role', 'ALLOWED_PEER_ROLE_REQUIRED', field('allowed_peer_role', null)],
]

/** A product cannot be both missing and another one. */
const exclude = new Set(['no product + other product'])

async function ask(asked: Asked) {
  const service = startRest({
    stores: shared.stores,
    env: { RINGWIRE_TOKEN_RATE_IP: '1/60', RINGWIRE_TOKEN_RATE_KEY: '1/60' },
  })
  try {
    for (const step of asked.before) await step(service)
    const headers = Object.entries(asked.headers).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const response = await service.ask(asked.body, Object.fromEntries(headers))
    return await failureOf(response)
  } finally {
    await service.stop()
  }
}

/** The earlier failure is caused last: where both need the same header, it decides. */
function withFailures(...causes: Cause[]): Asked {
  const asked: Asked = { headers: credentials(), body: { ...goodBody }, before: [] }
  for (const cause of causes) cause(asked)
  return asked
}

test('[TOK1] each failure alone gives its code', async () => {
  for (const [name, code, cause] of failures) {
    expect([name, (await ask(withFailures(cause))).code]).toEqual([name, code])
  }
})

for (const [i, [earlier, code, causeEarlier]] of failures.entries()) {
  test(`[TOK1] ${earlier} answers before every failure that comes later`, async () => {
    for (const [later, , causeLater] of failures.slice(i + 1)) {
      if (exclude.has(`${earlier} + ${later}`)) continue
      const failure = await ask(withFailures(causeLater, causeEarlier))
      expect([later, failure.code]).toEqual([later, code])
    }
  })
}

test('[TOK1] every kind of a bad body answers before the product and missing fields', async () => {
  const big = '\u0001'.repeat(255)
  const bodies = [
    { product: 'other', user_id: 'x'.repeat(256) },
    { product: 'other', display_name: big, context_id: big },
  ]
  for (const body of bodies) {
    const failure = await ask({ headers: credentials(), body, before: [] })
    expect(failure.code).toBe('INVALID_REQUEST_BODY')
  }
})

test('[TOK1] [HTTP1] a body that says that it is too large answers before everything else', async () => {
  const causes = failures.map(([, , cause]) => cause)
  const asked = withFailures(...causes.reverse())
  asked.body.padding = 'x'.repeat(20_000)
  expect((await ask(asked)).code).toBe('REQUEST_BODY_TOO_LARGE')
})

test('[TOK1] all failures at once: the IP limit', async () => {
  const causes = failures.map(([, , cause]) => cause).reverse()
  expect((await ask(withFailures(...causes))).code).toBe('BOOTSTRAP_IP_RATE_LIMITED')
})
