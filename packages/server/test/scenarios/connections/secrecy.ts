import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { exchange, RawSocket } from '@ringwire/testkit/raw-socket'
import { upgradeHead } from '@ringwire/testkit/raw-websocket'
import type { Service } from '@ringwire/testkit/service'
import { signingKeyEnv, signToken } from '../../support/session-tokens.ts'
import { type StartService, withService } from './start.ts'

/** Everything that must never be seen where it does not belong, recognisable wherever it turns up. */
/** Values that an error names to its sender: a product, a role, a path. The log has none of them. */
const named = 'LEAKnamed'
const planted = {
  secret: 'LEAKsecret0123456789012345678901234567890',
  wrongSecret: 'LEAKwrongsecret-01234567890123456789',
  turnSecret: 'LEAKturnsecret-0123456789',
  sdp: 'LEAKsdp',
  candidate: 'LEAKcandidate',
  metadata: 'LEAKmetadata',
  query: 'LEAKquery',
  text: 'LEAKtext',
} as const

/** What is never logged and never said back [LOG1]. */
export function registerSecrecyScenarios(name: string, start: StartService): void {
  describe(`${name}: secrecy`, () => {
    test('[LOG1] a noisy run at debug level: nothing secret in the log, on stdout or in any error', () =>
      withService(
        start,
        {
          ...signingKeyEnv,
          RINGWIRE_LOG_LEVEL: 'debug',
          RINGWIRE_BOOTSTRAP_KEYS: `noisy:${planted.secret}:shop`,
          RINGWIRE_TURN_URLS: 'turn:turn.example.com:3478',
          RINGWIRE_TURN_SECRET: planted.turnSecret,
          RINGWIRE_RING_TIMEOUT_MS: '3000',
          RINGWIRE_PEER_LOST_MS: '400',
        },
        noisyRun,
      ))
  })
}

async function noisyRun(service: Service): Promise<void> {
  const errors: string[] = []
  const seen = await makeRestNoise(service, errors)
  await makeUpgradeNoise(service, seen.token, errors)
  await makeCallNoise(service, errors)
  expect(await service.terminate()).toBe(0)

  const log = service.log + service.out
  expect(log).toContain('listening')
  for (const line of service.log.trim().split('\n')) expect(() => JSON.parse(line), line.slice(0, 200)).not.toThrow()
  expect(errors.length).toBeGreaterThan(60)
  expect(log.includes(named), `${named} in the log`).toBe(false)
  const secrets = [...Object.values(planted), ...seen.tokenParts, ...seen.turn]
  for (const secret of secrets) {
    expect(log.includes(secret), `${secret.slice(0, 12)}… in the log`).toBe(false)
    for (const error of errors) expect(error.includes(secret), `${secret.slice(0, 12)}… in ${error}`).toBe(false)
  }
}

/** Tokens and credentials that were issued are secret too. */
async function makeRestNoise(service: Service, errors: string[]) {
  const post = async (headers: Record<string, string>, body: string, query = '') => {
    const response = await fetch(`${service.url}/v1/call/session-token${query}`, { method: 'POST', headers, body })
    const text = await response.text()
    if (response.status !== 200) errors.push(text)
    return text
  }
  const key = { 'X-SVC-Product-Key-ID': 'noisy', 'X-SVC-Product-Secret': planted.secret }
  const wish = {
    context_type: 'order',
    context_id: '1',
    role: 'agent',
    user_id: 'somebody',
    display_name: 'Somebody',
    allowed_peer_role: 'customer',
  }
  const issued = JSON.parse(await post(key, JSON.stringify(wish), `?debug=${planted.query}`))
  const [turn] = issued.ice_servers as { username: string; credential: string }[]
  const [, payload = '', signature = ''] = (issued.token as string).split('.')

  await post({ ...key, 'X-SVC-Product-Secret': planted.wrongSecret }, JSON.stringify(wish))
  await post({ 'X-SVC-Product-Key-ID': planted.text, 'X-SVC-Product-Secret': planted.secret }, '')
  await post({ 'X-SVC-Product-Secret': planted.secret }, '')
  await post(key, planted.text)
  await post(key, `{"user_id":${JSON.stringify(planted.text)}`)
  await post(key, JSON.stringify({ ...wish, product: named }))
  await post(key, JSON.stringify({ ...wish, user_id: [planted.text] }))
  await post(key, JSON.stringify({ ...wish, role: `${planted.text.repeat(40)}` }))
  await post(key, `"${planted.text.repeat(4000)}"`)
  for (const token of [planted.text, `${issued.token}x`, issued.token]) {
    const headers = { Authorization: `Bearer ${token}` }
    for (const path of ['/v1/calls/history', '/v1/ws', `/${named}`, '/healthz', '/readyz']) {
      const response = await fetch(`${service.url}${path}?token=${planted.query}&limit=${planted.query}`, { headers })
      const text = await response.text()
      if (response.status >= 400) errors.push(text)
    }
  }
  return { token: issued.token as string, tokenParts: [payload, signature], turn: [turn!.username, turn!.credential] }
}

