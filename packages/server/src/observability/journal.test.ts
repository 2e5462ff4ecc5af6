import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Call } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { StoreError } from '../ports/store-error.ts'
import { boundedLines, boundedMs, createBoundedLog } from './bounded.ts'
import { createJournal } from './journal.ts'
import { createLogger } from './logger.ts'
import { createMetrics } from './metrics.ts'

function setUp({ isDebug = false, participants = false } = {}) {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const logger = createLogger({ level: isDebug ? 'debug' : 'info', participants, destination })
  const state = { now: 0 }
  const journal = createJournal({
    logger,
    isDebug,
    now: () => state.now,
    meter: createMetrics({ node: 'n', version: '1', stores: ['database'] }),
  })
  const read = () => lines.map((line) => JSON.parse(line)).map(({ time: _, ...rest }) => rest)
  return { journal, logger, state, read }
}

const ann = { product: 'shop', role: 'customer', userId: 'ann' }
const ben = { product: 'shop', role: 'agent', userId: 'ben' }
const who = { participant: ann, sessionId: 'session', displayName: 'Ann Planted' }
/** printf 'shop\0customer\0ann' | sha256sum | cut -c1-16 */
const annHash = 'fbe7042ee62919d7'

const over: Call = {
  product: 'shop',
  callUuid: 'c0ffee',
  version: 4,
  status: 'ended',
  caller: { ...ann, displayName: 'Ann Planted' },
  callee: { ...ben, displayName: 'Ben' },
  contextType: 'order',
  contextId: '17',
  callType: 'audio',
  metadata: { note: 'planted' },
  startedAt: 1_000,
  ringTimeoutMs: 45_000,
  ringExpiresAt: 46_000,
  callerPlace: { sessionId: 's', deviceId: null, node: 'n', settled: true, state: 'held' },
  calleePlace: null,
  acceptedAt: 4_000,
  connectedAt: 4_300,
  endedAt: 64_000,
  endReason: 'hangup',
}

const step = (call: Call): Step => ({ call, event: { type: 'ended', at: 0, by: null, notices: [] } })

test('[LOG2] a socket that the service closes: code, cause, session, seconds; a hash stands for the participant', () => {
  const { journal, read } = setUp()
  journal.closing(who, 4408, 'no pong to a keep-alive', 12.345)
  expect(read()).toEqual([
    {
      level: 'info',
      participant: annHash,
      sessionId: 'session',
      closeCode: 4408,
      cause: 'no pong to a keep-alive',
      seconds: 12.3,
      message: 'socket closed',
    },
  ])
})

test('[LOG2] participants are named where that is asked for', () => {
  const { journal, read } = setUp({ participants: true })
  journal.closing(who, 4409, 'replaced by a newer connection', 1)
  expect(read()[0].participant).toEqual({ product: 'shop', role: 'customer', user_id: 'ann' })
})

test('[LOG2] [LOG1] a call that ended: status, end reason, set-up times, and nothing of what it was about', () => {
  const { journal, read } = setUp()
  journal.committed(step(over))
  journal.committed(step({ ...over, status: 'missed', endReason: 'no_answer', acceptedAt: null, connectedAt: null }))
  expect(read()).toMatchObject([
    {
      callUuid: 'c0ffee',
      product: 'shop',
      caller: annHash,
      status: 'ended',
      endReason: 'hangup',
      ringMs: 3_000,
      connectMs: 300,
      talkMs: 60_000,
      message: 'call ended',
    },
    { status: 'missed', endReason: 'no_answer', ringMs: 63_000 },
  ])
  expect(JSON.stringify(read())).not.toMatch(/planted|"ann"|"17"/i)
})

