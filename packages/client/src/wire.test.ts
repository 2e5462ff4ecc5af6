import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { errorFromWire } from './error.ts'
import { readEnvelope, utf8Length } from './wire.ts'

test('[WS6] the length of a JSON text is never below its bytes of UTF-8, and exact for ASCII without DEL', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const json = JSON.stringify(value)
      const bytes = Buffer.byteLength(json)
      return /^[ -~]*$/.test(json) ? utf8Length(json) === bytes : utf8Length(json) >= bytes
    }),
  )
})

test('what is no envelope is none, and never an exception', () => {
  fc.assert(
    fc.property(fc.string(), (text) => readEnvelope(text) === undefined || JSON.parse(text).event !== undefined),
  )
  for (const text of ['', 'null', '[]', '7', '{', '{"event":7}']) expect(readEnvelope(text)).toBeUndefined()
  expect(readEnvelope('{"event":"x","data":[]}')).toMatchObject({ event: 'x', data: {} })
})

test('[ENV2] an error object of any shape becomes an error with a code', () => {
  expect(errorFromWire(undefined)).toMatchObject({ name: 'RingwireError', code: 'INTERNAL_ERROR', retryable: false })
  const full = {
    code: 'RATE_LIMITED',
    message: 'm',
    retryable: true,
    retry_after_ms: 5,
    limit: 'ringing',
    field: 'f',
    status: 's',
  }
  expect(errorFromWire({ ...full, call_uuid: 'u' })).toMatchObject({
    ...{
      code: 'RATE_LIMITED',
      message: 'm',
      retryable: true,
      retryAfterMs: 5,
      limit: 'ringing',
      field: 'f',
      status: 's',
    },
    callUuid: 'u',
  })
})
