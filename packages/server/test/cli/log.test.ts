import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import { type Box, createBox } from './command.ts'

let box: Box
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

const planted = {
  productSecret: 'planted-product-secret-0123456789abcdef',
  wrongSecret: 'planted-wrong-secret-0123456789abcdef',
  turnSecret: 'planted-turn-secret',
  sdp: 'v=0\r\no=planted-origin 1 1 IN IP4 198.51.100.77\r\na=ice-pwd:plantedicepassword\r\n',
  candidate: 'candidate:1 1 udp 1 198.51.100.78 9 typ host planted-candidate',
  metadata: 'planted-metadata',
  query: 'planted-query',
}

test('[LOG1] a noisy run at debug level prints no secret, token, SDP, candidate, metadata or query', async () => {
  const service = await box.serve({
    env: {
      RINGWIRE_LOG_LEVEL: 'debug',
      RINGWIRE_BOOTSTRAP_KEYS: `k:${planted.productSecret}:shop`,
      RINGWIRE_TURN_URLS: 'turn:t.test:3478',
      RINGWIRE_TURN_SECRET: planted.turnSecret,
    },
  })
  const { url } = service
  const secrets = Object.values(planted)

  async function issue(user: string, role: string, peer: string, secret = planted.productSecret): Promise<string> {
    const response = await fetch(`${url}/v1/call/session-token?x=${planted.query}`, {
      method: 'POST',
      headers: {
        'X-SVC-Product-Key-ID': 'k',
        'X-SVC-Product-Secret': secret,
        'X-Forwarded-For': '203.0.113.1',
      },
      body: JSON.stringify({
        context_type: 'c',
        context_id: '1',
        user_id: user,
        role,
        display_name: user,
        allowed_peer_role: peer,
      }),
    })
    const body = (await response.json()) as { token?: string; ice_servers?: { credential?: string }[] }
    if (body.token !== undefined) secrets.push(body.token, ...body.token.split('.').slice(1))
    for (const { credential } of body.ice_servers ?? []) if (credential !== undefined) secrets.push(credential)
    return body.token ?? ''
  }

  await issue('ann', 'customer', 'agent', planted.wrongSecret)
  const [annToken, bobToken] = [await issue('ann', 'customer', 'agent'), await issue('bob', 'agent', 'customer')]
  for (const token of [annToken, `${annToken}x`, 'rubbish']) {
    await fetch(`${url}/v1/calls/history?cursor=${planted.query}&token=${annToken}`, {
      headers: { Authorization: `Bearer ${token}` },
    })
  }
  await fetch(`${url}/nothing?${planted.query}=${annToken}`)
  const refused = new Client({ url, token: `${annToken}x`, by: 'header' })
  expect((await refused.status).status).toBe(401)
  const closed = new Client({ url, token: `${annToken}x` })
  expect((await closed.closed).code).toBe(4401)

  const ann = new Client({ url, token: annToken })
  const bob = new Client({ url, token: bobToken, by: 'header' })
  await Promise.all([ann.next('auth.ok'), bob.next('auth.ok')])
  ann.text(`{"event":"webrtc.offer","data":{"sdp":${JSON.stringify(planted.sdp)}`)
  ann.send('webrtc.offer', { call_uuid: crypto.randomUUID(), sdp: { type: 'offer', sdp: planted.sdp } }, 'unknown')
  await ann.error('unknown')
  ann.send(
    'call.invite',
    { callee_user_id: 'bob', callee_role: 'agent', metadata: { note: planted.metadata } },
    'invite',
  )
  const { call_uuid } = (await bob.next('call.ringing')).data
  ann.send('webrtc.offer', { call_uuid, sdp: { type: 'offer', sdp: planted.sdp } })
  ann.send('webrtc.ice_candidate', { call_uuid, candidate: { candidate: planted.candidate, sdpMid: '0' } })
  bob.send('call.accept', { call_uuid })
  await bob.next('webrtc.ice_candidate')
  bob.send('webrtc.answer', { call_uuid, sdp: { type: 'offer', sdp: planted.sdp } }, 'wrong-type')
  await bob.error('wrong-type')
  await ann.die()
  bob.send('call.end', { call_uuid })
  await bob.settle()

  service.signal('SIGTERM')
  const { code, out, err } = await service.ended
  expect(code).toBe(0)
  // It did log: the header that nobody trusts, at least.
  expect(err).toContain('RINGWIRE_TRUST_PROXY')
  for (const secret of secrets) {
    for (const part of secret.split(/\r\n| /).filter((text) => text.length >= 12)) expect(out + err).not.toContain(part)
  }
})

