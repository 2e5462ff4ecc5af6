import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createRingwire, RingwireError, type RingwireOptions } from './ringwire.ts'

const good = { url: 'https://calls.example.com', keyId: 'shop', secret: 's3cret-of-shop' }
const variables = ['RINGWIRE_URL', 'RINGWIRE_KEY_ID', 'RINGWIRE_KEY_SECRET'] as const
const before = variables.map((name) => process.env[name])

beforeEach(() => {
  for (const name of variables) delete process.env[name]
})
afterEach(() => {
  for (const [index, name] of variables.entries()) {
    const value = before[index]
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
})

function refusal(options?: unknown): RingwireError {
  try {
    createRingwire(options as RingwireOptions)
  } catch (error) {
    expect(error).toBeInstanceOf(RingwireError)
    return error as RingwireError
  }
  throw new Error('it was taken')
}

test('what is missing is named with its environment variable', () => {
  for (const [name, variable] of [
    ['url', 'RINGWIRE_URL'],
    ['keyId', 'RINGWIRE_KEY_ID'],
    ['secret', 'RINGWIRE_KEY_SECRET'],
  ] as const) {
    for (const value of [undefined, '', ' ', 17, null]) {
      const { code, message } = refusal({ ...good, [name]: value })
      expect([code, message]).toEqual(['INVALID_ARGUMENT', expect.stringMatching(new RegExp(`^${name} .*${variable}`))])
    }
  }
  expect(refusal().message).toContain('RINGWIRE_URL')
})

test('a wrong value is named with what to give', () => {
  for (const [options, words] of [
    [{ url: 'calls.example.com' }, ['url "calls.example.com"', 'https://calls.example.com']],
    [{ url: 'wss://calls.example.com/v1/ws' }, ['wss://', 'give https://calls.example.com.']],
    [{ url: 'ws://127.0.0.1:8080' }, ['give http://127.0.0.1:8080.']],
    [{ url: 'ftp://calls.example.com' }, ['not with ftp:']],
    [{ url: 'https://calls.example.com/?product=shop' }, ['"?"']],
    [{ url: 'https://calls.example.com/#a' }, ['"#"']],
    [{ keyId: 'sh op' }, ['keyId', 'space']],
    [{ keyId: 'schön' }, ['keyId']],
    [{ product: '' }, ['product', '""']],
    [{ product: 7 }, ['product', '7']],
    [{ timeoutMs: 0 }, ['timeoutMs', '; this is 0']],
    [{ timeoutMs: 1.5 }, ['1.5']],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, ['Infinity']],
    [{ timeoutMs: '5' }, ['"5"']],
    [{ fetch: 'fetch' }, ['fetch', '"fetch"']],
    [{ keyID: 'shop' }, ['no option "keyID"', 'keyId']],
  ] as const) {
    const { code, message } = refusal({ ...good, ...options })
    expect(code).toBe('INVALID_ARGUMENT')
    for (const word of words) expect(message).toContain(word)
  }
  for (const none of [null, 'https://calls.example.com', 7])
    expect(refusal(none).message).toContain('must be an object')
})

test('no message holds a secret, or the password of an address', () => {
  const secret = 'bad secret\nof shop'
  const url = 'https://ann:hunter2@calls.example.com'
  for (const error of [refusal({ ...good, secret }), refusal({ ...good, url }), refusal({ ...good, url: `:${url}` })]) {
    expect(`${error.message}${error.stack}`).not.toMatch(/hunter2|of shop/)
  }
})

test('options go before the environment, and the environment is enough', async () => {
  const asked: [string, string | null][] = []
  const ask = async (url: string, init: RequestInit) => {
    asked.push([url, new Headers(init.headers).get('x-svc-product-key-id')])
    return Response.json({ success: true, data: [], next_cursor: null })
  }
  process.env.RINGWIRE_URL = 'https://env.example.com/'
  process.env.RINGWIRE_KEY_ID = ' of-env\n'
  process.env.RINGWIRE_KEY_SECRET = 'secret'
  await createRingwire({ fetch: ask }).webhooks.list()
  await createRingwire({ ...good, fetch: ask }).webhooks.list()
  expect(asked).toEqual([
    ['https://env.example.com/v1/server/webhooks', 'of-env'],
    ['https://calls.example.com/v1/server/webhooks', 'shop'],
  ])
})
