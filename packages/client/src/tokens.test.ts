import { describe, expect, test } from 'bun:test'
import { createFake, type Fake, failure, start, tokenFor, turn } from './environment.fixture.ts'
import { createTokens, firstWords } from './tokens.ts'
import type { SessionToken, TokenResponse } from './types.ts'

type Gift = SessionToken | TokenResponse

function setUp(give: (fake: Fake, n: number) => Gift | Promise<Gift>) {
  const fake = createFake()
  const reasons: string[] = []
  const getToken = async (reason: string) => give(fake, reasons.push(reason))
  const tokens = createTokens(fake.env, { getToken }, 5_000, () => {})
  return { fake, reasons, tokens }
}

describe('the held token', () => {
  test('is used again while it has more than 60 s left', async () => {
    const { fake, reasons, tokens } = setUp((fake, n) => tokenFor(fake, 3_600_000, `t${n}`))
    expect((await tokens.current()).token).toBe('t1')
    await fake.pass(3_539_999)
    expect((await tokens.current()).token).toBe('t1')
    await fake.pass(1)
    expect((await tokens.current()).token).toBe('t2')
    expect(reasons).toEqual(['first', 'expiring'])
  })

  test('a short one is used again until a fifth of its life is left: no reconnect and no ICE restart asks for another', async () => {
    const { fake, reasons, tokens } = setUp((fake, n) => tokenFor(fake, 30_000, `t${n}`))
    await tokens.current()
    await fake.pass(23_999)
    expect((await tokens.current()).token).toBe('t1')
    await fake.pass(1)
    expect((await tokens.current()).token).toBe('t2')
    expect(reasons).toEqual(['first', 'expiring'])
  })

  test('whose expires_at is in the past is used, and another is asked for no more often than the pauses allow', async () => {
    const { fake, reasons, tokens } = setUp((fake, n) => tokenFor(fake, -3_600_000, `t${n}`))
    expect((await tokens.current()).token).toBe('t1')
    expect((await tokens.current()).token).toBe('t1')
    const at: number[] = []
    for (let ms = 0; ms < 120_000; ms += 100) {
      const asked = reasons.length
      void tokens.current()
      void tokens.renewed()
      await fake.pass(100)
      if (reasons.length > asked) at.push(ms + 100)
    }
    expect(at).toEqual([500, 1500, 3500, 7500, 15_500, 30_500, 45_500, 60_500, 75_500, 90_500, 105_500])
  })

  test('the clock of the backend is better than that of the device, that of the service is the best', async () => {
    const { fake, tokens } = setUp((fake) => {
      const headers = { Date: new Date(start + 60_000).toUTCString() }
      return Response.json(tokenFor(fake, 3_600_000), { headers })
    })
    fake.clockJump = 7_200_000
    await tokens.current()
    expect(tokens.msLeft(tokens.held()!)).toBe(3_540_000)
    tokens.setServerTime(new Date(start).toISOString())
    tokens.refused()
    await tokens.current()
    expect(tokens.msLeft(tokens.held()!)).toBe(3_600_000)
  })

  test('of somebody before is forgotten, also one that is still on its way', async () => {
    const gifts: PromiseWithResolvers<SessionToken>[] = []
    const { fake, reasons, tokens } = setUp(() => {
      const gift = Promise.withResolvers<SessionToken>()
      gifts.push(gift)
      return gift.promise
    })
    const give = async (nth: number) => {
      await turn()
      gifts[nth - 1]?.resolve(tokenFor(fake, 3_600_000, `t${nth}`))
    }
    const first = tokens.current()
    await give(1)
    await first
    const late = failure(tokens.renewed())
    await fake.pass(500)
    tokens.forget()
    const next = tokens.current()
    await give(3)
    expect((await next).token).toBe('t3')
    await give(2)
    expect((await late).code).toBe('TOKEN_FAILED')
    expect([tokens.held()?.token, tokens.last()?.token]).toEqual(['t3', 't3'])
    const waits = failure(tokens.renewed())
    tokens.forget()
    await fake.pass(15_000)
    expect([(await waits).code, tokens.held(), tokens.last()]).toEqual(['TOKEN_FAILED', undefined, undefined])
    expect(reasons).toEqual(['first', 'expiring', 'first'])
  })

  test('who asks at the same time asks once', async () => {
    const { reasons, tokens } = setUp((fake) => tokenFor(fake, 3_600_000))
    await Promise.all([tokens.current(), tokens.current(), tokens.renewed()])
    expect(reasons).toEqual(['first'])
  })

  test('a wrong clock does not make it old: the service tells its time', async () => {
    const { fake, reasons, tokens } = setUp((fake) => tokenFor(fake, 3_600_000))
    fake.clockJump = 7_200_000
    await tokens.current()
    tokens.setServerTime(new Date(start).toISOString())
    await tokens.current()
    expect(reasons).toEqual(['first'])
    expect(tokens.localTime(new Date(start + 5).toISOString())).toBe(start + 7_200_005)
    tokens.setServerTime('nonsense')
    expect(tokens.msLeft(tokens.held()!)).toBe(3_600_000)
  })

  test('one that was refused is not used again', async () => {
    const { reasons, tokens } = setUp((fake, n) => tokenFor(fake, 3_600_000, `t${n}`))
    await tokens.current()
    tokens.refused()
    expect(tokens.held()).toBeUndefined()
    expect(tokens.last()?.token).toBe('t1')
    expect((await tokens.current()).token).toBe('t2')
    expect(reasons).toEqual(['first', 'refused'])
  })
})

