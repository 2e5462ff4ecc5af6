import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { readApnsKey } from '../../src/config/push-keys.ts'
import { type ApnsCredentials, createApns } from '../../src/push/apns.ts'
import type { PushMessage, PushService } from '../../src/push/service.ts'
import { type ApnsServer, startApnsServer } from './apns-server.ts'

let server: ApnsServer
/** Between the service and APNs: it shows which connections are there. */
let way: TcpProxy
beforeAll(async () => {
  server = await startApnsServer()
  way = await new TcpProxy(server.url).start()
})
afterAll(async () => {
  await way.stop()
  await server.stop()
})

const opened: PushService[] = []
afterEach(() => {
  for (const service of opened.splice(0)) service.close()
  server.requests.skip()
  server.resets.skip()
})

function open(options: { now?: () => number; pingEveryMs?: number; pongMs?: number; keyId?: string } = {}) {
  const key = readApnsKey(server.key)
  if (key === undefined) throw new Error('no key')
  const { now = Date.now, keyId = 'KEY1234567', ...rest } = options
  const credentials: ApnsCredentials = { key, keyId, teamId: 'TEAM123456', topic: 'com.example.calls' }
  const service = createApns({ credentials, urls: { production: way.url, sandbox: way.url }, now, ...rest })
  opened.push(service as PushService)
  return service
}
const callUuid = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'
const message = (now = Date.now()): PushMessage => ({
  type: 'call.wake',
  callUuid,
  payload: {
    type: 'call.wake',
    call_uuid: callUuid,
    caller: { user_id: 'ann', role: 'customer', display_name: 'Ann' },
  },
  expiresAt: now + 45_000,
})
const phone = (voip = true, token = 'ab'.repeat(32)) =>
  ({ platform: 'apns', token, voip, environment: 'production' }) as const
const soonEnough = () => AbortSignal.timeout(20_000)

/** A push that is not answered, and given up in time, but not before it is there. Resolves with its connection. */
async function unanswered(apns: ReturnType<typeof open>): Promise<number> {
  await server.plan('silence')
  const late = new AbortController()
  const given = apns.send(phone(), message(), late.signal)
  const { over } = await server.requests.next()
  late.abort(new DOMException('The time is over.', 'TimeoutError'))
  expect(await given).toEqual({ result: 'failed', reason: 'timeout' })
  return over
}

test('[PUSH2] a VoIP push: the headers that Apple asks for, and the payload as it is', async () => {
  const said = message()
  expect(await open().send(phone(), said, soonEnough())).toEqual({ result: 'accepted', reason: '200' })
  const { headers, body } = await server.requests.next()
  expect(headers).toMatchObject({
    ':path': `/3/device/${'ab'.repeat(32)}`,
    'apns-topic': 'com.example.calls.voip',
    'apns-push-type': 'voip',
    'apns-priority': '10',
    'apns-expiration': String(Math.floor(said.expiresAt / 1000)),
    'apns-collapse-id': callUuid,
  })
  expect(body).toEqual({ aps: {}, ...said.payload })
})

test('[PUSH2] an alert for a device without PushKit', async () => {
  await open().send(phone(false), message(), soonEnough())
  const { headers, body } = await server.requests.next()
  expect(headers).toMatchObject({ 'apns-topic': 'com.example.calls', 'apns-push-type': 'alert' })
  expect(body.aps).toMatchObject({ alert: { title: 'Ann', body: 'Incoming call' }, 'mutable-content': 1 })
})

test('[PUSH2] an alert that the ring is over takes the place of it, and says how it ended', async () => {
  const apns = open()
  for (const [status, body] of [
    ['missed', 'Missed call'],
    ['cancelled', 'Missed call'],
    ['rejected', 'Declined on another device'],
    ['accepted', 'Answered on another device'],
    ['ended', 'Answered on another device'],
  ]) {
    const over: PushMessage = {
      ...message(),
      type: 'call.wake_cancelled',
      payload: { ...message().payload, type: 'call.wake_cancelled', status },
    }
    await apns.send(phone(false), over, soonEnough())
    const { headers, body: said } = await server.requests.next()
    expect(headers).toMatchObject({ 'apns-push-type': 'alert', 'apns-collapse-id': callUuid })
    expect(said.aps).toEqual({ alert: { title: 'Ann', body }, 'interruption-level': 'passive', 'mutable-content': 1 })
  }
})

test('[PUSH2] one connection for many at once', async () => {
  const apns = open()
  const sent = await Promise.all(Array.from({ length: 20 }, () => apns.send(phone(), message(), soonEnough())))
  expect(sent.every(({ result }) => result === 'accepted')).toBe(true)
  const over = new Set<number>()
  for (let i = 0; i < 20; i++) over.add((await server.requests.next()).over)
  expect(over.size).toBe(1)
})

test('[PUSH2] what APNs answers, and what is made of it', async () => {
  const apns = open()
  expect(await apns.send(phone(true, 'dead'.repeat(16)), message(), soonEnough())).toEqual({
    result: 'gone',
    reason: '410 Unregistered',
  })
  const made = async (status: number, reason?: string, headers?: Record<string, string>) => {
    await server.plan({ status, ...(reason && { reason }), ...(headers && { headers }) })
    return apns.send(phone(), message(), soonEnough())
  }
  expect(await made(429, 'TooManyRequests', { 'retry-after': '2' })).toEqual({
    result: 'limited',
    reason: '429 TooManyRequests',
    retryAfterMs: 2000,
  })
  expect((await made(413, 'PayloadTooLarge')).result).toBe('too_large')
  expect((await made(503, 'Shutdown')).result).toBe('failed')
  expect(await made(400, 'BadDeviceToken')).toEqual({ result: 'refused', reason: '400 BadDeviceToken' })
  expect((await open({ keyId: 'OTHER' }).send(phone(), message(), soonEnough())).reason).toBe(
    '403 InvalidProviderToken',
  )
})

