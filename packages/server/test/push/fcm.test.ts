import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type AddressInfo, createServer } from 'node:net'
import { readFcmCredentials } from '../../src/config/push-keys.ts'
import { createFcm } from '../../src/push/fcm.ts'
import type { PushMessage } from '../../src/push/service.ts'
import { type FcmServer, startFcmServer } from './fcm-server.ts'

let server: FcmServer
beforeAll(async () => {
  server = await startFcmServer()
  server.register('phone')
  server.remove('gone')
})
afterAll(() => server.stop())

function open(now: () => number = Date.now, accessMs?: number) {
  const credentials = readFcmCredentials(server.credentials)
  if (credentials === undefined) throw new Error('no credentials')
  return createFcm({ credentials, url: server.url, now, ...(accessMs !== undefined && { accessMs }) })
}
const callUuid = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'
const caller = { user_id: 'ann', role: 'customer', display_name: 'Ann' }
const message = (): PushMessage => ({
  type: 'call.wake',
  callUuid,
  payload: { type: 'call.wake', call_uuid: callUuid, caller },
  expiresAt: Date.now() + 45_500,
})
const phone = (token = 'phone') => ({ platform: 'fcm', token }) as const
const soonEnough = () => AbortSignal.timeout(20_000)

test('[PUSH2] a data message of high priority, collapsed by the call, as long as the ring', async () => {
  expect((await open().send(phone(), message(), soonEnough())).result).toBe('accepted')
  const sent = await server.messages.next()
  expect(sent).toEqual({
    token: 'phone',
    data: { type: 'call.wake', call_uuid: callUuid, caller: JSON.stringify(caller) },
    android: { priority: 'HIGH', ttl: expect.stringMatching(/^(4[0-5]|[23]\d)s$/), collapse_key: callUuid },
  })
})

test('[PUSH2] one access token for many messages at once, and a new one in time', async () => {
  const clock = { at: Date.now() }
  const fcm = open(() => clock.at)
  const before = server.assertions.all.length
  const send = () => fcm.send(phone(), { ...message(), expiresAt: clock.at + 45_000 }, soonEnough())
  const sent = await Promise.all(Array.from({ length: 5 }, send))
  expect(sent.map(({ result }) => result)).toEqual(Array.from({ length: 5 }, () => 'accepted'))
  expect(server.assertions.all.length).toBe(before + 1)
  clock.at += 3_540_000
  expect((await send()).result).toBe('accepted')
  expect(server.assertions.all.length).toBe(before + 2)
})

test('[PUSH2] a message that is given up takes the access token from no other one', async () => {
  const fcm = open()
  const gate = Promise.withResolvers<void>()
  server.assertions.skip()
  server.grantsAfter(gate.promise)
  const call = new AbortController()
  const first = fcm.send(phone(), message(), call.signal)
  await server.assertions.next()
  const second = fcm.send(phone(), message(), soonEnough())
  call.abort()
  expect(await first).toEqual({ result: 'failed', reason: 'timeout' })
  gate.resolve()
  expect((await second).result).toBe('accepted')
})

test('[PUSH2] a request for an access token that is never answered has its time, and the next one its own', async () => {
  const fcm = open(Date.now, 500)
  const gate = Promise.withResolvers<void>()
  server.grantsAfter(gate.promise)
  expect(await fcm.send(phone(), message(), soonEnough())).toEqual({
    result: 'failed',
    reason: 'no access token: timeout',
  })
  gate.resolve()
  // With a time that a busy machine keeps.
  let sent = await fcm.send(phone(), message(), soonEnough())
  while (sent.result === 'failed') sent = await fcm.send(phone(), message(), soonEnough())
  expect(sent.result).toBe('accepted')
})

test('[PUSH2] an access token that was taken back is replaced, once', async () => {
  const fcm = open()
  expect((await fcm.send(phone(), message(), soonEnough())).result).toBe('accepted')
  server.takeBack()
  expect((await fcm.send(phone(), message(), soonEnough())).result).toBe('accepted')
  server.takeBack()
  server.answers({ status: 401 })
  const before = server.assertions.all.length
  expect(await fcm.send(phone(), message(), soonEnough())).toEqual({ result: 'refused', reason: '401' })
  expect(server.assertions.all.length).toBe(before + 1)
})

test('[PUSH2] who meets the old access token late asks for no other one than the new one that is there', async () => {
  const fcm = open()
  expect((await fcm.send(phone(), message(), soonEnough())).result).toBe('accepted')
  server.takeBack()
  const gate = Promise.withResolvers<void>()
  server.refusesAfter(gate.promise)
  const before = server.assertions.all.length
  server.refused.skip()
  const late = fcm.send(phone(), message(), soonEnough())
  await server.refused.next()
  expect((await fcm.send(phone(), message(), soonEnough())).result).toBe('accepted')
  gate.resolve()
  expect((await late).result).toBe('accepted')
  expect(server.assertions.all.length).toBe(before + 1)
})

