import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  credentials,
  failureOf,
  goodBody,
  keys,
  openStores,
  type RestService,
  startRest,
  tokenOf,
} from './rest-service.ts'

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

const refusal = async (body: unknown, headers?: Record<string, string>) => failureOf(await rest.ask(body, headers))

describe('fields', () => {
  const fields = [
    'product',
    'context_type',
    'context_id',
    'user_id',
    'role',
    'display_name',
    'device_id',
    'app_version',
    'allowed_peer_role',
  ]
  for (const field of fields) {
    test(`[TOK1] ${field} of the wrong type, over 255 bytes or not storable: INVALID_REQUEST_BODY names it`, async () => {
      const wrong = [
        5,
        0,
        true,
        false,
        [],
        ['a'],
        {},
        { a: 1 },
        'x'.repeat(256),
        'é'.repeat(128),
        '𝄞'.repeat(64),
        'a\0b',
      ]
      for (const value of wrong) {
        const failure = await refusal({ ...goodBody, [field]: value })
        expect([value, failure.status, failure.code]).toEqual([value, 400, 'INVALID_REQUEST_BODY'])
        expect(failure.message).toStartWith(`${field} `)
      }
      const surrogate = JSON.stringify({ ...goodBody, [field]: 'HERE' }).replace('HERE', '\\ud800')
      expect((await refusal(surrogate)).message).toStartWith(`${field} `)
    })
  }

  test('[TOK2] further roles are a list of at most 8 names: the message names the one that is wrong', async () => {
    for (const [value, names] of [
      ['agent', 'more_peer_roles '],
      [{}, 'more_peer_roles '],
      [Array(9).fill('agent'), 'more_peer_roles '],
      [['agent', 5], 'more_peer_roles.1 '],
      [[''], 'more_peer_roles.0 '],
      [['..'], 'more_peer_roles.0 '],
      [['x'.repeat(256)], 'more_peer_roles.0 '],
    ] as const) {
      const failure = await refusal({ ...goodBody, more_peer_roles: value })
      expect([value, failure.status, failure.code]).toEqual([value, 400, 'INVALID_REQUEST_BODY'])
      expect(failure.message).toStartWith(names)
    }
  })

  test('[TOK1] 255 bytes of UTF-8 are not too many', async () => {
    for (const value of ['x'.repeat(255), `x${'é'.repeat(127)}`]) {
      expect((await rest.ask({ ...goodBody, user_id: value })).status).toBe(200)
    }
  })

  test('[TOK1] a signed token over 3 KiB: the message names the field that takes most', async () => {
    // A control character takes six bytes in JSON, and a third more in base64url.
    const big = '\u0001'.repeat(255)
    const failure = await refusal({ ...goodBody, display_name: big, context_id: big.slice(1) })
    expect(failure).toMatchObject({ status: 400, code: 'INVALID_REQUEST_BODY' })
    expect(failure.message).toStartWith('display_name ')
    const most = { ...goodBody, display_name: 'x'.repeat(255), context_id: 'y'.repeat(255), user_id: 'z'.repeat(255) }
    expect((await tokenOf(await rest.ask(most))).token.length).toBeLessThanOrEqual(3072)
  })

  test('[LOG1] no message repeats what was sent', async () => {
    for (const [field, value] of [
      ['user_id', ['hunter2']],
      ['device_id', 'hunter2'.repeat(60)],
    ] as const) {
      const failure = await refusal({ ...goodBody, [field]: value })
      expect(failure.message).not.toContain('hunter2')
    }
    expect((await refusal('{"hunter2')).message).not.toContain('hunter2')
  })
})

