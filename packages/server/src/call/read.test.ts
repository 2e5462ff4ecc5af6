import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { accepted, ended, ringing } from '../ports/call-store.fixture.ts'
import { type Call, placeOf, type RingingCall } from './call.ts'
import { anyLife } from './read.fixture.ts'
import { callMark, readCall } from './read.ts'

const sent = (call: unknown): unknown => JSON.parse(JSON.stringify(call))

/** Every field of a call, by its path, and what it holds. */
function shapeOf(value: unknown, path = ''): string[] {
  if (path !== 'metadata' && typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([name, inner]) => shapeOf(inner, path === '' ? name : `${path}.${name}`))
  }
  const kind = value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value
  return [`${path} ${kind}`]
}

/** What few calls have. */
const extra: Partial<Call> = {
  redirectedFrom: 'f',
  transferring: { to: 'n', by: 'callee' },
  transferredTo: 'n',
  transferred: { from: 'p', by: { userId: 'u', role: 'r', displayName: 'd' }, firstStartedAt: 3 },
}
const rings = ringing(undefined, undefined, {
  metadata: { order: 17 },
  silenced: ['s'],
  ...extra,
} as Partial<RingingCall>)
const answered = accepted(rings).call
if (answered.status !== 'accepted') throw new Error('unreachable')
const { call: over } = ended({
  ...answered,
  calleePlace: { ...answered.calleePlace, state: 'vacant', since: 5, closed: true, awaitedMs: 7 },
  connectedAt: 9,
})
const calls: readonly Call[] = [rings, answered, over]

test('the mark stands for this shape: whoever changes the one changes the other, or nodes of two versions misread each other', () => {
  const shape = [...new Set(calls.flatMap((call) => shapeOf(readCall(sent(call)))))].sort()
  expect({ mark: callMark, shape }).toEqual({
    mark: 'C4',
    shape: [
      'acceptedAt number',
      'callType string',
      'callUuid string',
      'callee.displayName null',
      'callee.displayName string',
      'callee.role string',
      'callee.userId string',
      'calleePlace.awaitedMs number',
      'calleePlace.closed boolean',
      'calleePlace.deviceId null',
      'calleePlace.node string',
      'calleePlace.sessionId string',
      'calleePlace.settled boolean',
      'calleePlace.since number',
      'calleePlace.state string',
      'caller.displayName string',
      'caller.role string',
      'caller.userId string',
      'callerPlace.deviceId null',
      'callerPlace.node string',
      'callerPlace.sessionId string',
      'callerPlace.settled boolean',
      'callerPlace.state string',
      'connectedAt null',
      'connectedAt number',
      'contextId string',
      'contextType string',
      'endReason string',
      'endedAt number',
      'metadata object',
      'product string',
      'redirectedFrom string',
      'ringExpiresAt number',
      'ringTimeoutMs number',
      'silenced list',
      'startedAt number',
      'status string',
      'transferred.by.displayName string',
      'transferred.by.role string',
      'transferred.by.userId string',
      'transferred.firstStartedAt number',
      'transferred.from string',
      'transferredTo string',
      'transferring.by string',
      'transferring.to string',
      'version number',
    ],
  })
})

test('every call that can be written is read as it was sent', () => {
  fc.assert(
    fc.property(anyLife('clinic'), (life) => {
      for (const { call } of life) expect(readCall(sent(call))).toStrictEqual(sent(call) as Call)
    }),
    { numRuns: 30 },
  )
})

const isAlways = (name: string) => !(name in extra)

test('what a newer version added is left out, at the top; what an older one did not have is no call', () => {
  for (const call of calls) {
    expect(readCall(sent({ ...call, quality: 'good' }))).toStrictEqual(sent(call) as Call)
    for (const name of Object.keys(call).filter(isAlways)) {
      const { [name as keyof Call]: _, ...less } = call
      expect([name, readCall(sent(less))]).toEqual([name, undefined])
    }
  }
})

test('[PEER1] a place of an earlier version says nothing of when its client is awaited; one that says it wrongly is no call', () => {
  const away = (more: object) =>
    readCall(sent({ ...answered, calleePlace: { ...placeOf(answered, 'callee'), state: 'vacant', since: 5, ...more } }))
  expect(away({})).toMatchObject({ calleePlace: { since: 5 } })
  expect(away({ awaitedMs: 1_100 })).toMatchObject({ calleePlace: { since: 5, awaitedMs: 1_100 } })
  for (const awaitedMs of ['1100', null, 0.5, true]) expect(away({ awaitedMs })).toBeUndefined()
})

test('a field of another kind is no call', () => {
  for (const call of calls) {
    for (const name of Object.keys(call)) {
      for (const wrong of [...(isAlways(name) ? [undefined] : []), Number.NaN, { a: 1, state: 'held' }, [], [1]]) {
        if (name === 'metadata' && typeof wrong === 'object' && !Array.isArray(wrong)) continue
        if (name === 'silenced' && Array.isArray(wrong) && wrong.length === 0) continue
        if (name === 'connectedAt' && Number.isNaN(wrong)) continue
        expect([name, wrong, readCall({ ...(sent(call) as object), [name]: wrong })]).toEqual([name, wrong, undefined])
      }
    }
  }
  for (const value of [undefined, null, 1, 'call', [], {}]) expect(readCall(value)).toBeUndefined()
})
