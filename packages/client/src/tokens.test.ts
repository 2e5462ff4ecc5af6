import { describe, expect, test } from 'bun:test'
import { createFake, type Fake, failure, start, tokenFor, turn } from '../test/support/fake.ts'
import { createTokens } from './tokens.ts'
import type { SessionToken } from './types.ts'

function setUp(give: (fake: Fake, n: number) => SessionToken | Promise<SessionToken>) {
  const fake = createFake()
  const reasons: string[] = []
  const tokens = createTokens(
    fake.env,
    async (reason) => give(fake, reasons.push(reason)),
    5_000,
    () => {},
  )
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

  test('one that lasts less than that serves the one attempt it was asked for', async () => {
    const { tokens } = setUp((fake, n) => tokenFor(fake, 30_000, `t${n}`))
    expect((await tokens.current()).token).toBe('t1')
    expect((await tokens.current()).token).toBe('t2')
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
})
