import { expect, test } from 'bun:test'
import { type ErrorCode, errorBody, errors } from './errors.ts'
import { serverEvents } from './server-events.ts'
import { createValidator } from './validate.ts'

test('[ENV2] the error object of every code fits the schema of call.error', () => {
  const validate = createValidator(serverEvents['call.error'].data)
  const details = {
    field: 'sdp',
    status: 'ended',
    call_uuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55',
    retry_after_ms: 5,
    limit: 'ringing',
  } as const
  for (const code of Object.keys(errors) as ErrorCode[]) {
    expect(validate({ error: errorBody(code) }).ok).toBe(true)
    expect(validate({ error: errorBody(code, details) }).ok).toBe(true)
  }
  expect(validate({ error: { code: 'CALL_GLARE' } })).toEqual({
    ok: false,
    field: 'error.message',
    message: 'is required',
  })
})

test('every event of the interface that the service sends is there', () => {
  const seed = ['auth.ok', 'call.ringing', 'call.accepted', 'call.missed', 'call.error']
  const relayed = ['webrtc.offer', 'webrtc.answer', 'webrtc.ice_candidate']
  expect(Object.keys(serverEvents)).toEqual(expect.arrayContaining([...seed, ...relayed]))
})
