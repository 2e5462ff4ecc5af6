import { describe, expect, test } from 'bun:test'
import { createClient } from './client.ts'
import { agent, createFake, onlineFake, start, tokenFor, turn } from './environment.fixture.ts'

describe('signs of life', () => {
  test('after 25 s without a word the service is asked for one; an answer is enough', async () => {
    const fake = await onlineFake()
    await fake.pass(24_999)
    expect(fake.socket.sent).toEqual([])
    await fake.pass(1)
    expect(fake.socket.events()).toEqual(['1 auth.refresh'])
    expect(fake.socket.sent[0]!.data).toEqual({ token: 'token 1' })
    await fake.pass(4_999)
    fake.socket.replies('auth.refreshed', { expires_at: new Date(start + 3_600_000).toISOString() })
    await fake.pass(24_999)
    expect(fake.client.state.name).toBe('online')
    expect(fake.socket.sent).toHaveLength(1)
  })

  test('no answer in 10 s: the socket is dead, and the next one is asked for the rest', async () => {
    const fake = await onlineFake()
    await fake.pass(34_999)
    expect(fake.client.state.name).toBe('online')
    await fake.pass(1)
    expect(fake.client.state).toMatchObject({ name: 'waiting', why: { code: 'silent' } })
    await fake.pass(500)
    expect(fake.socket.url).toContain('resume=s1')
  })

  test('any message puts the question off', async () => {
    const fake = await onlineFake()
    for (let seq = 1; seq < 5; seq++) {
      await fake.pass(20_000)
      fake.socket.says({ event: 'news', data: {}, seq })
    }
    expect(fake.socket.sent).toEqual([])
  })

  test('the network goes, or comes, or somebody looks at the page: it is asked at once, once', async () => {
    for (const signal of ['offline', 'online', 'visible'] as const) {
      const fake = await onlineFake()
      fake.signal(signal)
      fake.signal(signal)
      expect(fake.socket.events()).toEqual(['1 auth.refresh'])
      await fake.pass(10_000)
      expect(fake.client.state.name).toBe('waiting')
    }
  })

  test('a network that goes brings no attempt while it waits', async () => {
    const fake = await onlineFake()
    await fake.pass(5_000)
    fake.socket.ends(1006)
    fake.signal('offline')
    await turn()
    expect(fake.sockets).toHaveLength(1)
  })
})

test('[PLACE4] a request that waits for a place and for a store that is away does not cost the socket', async () => {
  const fake = await onlineFake()
  fake.client.call(agent)
  // As long as the service may take: 3 s for the verdict, 5 s for the store, and the way.
  await fake.pass(9_000)
  expect(fake.client.state.name).toBe('online')
  fake.socket.fails('SERVICE_UNAVAILABLE')
  await fake.pass(5_000)
  expect(fake.sockets).toHaveLength(1)
})

describe('the token of a live socket', () => {
  test('[WS5] is renewed in its last minute', async () => {
    const fake = await onlineFake({ heartbeatMs: 1e9 })
    await fake.pass(3_540_000)
    expect(fake.asked).toEqual(['first'])
    await fake.pass(15_000)
    expect(fake.asked).toEqual(['first', 'expiring'])
    expect(fake.socket.sent).toMatchObject([{ event: 'auth.refresh', data: { token: 'token 2' } }])
    fake.socket.replies('auth.refreshed')
    await fake.pass(3_555_000)
    expect(fake.asked).toHaveLength(3)
    expect(fake.sockets).toHaveLength(1)
  })

  test('a renewal that fails is tried again, and is told as an error', async () => {
    const fake = createFake()
    const codes: string[] = []
    let asked = 0
    const reasons: string[] = []
    const getToken = async (reason: string) => {
      reasons.push(reason)
      if (++asked === 2) throw new Error('down')
      const expires_at = new Date(fake.env.now() + 100_000).toISOString()
      return { token: `t${asked}`, expires_at, ws_url: 'ws://x' }
    }
    const client = createClient({ getToken, heartbeatMs: 1e9 }, fake.env)
    client.on('error', ({ code }) => codes.push(code))
    client.connect()
    await turn()
    fake.socket.ok()
    await fake.pass(85_000)
    expect(codes).toEqual(['TOKEN_FAILED'])
    await fake.pass(1_000)
    expect(fake.socket.sent.map(({ data }) => data)).toEqual([{ token: 't3' }])
    fake.socket.fails('AUTH_TOKEN_INVALID')
    await fake.pass(2_000)
    expect(reasons).toEqual(['first', 'expiring', 'expiring', 'refused'])
    expect(codes).toEqual(['TOKEN_FAILED', 'AUTH_TOKEN_INVALID'])
  })

  test('that its backend hands out again and again is asked for every 5 s at the most', async () => {
    const fake = createFake()
    const token = tokenFor(fake, 120_000)
    const asked: number[] = []
    const getToken = async () => {
      asked.push(fake.env.now())
      return token
    }
    const client = createClient({ getToken, heartbeatMs: 1e9, heartbeatTimeoutMs: 1e9 }, fake.env)
    client.connect()
    await turn()
    fake.socket.ok()
    for (let i = 0; i < 150; i++) {
      await fake.pass(1_000)
      for (const it of fake.socket.sent.splice(0))
        fake.socket.says({ event: 'auth.refreshed', request_id: it.request_id })
    }
    const pauses = asked.slice(1).map((at, i) => at - asked[i]!)
    expect(pauses.length).toBeGreaterThan(5)
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(5_000)
  })

  test('an older one that is sent again by a resume is followed by the newest', async () => {
    const fake = await onlineFake({ heartbeatMs: 1_000 })
    await fake.pass(1_000)
    fake.socket.ends(4401)
    await fake.pass(500)
    fake.socket.ok({ recovered: true, handled: 0 })
    expect(fake.socket.sent.map(({ n, data }) => [n, data.token])).toEqual([
      [1, 'token 1'],
      [2, 'token 2'],
    ])
  })
})
