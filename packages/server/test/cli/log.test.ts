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