test('[LOG2] what an operator reads of a call, of sockets and of failed authentications, at info and at debug', async () => {
  const secret = planted.productSecret
  const service = await box.serve({
    env: { RINGWIRE_LOG_LEVEL: 'debug', RINGWIRE_BOOTSTRAP_KEYS: `k:${secret}:shop`, RINGWIRE_INVITE_RATE: '1/60' },
  })
  const { url } = service
  const ask = (key: string, user: string, role: string, peer: string, product?: string) =>
    fetch(`${url}/v1/call/session-token?x=1`, {
      method: 'POST',
      headers: { 'X-SVC-Product-Key-ID': 'k', 'X-SVC-Product-Secret': key },
      body: JSON.stringify({
        context_type: 'c',
        context_id: '1',
        user_id: user,
        role,
        display_name: user,
        allowed_peer_role: peer,
        product,
      }),
    })
  const connect = async (user: string, role: string, peer: string) => {
    const { token } = (await (await ask(secret, user, role, peer)).json()) as { token: string }
    const client = new Client({ url, token })
    await client.next('auth.ok')
    return client
  }
  expect((await ask(planted.wrongSecret, 'ann', 'customer', 'agent')).status).toBe(401)
  expect((await ask(secret, 'ann', 'customer', 'agent', 'other')).status).toBe(403)
  const stranger = new Client({ url, token: 'rubbish' })
  expect((await stranger.closed).code).toBe(4401)
  const ann = await connect('planted-ann', 'customer', 'agent')
  const ben = await connect('planted-ben', 'agent', 'customer')
  const invite = { callee_user_id: 'planted-ben', callee_role: 'agent' }
  ann.send('call.invite', invite)
  const { call_uuid } = (await ben.next('call.ringing')).data
  ben.send('call.accept', { call_uuid })
  await ann.next('call.accepted')
  ann.send('call.connected', { call_uuid })
  ann.send('call.end', { call_uuid })
  await ben.next('call.ended')
  ann.send('call.invite', invite, 'too-many')
  await ann.error('too-many')
  ann.send('webrtc.offer', { call_uuid }, 'wrong')
  await ann.error('wrong')
  ben.text('x'.repeat(65 * 1024))
  expect((await ben.closed).code).toBe(1009)
  service.signal('SIGTERM')
  expect((await service.ended).code).toBe(0)
  const lines = service
    .err()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const withMessage = (message: string) => lines.filter((line) => line.message === message)
  expect(withMessage('call ended')).toMatchObject([
    { level: 'info', callUuid: call_uuid, status: 'ended', endReason: 'hangup', connectMs: expect.any(Number) },
  ])
  expect(withMessage('socket closed')).toMatchObject([
    { closeCode: 1009, cause: 'message too big', nodeId: expect.any(String), seconds: expect.any(Number) },
    { closeCode: 1012, cause: 'restart', sessionId: expect.any(String), participant: expect.any(String) },
  ])
  expect(withMessage('socket refused')).toMatchObject([{ closeCode: 4401, cause: 'token invalid' }])
  expect(withMessage('authentication failed')).toMatchObject([
    { level: 'warn', path: '/v1/call/session-token', code: 'PRODUCT_AUTH_INVALID_SECRET', address: '127.0.0.1' },
    { level: 'warn', path: '/v1/call/session-token', code: 'PRODUCT_AUTH_PRODUCT_MISMATCH', address: '127.0.0.1' },
  ])
  expect(withMessage('over a limit')).toMatchObject([{ event: 'call.invite', limit: 'invites' }])
  const requests = withMessage('request').flatMap(({ event, code, callUuid }) =>
    event ? [[event, code, callUuid]] : [],
  )
  expect(requests).toEqual([
    ['call.invite', 'ok', undefined],
    ['call.accept', 'ok', call_uuid],
    ['call.connected', 'ok', call_uuid],
    ['call.end', 'ok', call_uuid],
    ['call.invite', 'RATE_LIMITED', undefined],
    ['webrtc.offer', 'INVALID_PAYLOAD', undefined],
  ])
  // A stop is not a warning.
  const stop = lines.findIndex(({ message }) => message === 'stopping')
  expect(lines.slice(stop).filter(({ level }) => level !== 'info' && level !== 'debug')).toEqual([])
  expect(service.err()).not.toContain('planted')
})
