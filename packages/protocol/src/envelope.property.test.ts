import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ClientEventName, clientEvents } from './client-events.ts'
import { rightData } from './envelope.fixture.ts'
import { createMessageParser } from './envelope.ts'
import { relaySender } from './relay-text.ts'

const parse = createMessageParser()
const events = Object.keys(clientEvents) as ClientEventName[]
const runs = { numRuns: 2000 }

/** Planted wherever a client can put text: as a value, as the name of a member, as the whole message. */
const secret = 'sEcReT-7f3a'
const withSecret = fc.oneof(
  fc.constant(secret),
  fc.string({ maxLength: 5 }).map((text) => text + secret),
  fc.constantFrom(5, null, true),
  fc.jsonValue({ maxDepth: 2 }),
)
const names = fc.constantFrom(
  ...['call_uuid', 'sdp', 'candidate', 'type', 'reason', 'metadata', 'callee_user_id', 'callee_role', 'sdpMid'],
  ...['sdpMLineIndex', 'call_type', 'context_id', 'ring_timeout_ms', secret, `${secret}/~0`],
)
const { value, object } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    withSecret,
    tie('object'),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
  object: fc.dictionary(names, tie('value'), { maxKeys: 6 }),
}))
const anyEnvelope = fc.record(
  {
    event: fc.oneof(fc.constantFrom(...events), withSecret),
    request_id: fc.oneof(fc.constant('r1'), withSecret),
    n: fc.oneof(fc.constant(7), withSecret),
    data: fc.oneof(object, value),
  },
  { requiredKeys: [] },
)
/** Right data with one member replaced, or taken away. */
const almostRight = fc
  .tuple(fc.constantFrom(...events), fc.nat(), fc.option(value, { nil: undefined }))
  .map(([event, at, replacement]) => {
    const data = structuredClone(rightData[event]) as Record<string, unknown>
    const inner = Object.values(data).find((it) => typeof it === 'object') as Record<string, unknown> | undefined
    const target = inner !== undefined && at % 2 === 0 ? inner : data
    const keys = Object.keys(target)
    target[keys[at % keys.length] ?? ''] = replacement
    return { event, request_id: 'r1', data }
  })
const anyMessage = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'binary' }).map((text) => text + secret),
  fc.json(),
  anyEnvelope.map((it) => JSON.stringify(it)),
  almostRight.map((it) => JSON.stringify(it)),
  almostRight.map((it) => JSON.stringify(it).slice(0, -1)),
)

test('[ENV1] whatever comes in, the parser never throws', () => {
  fc.assert(
    fc.property(anyMessage, (text) => {
      expect(['request', 'error', 'ignored']).toContain(parse(text).kind)
    }),
    runs,
  )
})

test('[LOG1] no error holds anything of what was sent', () => {
  fc.assert(
    fc.property(anyMessage, (text) => {
      const result = parse(text)
      if (result.kind === 'error') expect(JSON.stringify(result.error)).not.toContain(secret)
    }),
    runs,
  )
})

test('[EXT4] whatever comes of a message that has a right n, the n is known', () => {
  fc.assert(
    fc.property(fc.oneof(anyEnvelope, almostRight), fc.integer({ min: 1 }), (envelope, n) => {
      const result = parse(JSON.stringify({ ...envelope, n }))
      expect(result.kind === 'request' ? result.request.n : result.kind === 'error' && result.n).toBe(n)
    }),
    runs,
  )
})

test('[ENV5] a wrong payload names its field, and the message begins with it', () => {
  fc.assert(
    fc.property(almostRight, (envelope) => {
      const result = parse(JSON.stringify(envelope))
      if (result.kind !== 'error') return
      expect(result.error.field).toBeTruthy()
      expect(result.error.message).toStartWith(`${result.error.field} `)
    }),
    runs,
  )
})