test('[LOG2] debug shows each request, and nothing else does', () => {
  for (const isDebug of [true, false]) {
    const { journal, read } = setUp({ isDebug })
    const callUuid = '00000000-0000-4000-8000-000000c0ffee'
    journal.request(who, { event: 'call.end', data: { call_uuid: callUuid } }, undefined)
    // What a stranger makes up may hold a secret [LOG1].
    journal.request(who, { event: 'call.accept', data: { call_uuid: 'a-secret' } }, { code: 'CALL_NOT_FOUND' })
    journal.answered({ method: 'GET', path: '/healthz', client: () => '192.0.2.1' }, Response.json({}), 1.26)
    journal.answered({ method: 'GET', path: '/A-Secret', client: () => '192.0.2.1' }, Response.json({}), 1)
    for (const path of ['customer/a-secret', 'customer/a-secret/more/of/it'])
      journal.answered(
        { method: 'GET', path: `/v1/server/calls/${path}`, client: () => '192.0.2.1' },
        Response.json({}),
        1,
      )
    journal.answered(
      { method: 'GET', path: '/v1/server/calls/a-secret', client: () => '192.0.2.1' },
      Response.json({}),
      1,
    )
    const lines = read()
    expect(JSON.stringify(lines).toLowerCase()).not.toContain('a-secret')
    if (!isDebug) expect(lines).toEqual([])
    else
      expect(lines).toMatchObject([
        { level: 'debug', event: 'call.end', callUuid, code: 'ok', message: 'request' },
        { event: 'call.accept', code: 'CALL_NOT_FOUND' },
        { method: 'GET', path: '/healthz', status: 200, address: '192.0.2.1', durationMs: 1.3 },
        { method: 'GET', path: '(unknown)' },
        { path: '(unknown)' },
        { path: '(unknown)' },
        { path: '/v1/server/calls/{call_uuid}' },
      ])
  }
})

test('[LOG2] limits and failed authentications are told with their code, and not one by one', async () => {
  const { journal, read } = setUp()
  journal.request(who, { event: 'call.invite', data: {} }, { code: 'RATE_LIMITED', limit: 'invites' })
  expect(read()).toMatchObject([{ message: 'over a limit', limit: 'invites', event: 'call.invite', level: 'warn' }])
  const refused = () => Response.json({ error: { code: 'PRODUCT_AUTH_INVALID_SECRET' } }, { status: 401 })
  const asked = { method: 'POST', path: '/v1/call/session-token', client: () => '192.0.2.1' }
  const responses = Array.from({ length: 1_000 }, refused)
  for (const response of responses) journal.answered(asked, response, 1)
  await until('the lines are written', () => read().length >= 1 + boundedLines)
  await Bun.sleep(1)
  expect(read()).toHaveLength(1 + boundedLines)
  expect(read()[1]).toMatchObject({ message: 'authentication failed', code: 'PRODUCT_AUTH_INVALID_SECRET' })
  // The client can still read the answer.
  expect(await responses[0]?.json()).toEqual({ error: { code: 'PRODUCT_AUTH_INVALID_SECRET' } })
})

test('[LOG2] what anybody can bring about, again and again, is bounded, whatever it is', () => {
  const { journal, read } = setUp()
  const lines = {
    'socket refused': () => journal.turnedAway(4401, 'token invalid', () => '192.0.2.1'),
    'over a limit': () => journal.request(who, undefined, { code: 'RATE_LIMITED', limit: 'messages' }),
    'a request failed': () => journal.failed(new StoreError('unavailable', 'it is away'), 'a request failed'),
  }
  for (const [message, happen] of Object.entries(lines)) {
    for (let i = 0; i < 5 * boundedLines; i++) happen()
    expect([message, read().filter((line) => line.message === message).length]).toEqual([message, boundedLines])
  }
})

test('[LOG2] of what is told at a bounded rate the rest is counted, and another window has room again', () => {
  const { logger, state, read } = setUp()
  const timers: { work: () => void; ms: number }[] = []
  const bounded = createBoundedLog({
    logger,
    now: () => state.now,
    later: (work, ms) => void timers.push({ work, ms }),
  })
  for (let i = 0; i < boundedLines + 500; i++) bounded.write('warn', { reason: String(i) }, 'x')
  bounded.write('info', {}, 'of another kind')
  expect(read()).toHaveLength(boundedLines + 1)
  expect(timers.map(({ ms }) => ms)).toEqual([boundedMs])
  timers[0]?.work()
  expect(read().at(-1)).toEqual({ level: 'warn', count: 500, message: 'x: and more of them' })
  state.now += boundedMs
  bounded.write('warn', {}, 'x')
  expect(read()).toHaveLength(boundedLines + 3)
})

