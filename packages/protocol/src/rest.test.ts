import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { clientEvents } from './client-events.ts'
import { allowedActions, callStatuses, headers, TokenRequest, TokenRequestShape } from './rest.ts'
import { createValidator } from './validate.ts'

const body = {
  context_type: 'order',
  context_id: '4711',
  user_id: 'ada',
  role: 'customer',
  display_name: 'Ada',
  allowed_peer_role: 'agent',
}
const fields = [...Object.keys(body), 'product', 'device_id', 'app_version']

test('the names of the interface', () => {
  expect(headers).toEqual({ keyId: 'X-SVC-Product-Key-ID', secret: 'X-SVC-Product-Secret' })
  expect(callStatuses).toContain('accepted')
  expect(callStatuses).toContain('ended')
})

test('[TOK2] what a token permits is what a client can send, but for what is its own business', () => {
  expect([...allowedActions]).toEqual([
    'call.invite',
    'call.accept',
    'call.reject',
    'call.cancel',
    'call.end',
    'call.connected',
    'webrtc.offer',
    'webrtc.answer',
    'webrtc.ice_candidate',
  ])
  const own = [
    'call.take',
    'call.list',
    'call.alerting',
    'call.media',
    'call.stats',
    'call.transfer',
    'presence.watch',
    'auth.refresh',
  ]
  expect(Object.keys(clientEvents).sort()).toEqual([...allowedActions, ...own].sort())
})

describe('[TOK1] the shape of a token request', () => {
  const validate = createValidator(TokenRequestShape)

  test('a field that is missing, null or blank is not a matter of shape', () => {
    expect(validate({}).ok).toBe(true)
    for (const field of fields) {
      for (const value of [undefined, null, '', '  ']) expect(validate({ ...body, [field]: value }).ok).toBe(true)
    }
  })

  test('unknown fields are ignored', () => {
    expect(validate({ ...body, unknown: { any: 1 }, allowed_peer_roles: 5 }).ok).toBe(true)
  })

  test('a field of the wrong type or over 255 bytes is named', () => {
    for (const field of fields) {
      for (const value of [5, true, [], {}, 'é'.repeat(128), 'a'.repeat(256), 'a\0', '\ud800']) {
        const result = validate({ ...body, [field]: value })
        expect(result).toMatchObject({ ok: false, field })
        if (!result.ok) expect(result.message).toMatch(/^must /)
      }
      expect(validate({ ...body, [field]: `é${'a'.repeat(253)}` }).ok).toBe(true)
    }
  })

  test('[LOG1] no message holds anything of what was sent', () => {
    const secret = 'sEcReT-7f3a'
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 1 }),
      fc.string().map((text) => text + secret.repeat(30)),
      fc.constant({ [secret]: secret }),
    )
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...fields, secret), value), (sent) => {
        const result = validate(sent)
        if (!result.ok) expect(`${result.field} ${result.message}`).not.toContain(secret)
      }),
      { numRuns: 500 },
    )
  })
})

test('a token request as it should be sent needs every field that the interface requires', () => {
  const validate = createValidator(TokenRequest)
  expect(validate(body).ok).toBe(true)
  for (const field of Object.keys(body)) {
    const { [field as keyof typeof body]: _, ...rest } = body
    expect(validate(rest)).toEqual({ ok: false, field, message: 'is required' })
  }
})