const text = (maxLength: number) => fc.string({ unit: 'grapheme-composite', maxLength })
const id = fc.string({ unit: fc.constantFrom('a', '7', 'é', '通', '📞', ' '), maxLength: 40 }).map((it) => `x${it}`)
const uuid = fc.uuid()
const withReason = fc.record(
  { call_uuid: uuid, reason: fc.stringMatching(/^[a-z0-9_]{1,64}$/) },
  { requiredKeys: ['call_uuid'] },
)
const metadata = fc.dictionary(fc.string({ maxLength: 5 }), fc.constantFrom(1, null, 'x', [true]), { maxKeys: 3 })
const dataOf: Record<ClientEventName, fc.Arbitrary<object>> = {
  'call.invite': fc.record({
    callee_user_id: id,
    callee_role: id,
    context_type: fc.option(id),
    call_uuid: fc.option(uuid),
    ring_timeout_ms: fc.option(fc.integer({ min: 1 })),
    metadata: fc.option(metadata),
  }),
  'call.accept': fc.record({ call_uuid: uuid }),
  'call.connected': fc.record({ call_uuid: uuid }),
  'call.reject': withReason,
  'call.cancel': withReason,
  'call.end': withReason,
  'webrtc.offer': fc.record({ call_uuid: uuid, sdp: fc.record({ type: fc.constant('offer'), sdp: text(200) }) }),
  'webrtc.answer': fc.record({ call_uuid: uuid, sdp: fc.record({ type: fc.constant('answer'), sdp: text(200) }) }),
  'webrtc.ice_candidate': fc.record({
    call_uuid: uuid,
    candidate: fc.option(
      fc.record({ candidate: text(200), sdpMid: fc.option(id), sdpMLineIndex: fc.option(fc.nat({ max: 65_535 })) }),
    ),
  }),
  'call.alerting': fc.record({ call_uuid: uuid }),
  'call.transfer': fc.oneof(
    fc.record({ call_uuid: uuid, to_role: id, to_user_id: id, metadata: fc.option(metadata) }),
    fc.record({ call_uuid: uuid, to_call_uuid: uuid, metadata: fc.option(metadata) }),
  ),
  'call.stats': fc.record({
    call_uuid: uuid,
    stats: fc.record(
      {
        rtt_ms: fc.constantFrom(0, 12.5, 60_000, null),
        loss: fc.double({ min: 0, max: 1, noNaN: true }),
        candidate_pair: fc.constantFrom({ local: 'host', remote: 'relay' }, null),
        codec: fc.constantFrom('audio/opus', null),
      },
      { requiredKeys: [] },
    ),
  }),
  'call.media': fc.record(
    { call_uuid: uuid, audio: fc.boolean(), video: fc.boolean(), screen: fc.boolean(), held: fc.boolean() },
    { requiredKeys: ['call_uuid', 'audio', 'video', 'screen'] },
  ),
  'call.take': fc.record({ call_uuid: uuid }),
  'call.list': fc.constant({}),
  'presence.watch': fc.record({ participants: fc.array(fc.record({ role: id, user_id: id }), { maxLength: 5 }) }),
  'auth.refresh': fc.record({ token: text(200) }),
}
const number = fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), { nil: undefined })
const rightRequest = fc
  .constantFrom(...events)
  .chain((event) => fc.record({ event: fc.constant(event), requestId: text(20), n: number, data: dataOf[event] }))

test('[ENV1] a right request comes out as it went in, and goes in again', () => {
  fc.assert(
    fc.property(rightRequest, ({ event, requestId, n, data }) => {
      const sent = JSON.stringify({ event, request_id: requestId, n, data })
      const result = parse(sent, relaySender('ann', 'customer'))
      const isRelay = event.startsWith('webrtc.') || event === 'call.media'
      const origin = { from_user_id: 'ann', from_role: 'customer' }
      const { data: said } = JSON.parse(sent)
      const passedOn = {
        data: { ...said, ...origin },
        passedOn: JSON.stringify({ event, data: { ...said, ...origin } }),
      }
      const expected = { kind: 'request', request: { event, requestId, n, data: said, ...(isRelay && passedOn) } }
      expect(result as unknown).toEqual(expected)
      const again = JSON.stringify({ event, request_id: requestId, n, data: said })
      expect(parse(again, relaySender('ann', 'customer'))).toEqual(result)
    }),
    runs,
  )
})