test('[LOG2] a store that is lost, and back: one line each', async () => {
  const { journal, state, read } = setUp()
  let isThere = false
  const check = journal.watched('redis', async () => {
    if (!isThere) throw new StoreError('unavailable', 'Redis is not connected')
  })
  for (let i = 0; i < 3; i++) expect(await check().catch(() => 'lost')).toBe('lost')
  isThere = true
  state.now = 4_200
  await check()
  await check()
  expect(read()).toMatchObject([
    { level: 'warn', store: 'redis', message: 'store lost', error: { message: 'Redis is not connected' } },
    { level: 'warn', store: 'redis', message: 'store back', durationMs: 4_200 },
  ])
})

test('[LOG1] [LOG2] a request that failed is told without the names in its path', () => {
  const { journal, read } = setUp()
  for (const error of [new StoreError('unavailable', 'it is away'), new Error('a bug')]) {
    for (const path of ['/v1/server/participants/customer/a-secret', '/v1/server/calls', '/A-Secret'])
      journal.failed(error, 'a request failed', { method: 'GET', path })
  }
  const shown = ['/v1/server/participants/{role}/{user_id}', '/v1/server/calls', '(unknown)']
  expect(read().map(({ method, path }) => `${method} ${path}`)).toEqual(
    [...shown, ...shown].map((path) => `GET ${path}`),
  )
})

test('[LOG2] a disk that is full is called so', () => {
  const { journal, read } = setUp()
  for (const text of [
    'database or disk is full',
    'PostgreSQL: could not extend file (53100)',
    'write: No space left on device',
    "OOM command not allowed when used memory > 'maxmemory'.",
  ]) {
    journal.failed(new StoreError('unavailable', text), 'a request failed')
  }
  journal.failed(new StoreError('unavailable', 'PostgreSQL does not answer'), 'a request failed')
  journal.failed(new Error('a bug'), 'a request failed')
  expect(read().map(({ level, message }) => `${level} ${message}`)).toEqual([
    ...Array.from({ length: 4 }, () => 'warn a store is full'),
    'warn a request failed',
    'error a request failed',
  ])
})

test('[LOG1] [LOG2] [ADM2] a request of an operator is told without the names in its path', async () => {
  const { journal, read } = setUp({ isDebug: true })
  const below = '/admin/api/products'
  const ann = `${below}/shop/participants/customer/ann`
  const somebody = `${below}/{product}/participants/{role}/{user_id}`
  const paths: Record<string, string> = {
    '/metrics': '/metrics',
    '/admin/api/now': '/admin/api/now',
    [below]: below,
    [`${below}/shop/calls`]: `${below}/{product}/calls`,
    [`${below}/shop/search`]: `${below}/{product}/search`,
    [ann]: somebody,
    [`${ann}/disconnect`]: `${somebody}/disconnect`,
    [`${ann}/more`]: '(unknown)',
    [`${below}/shop/ann`]: '(unknown)',
    '/admin/api/keys/ann/rotate': '/admin/api/keys/{key_id}/rotate',
    '/Ann': '(unknown)',
  }
  const asked = Object.keys(paths).map((path) => ({ method: 'GET', path, client: () => '127.0.0.1' }))
  for (const one of asked) journal.operator(one, Response.json({}), 1)
  expect(read().map(({ path }) => path)).toEqual(Object.values(paths))
  for (const status of [401, 429])
    journal.operator({ method: 'GET', path: ann, client: () => '127.0.0.1' }, new Response('', { status }), 1)
  await until('the refusals are told', () => read().some(({ message }) => message === 'over a limit'))
  expect(JSON.stringify(read()).toLowerCase()).not.toContain('ann')
})