describe('bodies', () => {
  const padded = (bytes: number) => {
    const text = JSON.stringify({ ...goodBody, padding: '' })
    return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`)
  }
  const head = (extra: string) =>
    [
      'POST /v1/call/session-token HTTP/1.1',
      'Host: 127.0.0.1',
      'Content-Type: application/json',
      `X-SVC-Product-Key-ID: ${keys.shop.id}`,
      `X-SVC-Product-Secret: ${keys.shop.secret}`,
      extra,
      '',
      '',
    ].join('\r\n')

  test('[TOK1] 16 KiB are allowed, one byte more is not', async () => {
    expect(padded(16 * 1024)).toHaveLength(16 * 1024)
    expect((await rest.ask(padded(16 * 1024))).status).toBe(200)
    const failure = await refusal(padded(16 * 1024 + 1))
    expect(failure).toMatchObject({ status: 413, code: 'REQUEST_BODY_TOO_LARGE' })
    expect(failure.message).toContain('16 KiB')
  })

  test('[TOK1] the bound holds without Content-Length, as the body comes in', async () => {
    const chunk = `1000\r\n${'x'.repeat(4096)}\r\n`
    // It never ends, and is still refused.
    const answer = await rest.raw(head('Transfer-Encoding: chunked') + chunk.repeat(6))
    expect(answer).toContain('HTTP/1.1 413')
    expect(answer).toContain('REQUEST_BODY_TOO_LARGE')
  })

  test('[TOK1] chunks of any size make one body', async () => {
    const text = JSON.stringify({ ...goodBody, display_name: 'Ŝtef' })
    const chunks = [...Buffer.from(text)].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('')
    const request = Buffer.from(`${head('Transfer-Encoding: chunked')}${chunks}0\r\n\r\n`, 'latin1')
    expect(await rest.raw(request)).toContain('HTTP/1.1 200')
  })

  test('[TOK1] a Content-Length that promises too much is refused at once, with nothing read', async () => {
    for (const length of ['1000000000', '99999999999999174']) {
      const answer = await rest.raw(head(`Content-Length: ${length}`))
      expect(answer).toContain('HTTP/1.1 413')
      expect(answer).toContain('REQUEST_BODY_TOO_LARGE')
    }
  })

  test('[TOK1] a Content-Length that says less than comes: the rest is no part of the body', async () => {
    const text = JSON.stringify(goodBody)
    const answer = await rest.raw(`${head(`Content-Length: ${text.length}`)}${text}`)
    expect(answer).toContain('HTTP/1.1 200')
    const short = await rest.raw(`${head(`Content-Length: ${text.length - 1}`)}${text}`)
    expect(short).toContain('INVALID_REQUEST_BODY')
  })

  test('a refusal that reads no body leaves the connection usable, or closes it', async () => {
    const text = JSON.stringify(goodBody)
    const wrong = head(`Content-Length: ${text.length}`).replace(keys.shop.secret, 'wrong')
    const answers = await rest.raw(`${wrong}${text}${head(`Content-Length: ${text.length}`)}${text}`, 2)
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    expect([['401', '200'], ['401']]).toContainEqual(statuses as string[])
  })

  test('[TOK1] bytes that are no UTF-8 are refused', async () => {
    const text = JSON.stringify({ ...goodBody, display_name: 'HERE' })
    for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80]]) {
      const [before = '', after = ''] = text.split('HERE')
      const body = Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])
      expect(await refusal(body)).toEqual({
        status: 400,
        code: 'INVALID_REQUEST_BODY',
        message: 'The request body is not UTF-8.',
      })
    }
    const utf16 = Buffer.from(JSON.stringify(goodBody), 'utf16le')
    expect((await refusal(utf16)).code).toBe('INVALID_REQUEST_BODY')
  })

  test('[TOK1] JSON nested 8 000 deep, closed or not, is survived', async () => {
    const deep = '['.repeat(8000)
    expect((await refusal(deep)).code).toBe('INVALID_REQUEST_BODY')
    expect((await refusal(`${deep}${']'.repeat(8000)}`)).code).toBe('INVALID_REQUEST_BODY')
    expect((await refusal('['.repeat(10_000))).code).toBe('INVALID_REQUEST_BODY')
    const { user_id, ...others } = goodBody
    const body = `${JSON.stringify(others).slice(0, -1)},"user_id":"ann","x":${deep}${']'.repeat(8000)}}`
    expect([200, 400]).toContain((await rest.ask(body)).status)
    expect((await rest.ask(goodBody)).status).toBe(200)
  })

  test('the interface names one Content-Type; what counts is the body', async () => {
    for (const type of ['application/json; charset=utf-8', 'text/plain', 'application/vnd.x+json']) {
      expect((await rest.ask(goodBody, { ...credentials(), 'Content-Type': type })).status).toBe(200)
    }
  })

  test('[TOK1] whatever JSON comes, the answer is a token or one of the codes', async () => {
    const known = Object.keys(goodBody)
    const value = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.jsonValue(), fc.constant(undefined))
    const body = fc.oneof(
      fc.jsonValue(),
      fc
        .dictionary(fc.constantFrom(...known, 'product', 'device_id', 'x'), value)
        .map((more) => ({ ...goodBody, ...more })),
    )
    await fc.assert(
      fc.asyncProperty(body, async (sent) => {
        const response = await rest.ask(JSON.stringify(sent) ?? '')
        if (response.status === 200) await tokenOf(response)
        else expect([400, 403]).toContain((await failureOf(response)).status)
      }),
      { numRuns: 300 },
    )
  })
})
