import { expect, test } from 'bun:test'
import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { UnknownEvent, WebhookEvent } from './webhook-events.ts'
import { type VerifyOptions, verify, verifyInvite, WebhookVerificationError } from './webhooks.ts'

const secretOf = () => `whsec_${randomBytes(24).toString('base64')}`
const [secret, other] = [secretOf(), secretOf()]
const at = 1_772_442_300
const payload = JSON.stringify({ type: 'call.ended', timestamp: '2026-03-02T09:05:00.000Z', data: { name: 'Zoë' } })

function sign(key: string, text = payload, id = 'msg_1', timestamp = String(at)): string {
  const hmac = createHmac('sha256', Buffer.from(key.slice(6), 'base64'))
  return `v1,${hmac.update(`${id}.${timestamp}.${text}`).digest('base64')}`
}

const right = (signature = sign(secret)) => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(at),
  'webhook-signature': signature,
})
const ask = (more: Partial<VerifyOptions> = {}) =>
  verify({ payload, headers: right(), secret, now: at * 1000, ...more })

test('[HOOK2] the example of the Standard Webhooks specification', () => {
  const headers = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  }
  const given = { payload: '{"test": 2432232314}', headers, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }
  // Its signature is right, and its body is no event of ours.
  expect(() => verify({ ...given, now: 1_614_265_330_000 })).toThrow('the body is no event')
  expect(() => verify({ ...given, payload: '{"test": 2432232315}', now: 1_614_265_330_000 })).toThrow('no signature')
})

test('[HOOK2] a webhook of ours, whatever its headers and body are held in', () => {
  const event = { id: 'msg_1', type: 'call.ended', timestamp: '2026-03-02T09:05:00.000Z', data: { name: 'Zoë' } }
  expect<object>(ask()).toEqual(event)
  expect<object>(ask({ headers: new Headers(right()) })).toEqual(event)
  expect<object>(ask({ headers: { ...right(), 'webhook-signature': [sign(secret)], accept: undefined } })).toEqual(
    event,
  )
  expect<object>(ask({ payload: new TextEncoder().encode(payload) })).toEqual(event)
  expect<object>(
    ask({ headers: Object.fromEntries(Object.entries(right()).map(([k, v]) => [k.toUpperCase(), v])) }),
  ).toEqual(event)
})

test('[HOOK5] the question about an invite is verified like a webhook, and nothing else is one', () => {
  const data = { call_uuid: 'one', caller: { user_id: 'ann' } }
  const question = JSON.stringify({ type: 'call.invite', timestamp: '2026-03-02T09:05:00.000Z', data })
  const given = { secret, now: at * 1000, headers: right(sign(secret, question)), payload: question }
  expect<object>(verifyInvite(given)).toEqual({ id: 'msg_1', ...JSON.parse(question) })
  expect(() => verifyInvite({ ...given, secret: other })).toThrow(WebhookVerificationError)
  expect(verifyInvite({ ...given, secret: [other, secret] }).type).toBe('call.invite')
  expect(() => verifyInvite({ ...given, payload, headers: right() })).toThrow('the body is call.ended, no question')
})

/** What a receiver does: each type has its data. */
function said(event: WebhookEvent): string {
  switch (event.type) {
    case 'call.ended':
      return `${event.data.call_uuid} had ${event.data.quality?.caller?.reports ?? 0} reports`
    case 'call.wake':
      return `${event.data.devices.length} devices until ${event.data.expires_at}`
    case 'participant.online':
    case 'participant.offline':
      return `${event.data.role}/${event.data.user_id}`
    case 'webhook.test':
      return event.data.webhook_id
    case 'call.ringing':
    case 'call.accepted':
    case 'call.connected':
    case 'call.rejected':
    case 'call.cancelled':
    case 'call.missed':
    case 'call.busy':
    case 'call.wake_cancelled':
      return event.data.caller.user_id
    default: {
      const unknown: UnknownEvent = event
      return `${unknown.type} ${JSON.stringify(unknown.data)}`
    }
  }
}

test('[HOOK2] the type of an event says what its data is; one of a newer service verifies, too', () => {
  const of = (type: string, data: object) => {
    const text = JSON.stringify({ type, timestamp: '2026-03-02T09:05:00.000Z', data })
    return said(ask({ payload: text, headers: right(sign(secret, text)) }))
  }
  expect(of('call.ended', { call_uuid: 'u', quality: null, held: null })).toBe('u had 0 reports')
  expect(of('call.wake', { devices: [], expires_at: 'then' })).toBe('0 devices until then')
  expect(of('call.missed', { caller: { user_id: 'ann' } })).toBe('ann')
  expect(of('participant.online', { role: 'agent', user_id: 'ben' })).toBe('agent/ben')
  expect(of('webhook.test', { webhook_id: 'we_1' })).toBe('we_1')
  expect(of('call.transferred', { to: 'eva' })).toBe('call.transferred {"to":"eva"}')
})

test('[HOOK1] while a secret is rotated, either one signs, and either one verifies', () => {
  for (const [signature, secrets] of [
    [sign(other), [secret, other]],
    [`${sign(other)} ${sign(secret)}`, secret],
    [`v1a,xyz ${sign(secret)}`, [other, secret]],
  ] as const)
    expect(ask({ headers: right(signature), secret: secrets }).type).toBe('call.ended')
})

test('[HOOK2] what was changed, is signed by somebody else, or is old, is refused', () => {
  const wrong: Partial<VerifyOptions>[] = [
    { secret: other },
    { payload: `${payload} ` },
    { headers: { ...right(), 'webhook-id': 'msg_2' } },
    { headers: right(sign(secret).replace('v1,', 'v2,')) },
    { headers: right(sign(secret).slice(0, -4)) },
    { headers: right('v1,') },
    { headers: right('') },
    { headers: { ...right(), 'webhook-id': undefined } },
    { headers: { ...right(sign(secret, payload, 'msg_1', 'soon')), 'webhook-timestamp': 'soon' } },
    { now: (at + 301) * 1000 },
    { now: (at - 301) * 1000 },
    { payload: '{', headers: right(sign(secret, '{')) },
    { payload: '{"type":"x"}', headers: right(sign(secret, '{"type":"x"}')) },
  ]
  for (const more of wrong) expect(() => ask(more)).toThrow(WebhookVerificationError)
  expect(ask({ now: (at + 300) * 1000 }).id).toBe('msg_1')
  for (const none of ['', 'whsec_', 'abc']) expect(() => ask({ secret: none })).toThrow(TypeError)
  expect(() => ask({ secret: [] })).toThrow(TypeError)
  // As an environment variable that is not set.
  for (const none of [undefined, [undefined]]) {
    expect(() => ask({ secret: none as unknown as string })).toThrow(/^secret is missing: give the whsec_/)
  }
  expect(() => ask({ payload: JSON.parse(payload) })).toThrow(/^payload must be the body as it came/)
})

test('[HOOK2] it agrees with the library of Standard Webhooks, which signs for it and verifies beside it', () => {
  const reference = new Webhook(secret)
  const now = Date.now()
  const timestamp = String(Math.floor(now / 1000))
  const signature = reference.sign('msg_1', new Date(now), payload)
  const headers = { ...right(signature), 'webhook-timestamp': timestamp }
  expect(ask({ headers, now })).toMatchObject(reference.verify(payload, headers) as object)
  for (const changed of [`${payload} `, payload.replace('Zo', 'zo')]) {
    expect(() => reference.verify(changed, headers)).toThrow()
    expect(() => ask({ headers, now, payload: changed })).toThrow(WebhookVerificationError)
  }
})