async function makeUpgradeNoise(service: Service, token: string, errors: string[]): Promise<void> {
  const lines = [`Sec-WebSocket-Protocol: jwt, ${token}`]
  const upgrades: [string[], string?, string?][] = [
    [[`Sec-WebSocket-Protocol: jwt, ${planted.text}`]],
    [[`Authorization: Bearer ${planted.text}`]],
    [[`Authorization: Bearer ${signToken({ sub: planted.text })}`]],
    [[`Authorization: ${planted.text}`]],
    [lines, `/v1/ws?token=${token}&x=${planted.query}`],
    [lines, `/v1/ws?x=${planted.query}`, '[::'],
    [[], `/v1/ws?authorization=${planted.query}`],
    [lines, `/v1/${named}?x=${planted.query}`],
  ]
  for (const [head, target, host] of upgrades) {
    const socket = new RawSocket(service.url)
    const answer = await exchange(socket, upgradeHead(head, target, host))
    if (answer.status === 101) await socket.until((it) => it.texts.length > 0, 'a message')
    errors.push(answer.body, ...socket.texts.filter((text) => text.includes('call.error')))
    socket.write(encodeFrame(opcodes.text, planted.text, { rsv: 3 }))
    socket.destroy()
  }
}

async function makeCallNoise(service: Service, errors: string[]): Promise<void> {
  const connect = (userId: string, role: string, device?: string) => noisyClient(service, userId, role, device)
  const callerId = someone('caller')
  const calleeId = someone('callee')
  const caller = await connect(callerId, 'customer')
  const callee = await connect(calleeId, 'agent')
  const invite = { callee_user_id: calleeId, callee_role: 'agent', metadata: { note: planted.metadata } }
  const wrong = ['{', `{"event":"${planted.text}"}`, planted.text, `["${planted.sdp}"]`, '{"event":1}']
  for (const text of wrong) for (const client of [caller, callee]) client.text(text)

  for (let round = 0; round < 3; round++) {
    caller.send('call.invite', invite, `invite-${round}`)
    const { data } = await caller.next('call.invited')
    const callUuid: string = data.call_uuid
    await callee.next('call.ringing')
    // Missed, ended, lost: every way out of a call has its own lines.
    if (round > 0) {
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
    }
    const sdp = (type: string) => ({ call_uuid: callUuid, sdp: { type, sdp: `v=0\r\n${planted.sdp}` } })
    const ice = { call_uuid: callUuid, candidate: { candidate: planted.candidate, sdpMid: planted.candidate } }
    for (const client of [caller, callee]) {
      client.send('webrtc.offer', sdp('answer'))
      client.send('webrtc.offer', { ...sdp('offer'), call_uuid: planted.text })
      client.send('webrtc.ice_candidate', { ...ice, candidate: planted.candidate })
      client.send('webrtc.ice_candidate', { ...ice, candidate: { candidate: planted.candidate.repeat(500) } })
      client.send('call.reject', { call_uuid: planted.text, reason: planted.text })
      client.send('call.invite', { ...invite, metadata: { note: planted.metadata.repeat(200) } })
      client.send('call.invite', { ...invite, callee_role: named })
      client.send('call.invite', { ...invite, call_type: planted.text })
    }
    if (round === 0) await caller.next('call.missed')
    else {
      caller.send('webrtc.offer', sdp('offer'))
      await callee.next('webrtc.offer')
      callee.send('webrtc.ice_candidate', ice)
      await caller.next('webrtc.ice_candidate')
    }
    if (round === 1) {
      caller.send('call.end', { call_uuid: callUuid })
      await callee.next('call.ended')
    }
    if (round === 2) {
      caller.raw(encodeFrame(opcodes.text, `{"event":"${planted.text}`, { masked: false }))
      expect((await callee.next('call.ended')).data.reason).toBe('peer_lost')
    }
  }
  await callee.settle()
  for (const client of [caller, callee]) {
    errors.push(...client.all.filter(({ event }) => event === 'call.error').map((message) => JSON.stringify(message)))
  }
}

async function noisyClient(service: Service, userId: string, role: string, device?: string): Promise<Client> {
  const response = await fetch(`${service.url}/v1/call/session-token`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': 'noisy', 'X-SVC-Product-Secret': planted.secret },
    body: JSON.stringify({
      context_type: 'order',
      context_id: '1',
      role,
      user_id: userId,
      display_name: userId,
      allowed_peer_role: role === 'agent' ? 'customer' : 'agent',
      device_id: device,
    }),
  })
  const { token } = (await response.json()) as { token: string }
  const client = service.open(token)
  await client.next('auth.ok')
  return client
}
