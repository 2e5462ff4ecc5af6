import { capabilities } from '@ringwire/protocol/capabilities'
import { overStatuses } from '@ringwire/protocol/end-reasons'
import { isStorable } from '@ringwire/protocol/text'
import fc from 'fast-check'
import type { Call, CallRef, Party, Place, Turns } from './call.ts'
import type { CallEvent, Step } from './effects.ts'

/** Every text that the protocol lets in: any Unicode but NUL and lone surrogates. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 20 }).filter(isStorable),
  fc.constantFrom('', "'; DROP TABLE calls; --", '"', '\\', '%_', '\u{1F468}\u200D\u{1F9B3}'),
)
const nullable = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
const instant = fc.oneof(
  fc.integer({ min: 0, max: 4_000_000_000_000 }),
  fc.constantFrom(0, 1, 2 ** 31, Number.MAX_SAFE_INTEGER),
)
const duration = fc.integer({ min: 1, max: 43_200_000 })

const placeBase = { sessionId: text, deviceId: nullable(text), node: text, settled: fc.boolean() }
const can = fc.subarray([...capabilities], { minLength: 1 })
const place: fc.Arbitrary<Place> = fc.oneof(
  fc.record({ ...placeBase, state: fc.constant('held' as const) }),
  fc.record({ ...placeBase, state: fc.constant('held' as const), can }),
  fc.record(
    {
      ...{ ...placeBase, state: fc.constant('vacant' as const), since: instant },
      ...{ closed: fc.constant(true as const), awaitedMs: duration, can },
    },
    { requiredKeys: ['sessionId', 'deviceId', 'node', 'settled', 'state', 'since'] },
  ),
)
const turns: fc.Arbitrary<Turns> = fc.record({
  member: nullable(text),
  until: instant,
  memberRingMs: duration,
  next: fc.nat(),
  count: fc.nat(),
  hasRung: fc.boolean(),
  rang: fc.array(text, { maxLength: 3 }),
})
/** A blank one stands for an erased participant [SRV2]. */
const userId = text.map((text) => text || 'somebody')
const party: fc.Arbitrary<Party> = fc.record({ userId, role: text, displayName: nullable(text) })

/** As it comes out of a client's JSON. */
const metadata = nullable(
  fc
    .dictionary(fc.string({ maxLength: 10 }), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 })
    .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>),
)

/** Any version of the call that `ref` names. */
function anyCall(ref: CallRef, version: number): fc.Arbitrary<Call> {
  const base = {
    product: fc.constant(ref.product),
    callUuid: fc.constant(ref.callUuid),
    version: fc.constant(version),
    caller: party,
    callee: party,
    contextType: text,
    contextId: text,
    callType: text,
    metadata,
    startedAt: instant,
    ringTimeoutMs: duration,
    ringExpiresAt: instant,
    callerPlace: place,
  }
  const calls: fc.Arbitrary<Call> = fc.oneof(
    fc.record({
      ...base,
      status: fc.constant('ringing' as const),
      silenced: fc.array(text, { maxLength: 3 }),
    }),
    fc.record({
      ...base,
      status: fc.constantFrom('accepted' as const, 'connected' as const),
      calleePlace: place,
      acceptedAt: instant,
      connectedAt: nullable(instant),
    }),
    fc.record({
      ...base,
      status: fc.constantFrom(...overStatuses),
      calleePlace: nullable(place),
      acceptedAt: nullable(instant),
      connectedAt: nullable(instant),
      endedAt: instant,
      endReason: text,
    }),
  )
  const extra = fc.record(
    {
      redirectedFrom: text,
      transferring: fc.record({ to: text, by: fc.constantFrom('caller' as const, 'callee' as const) }),
      transferredTo: text,
      transferred: fc.record(
        { from: text, by: party, firstStartedAt: instant, secondStartedAt: instant },
        { requiredKeys: ['from', 'by', 'firstStartedAt'] },
      ),
      group: fc.record(
        {
          name: text,
          members: fc.array(text, { maxLength: 3 }),
          declined: fc.array(text, { maxLength: 2 }),
          left: fc.array(text, { maxLength: 2 }),
          turns,
        },
        { requiredKeys: ['name', 'members', 'declined'] },
      ),
    },
    { requiredKeys: [] },
  )
  const unusual = fc.tuple(calls, extra).map(([call, more]): Call => ({ ...call, ...more }))
  return fc.oneof(calls, unusual)
}

const over = { call_uuid: text, status: fc.constant('ended' as const), reason: text, by: fc.constant(null) }

/** What happened, with notices of the two shapes of address. */
const anyEvent: fc.Arbitrary<CallEvent> = fc.record({
  type: fc.constantFrom('invited' as const, 'accepted' as const, 'ended' as const, 'clock_shifted' as const),
  at: instant,
  by: nullable(fc.record({ userId: text, role: text, sessionId: text })),
  notices: fc.array(
    fc.record({
      to: fc.oneof(
        fc.record({ place: fc.constantFrom('caller' as const, 'callee' as const) }),
        fc.record(
          { place: fc.constant('rung' as const), except: fc.array(text, { maxLength: 2 }), member: text },
          { requiredKeys: ['place', 'except'] },
        ),
      ),
      event: fc.constant('call.ended' as const),
      data: fc.record({ ...over, ended_at: nullable(text) }),
    }),
    { maxLength: 2 },
  ),
})

/** A call's life of some versions, each as different from the one before as can be. */
export function anyLife(product: string): fc.Arbitrary<Step[]> {
  const ref = { product, callUuid: '' }
  const step = (version: number) => fc.record({ call: anyCall(ref, version), event: anyEvent })
  return fc.integer({ min: 1, max: 4 }).chain((count) => {
    const steps = Array.from({ length: count }, (_, index) => step(index + 1))
    return fc.tuple(...steps)
  })
}