test('[PUSH2] an answer with an access token that breaks off is a failure that passes; one that is no JSON is a refusal', async () => {
  const fcm = open()
  server.breaksOff()
  expect(await fcm.send(phone(), message(), soonEnough())).toEqual({
    result: 'failed',
    reason: expect.stringMatching(/^no access token: /),
  })
  expect((await fcm.send(phone(), message(), soonEnough())).result).toBe('accepted')
  const other = open()
  server.grantsText(404, '<html>')
  expect(await other.send(phone(), message(), soonEnough())).toEqual({
    result: 'refused',
    reason: 'no access token: 404',
  })
})

test('[PUSH2] what FCM answers, and what is made of it', async () => {
  const fcm = open()
  expect(await fcm.send(phone('gone'), message(), soonEnough())).toEqual({ result: 'gone', reason: '404 UNREGISTERED' })
  const made = async (status: number, error: object = {}, headers: Record<string, string> = {}) => {
    server.answers({ status, error, headers })
    return fcm.send(phone(), message(), soonEnough())
  }
  expect(await made(429, { status: 'QUOTA_EXCEEDED' }, { 'Retry-After': '3' })).toEqual({
    result: 'limited',
    reason: '429 QUOTA_EXCEEDED',
    retryAfterMs: 3000,
  })
  expect((await made(503, { status: 'UNAVAILABLE' })).result).toBe('failed')
  expect((await made(400, { status: 'INVALID_ARGUMENT' })).result).toBe('refused')
  expect((await made(403, { status: 'SENDER_ID_MISMATCH' })).result).toBe('refused')
  // Of a wrong path or a project that is not there: no device is gone for it.
  expect(await made(404, { status: 'NOT_FOUND' })).toEqual({ result: 'refused', reason: '404 NOT_FOUND' })
  server.answers(null)
  // Its time is over when the request is there, however long that takes.
  const late = new AbortController()
  const silent = fcm.send(phone(), message(), late.signal)
  await server.unanswered.next()
  late.abort(new DOMException('The time is over.', 'TimeoutError'))
  expect(await silent).toEqual({ result: 'failed', reason: 'timeout' })
  expect((await fcm.send(phone(), message(), soonEnough())).result).toBe('accepted')
})

test('[HOOK4] Google, or who answers in its place, is read no further than a stranger', async () => {
  let answers = 0
  const flooding = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      const again = answers++ === 0 ? 'HTTP/1.1 103 Early Hints\r\n\r\n' : '{"error":'
      if (answers > 1) socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const more = () => {
        while (!socket.destroyed && socket.write(again.repeat(1_000)));
      }
      socket.on('drain', more)
      more()
    })
  })
  await new Promise<void>((resolve) => flooding.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(flooding.address() as AddressInfo).port}`
  const credentials = readFcmCredentials(server.credentials)
  if (credentials === undefined) throw new Error('no credentials')
  const toMessages = createFcm({ credentials, url, now: Date.now })
  expect(await toMessages.send(phone(), message(), soonEnough())).toEqual({
    result: 'failed',
    reason: 'too many informational answers',
  })
  const toTokens = createFcm({ credentials: { ...credentials, tokenUrl: `${url}/token` }, url, now: Date.now })
  expect(await toTokens.send(phone(), message(), soonEnough())).toEqual({
    result: 'failed',
    reason: 'no access token: the answer broke off',
  })
  flooding.close()
})

test('[PUSH2] credentials that Google does not know are refused, with its reason; others are none', async () => {
  const stolen = { ...JSON.parse(server.credentials), client_email: 'other@calls-1042.iam.gserviceaccount.com' }
  const credentials = readFcmCredentials(JSON.stringify(stolen))
  if (credentials === undefined) throw new Error('no credentials')
  const fcm = createFcm({ credentials, url: server.url, now: Date.now })
  expect(await fcm.send(phone(), message(), soonEnough())).toEqual({
    result: 'refused',
    reason: 'no access token: 400 invalid_grant (Invalid JWT Signature.)',
  })
  for (const wrong of [
    '',
    '{}',
    'null',
    JSON.stringify({ ...stolen, private_key: 'x' }),
    JSON.stringify({ ...stolen, token_uri: 'http://oauth2.example.com/token' }),
  ]) {
    expect(readFcmCredentials(wrong)).toBeUndefined()
  }
})