describe('getToken', () => {
  test('that fails, throws at once or gives something else: TOKEN_FAILED, and asked again the next time', async () => {
    const gifts: (() => unknown)[] = [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('at once')
      },
      () => undefined,
      () => ({ token: 't', expires_at: 'soon' }),
    ]
    const { tokens } = setUp((fake, n) => (gifts[n - 1] ?? (() => tokenFor(fake, 3_600_000)))() as SessionToken)
    const codes = [await failure(tokens.current()), await failure(tokens.current())]
    expect(codes).toMatchObject([
      { code: 'TOKEN_FAILED', retryable: true },
      { code: 'TOKEN_FAILED', retryable: true },
    ])
    for (let i = 0; i < 2; i++) expect((await failure(tokens.current())).code).toBe('TOKEN_FAILED')
    expect((await tokens.current()).token).toBe('token')
  })

  test('that never answers is given up', async () => {
    const { fake, tokens } = setUp(() => new Promise(() => {}))
    const failed = failure(tokens.current())
    await fake.pass(5_000)
    expect(await failed).toMatchObject({ code: 'TOKEN_FAILED', retryable: true })
    expect(fake.timers).toBe(0)
  })

  test('that is late is not called a second time while it is on its way; what it gives is used', async () => {
    const gifts = [Promise.withResolvers<SessionToken>(), Promise.withResolvers<SessionToken>()]
    const { fake, reasons, tokens } = setUp((_, n) => gifts[n - 1]!.promise)
    const first = failure(tokens.current())
    await fake.pass(5_000)
    expect((await first).code).toBe('TOKEN_FAILED')
    const second = tokens.current()
    await fake.pass(9_999)
    expect(reasons).toEqual(['first'])
    gifts[0]!.resolve(tokenFor(fake, 3_600_000, 'late'))
    expect((await second).token).toBe('late')
    expect([reasons, fake.timers]).toEqual([['first'], 0])
  })

  test('that seems to answer never is called again after three times as long; an answer of the first is then too late', async () => {
    const gifts = [Promise.withResolvers<SessionToken>(), Promise.withResolvers<SessionToken>()]
    const { fake, reasons, tokens } = setUp((_, n) => gifts[n - 1]!.promise)
    const first = failure(tokens.current())
    await fake.pass(5_000)
    await first
    const second = tokens.current()
    await fake.pass(10_000)
    expect(reasons).toEqual(['first', 'first'])
    gifts[1]!.resolve(tokenFor(fake, 3_600_000, 'second'))
    await second
    gifts[0]!.resolve(tokenFor(fake, 3_600_000, 'first'))
    await turn()
    expect(tokens.held()?.token).toBe('second')
  })

  test('that answers leaves no timer behind; its own words about a retry are kept', async () => {
    const { fake, tokens } = setUp((fake, n) => {
      if (n === 1) return Promise.reject(Object.assign(new Error('slow down'), { retryAfterMs: 9_000 }))
      if (n === 2) return Promise.reject(Object.assign(new Error('signed out'), { retryable: false }))
      return tokenFor(fake, 3_600_000)
    })
    expect(await failure(tokens.current())).toMatchObject({ retryable: true, retryAfterMs: 9_000 })
    expect(await failure(tokens.current())).toMatchObject({ retryable: false })
    await tokens.current()
    await turn()
    expect(fake.timers).toBe(0)
  })

  test('that gives the response of the backend: its token, or its status', async () => {
    const { tokens } = setUp((fake, n) => {
      return n === 1 ? new Response('Busy', { status: 503 }) : Response.json(tokenFor(fake, 3_600_000, `t${n}`))
    })
    expect(await failure(tokens.current())).toMatchObject({
      message: 'getToken gave no token: 503 Busy',
      httpStatus: 503,
    })
    expect((await tokens.current()).token).toBe('t2')
  })

  test('that gives a response whose body breaks off, a token with an error status, or one without a URL', async () => {
    const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('cut off')) })
    const { tokens } = setUp((fake, n) => {
      if (n === 1) return new Response(broken)
      if (n === 2) return Response.json(tokenFor(fake, 3_600_000, 'a'.repeat(20)), { status: 500 })
      return { ...tokenFor(fake, 3_600_000), ws_url: '' }
    })
    expect((await failure(tokens.current())).message).toBe('getToken failed: cut off')
    expect((await failure(tokens.current())).message).toBe('getToken gave no token: 500 {"token":…')
    expect((await failure(tokens.current())).message).toContain('gave no token')
  })
})

describe('the first words of an answer', () => {
  test('hold no markup and nothing that could be a token or a secret', () => {
    const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl'
    const said: [unknown, string][] = [
      [`<!doctype html>\n<meta name="csrf" content="${jwt}"><h1>Not\n found</h1>`, 'Not found'],
      [`{"error":{"code":"PRODUCT_AUTH_INVALID_SECRET"}}`, '{"error":{"code":"PRODUCT_AUTH_INVALID_SECRET"}}'],
      [`{"token":"short","expires_at":"soon"}`, '{"token":…'],
      [`secret=hunter2&x=1`, 'secret=…'],
      [`{"a":"${jwt}","b":1}`, '{"a":"…","b":1}'],
      [`Bearer ${jwt} expired`, 'Bearer … expired'],
      [undefined, 'undefined'],
      ['word '.repeat(100), `${'word '.repeat(20)}`],
    ]
    for (const [text, words] of said) expect(firstWords(text)).toBe(words)
  })

  test('take no longer for an answer that is made to be hard', () => {
    for (const hard of [
      '<'.repeat(1e6),
      '"key'.repeat(2e5),
      'key'.repeat(3e5),
      'a'.repeat(1e6),
      ' '.repeat(1e6),
      '"'.repeat(1e6),
    ])
      expect(firstWords(hard).length).toBeLessThanOrEqual(100)
  })
})