test('[PUSH2] the token is made anew in time, and when Apple calls it too old, but not at every refusal', async () => {
  const clock = { at: Date.now() - 30 * 60_000 }
  const apns = open({ now: () => clock.at })
  const tokenOf = async () => (await server.requests.next()).headers.authorization
  const send = () => apns.send(phone(), message(clock.at), soonEnough())
  await send()
  const first = await tokenOf()
  await send()
  expect(await tokenOf()).toBe(first)
  clock.at += 41 * 60_000
  await send()
  const second = await tokenOf()
  expect(second).not.toBe(first)
  // It is a minute old: another one would be refused as one too many.
  await server.plan({ status: 403, reason: 'ExpiredProviderToken' })
  expect((await send()).reason).toBe('403 ExpiredProviderToken')
  expect(await tokenOf()).toBe(second)
  clock.at += 21 * 60_000
  await server.plan({ status: 403, reason: 'ExpiredProviderToken' })
  expect((await send()).result).toBe('accepted')
  expect([await tokenOf(), await tokenOf()].map((token) => token === second)).toEqual([true, false])
})

test('[HOOK4] informational answers and bodies without end are not read on, and the next push goes over a new connection', async () => {
  const apns = open()
  for (const answer of ['informational', 'endless'] as const) {
    await server.plan(answer)
    expect(await apns.send(phone(), message(), soonEnough())).toEqual({
      result: 'failed',
      reason: 'the answer is too large',
    })
    const { over } = await server.requests.next()
    expect((await apns.send(phone(), message(), soonEnough())).result).toBe('accepted')
    expect((await server.requests.next()).over).not.toBe(over)
  }
})

test('[PUSH2] GOAWAY: what was answered is answered, and what comes after it goes over a new connection', async () => {
  const apns = open()
  await server.plan('goaway')
  expect((await apns.send(phone(), message(), soonEnough())).result).toBe('accepted')
  const { over: first } = await server.requests.next()
  // What crosses the goodbye may be lost; after it nothing is.
  let over = first
  while (over === first) {
    const { result } = await apns.send(phone(), message(), soonEnough())
    if (result === 'accepted') over = (await server.requests.next()).over
  }
  expect(over).toBeGreaterThan(first)
})

test('[PUSH2] a connection that is cut, or silent under a request, is replaced', async () => {
  const apns = open()
  const cut = async () => {
    await server.plan('cut')
    expect((await apns.send(phone(), message(), soonEnough())).result).toBe('failed')
    return (await server.requests.next()).over
  }
  for (const lose of [cut, () => unanswered(apns)]) {
    const over = await lose()
    expect((await apns.send(phone(), message(), soonEnough())).result).toBe('accepted')
    expect((await server.requests.next()).over).toBeGreaterThan(over)
  }
})

/** The connection is closed by the service, and not merely used no more. */
async function closed({ clientGone }: TcpProxy['last']): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('the connection is still there')), soon(10_000))
  await Promise.race([clientGone, late.promise]).finally(() => clearTimeout(timer))
}

test('[PUSH2] a push that is given up is cancelled alone: its connection is used by the next one', async () => {
  const apns = open()
  await server.plan('silence')
  const ring = new AbortController()
  const given = apns.send(phone(), message(), AbortSignal.any([ring.signal, soonEnough()]))
  const { over } = await server.requests.next()
  ring.abort()
  expect((await given).result).toBe('failed')
  // CANCEL, RFC 9113 section 7.
  expect(await server.resets.next()).toBe(8)
  expect((await apns.send(phone(), message(), soonEnough())).result).toBe('accepted')
  expect((await server.requests.next()).over).toBe(over)
})

test('[PUSH2] a connection on which a request was not answered is closed', async () => {
  await unanswered(open())
  await closed(way.last)
})

test('[PUSH2] what else is under way on such a connection is waited for, and then it is closed', async () => {
  const apns = open()
  await apns.send(phone(), message(), soonEnough())
  const { last: failing } = way
  failing.stall('client')
  const other = apns.send(phone(), message(), soonEnough())
  expect((await apns.send(phone(), message(), AbortSignal.timeout(300))).result).toBe('failed')
  // The next push does not wait for it.
  expect((await apns.send(phone(), message(), soonEnough())).result).toBe('accepted')
  expect(way.last).not.toBe(failing)
  expect(way.open).toContain(failing)
  failing.flow('client')
  expect((await other).result).toBe('accepted')
  await closed(failing)
})

test('[PUSH2] a connection that answers no ping is closed, also while nothing is sent', async () => {
  // Enough for a pong on a busy machine.
  const apns = open({ pingEveryMs: 500, pongMs: 3_000 })
  await apns.send(phone(), message(), soonEnough())
  const { last: silent } = way
  silent.silence('client')
  await closed(silent)
  expect((await apns.send(phone(), message(), soonEnough())).result).toBe('accepted')
  expect(way.last).not.toBe(silent)
})

test('[PUSH2] a connection that said goodbye is closed', async () => {
  const apns = open()
  await server.plan('goaway')
  expect((await apns.send(phone(), message(), soonEnough())).result).toBe('accepted')
  await closed(way.last)
})
