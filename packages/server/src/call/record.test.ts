import { expect, test } from 'bun:test'
import { CallRecord } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import type { AnsweredCall, Call, OverCall, Place, RingingCall } from './call.ts'
import { callRecord } from './record.ts'

const at = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const place: Place = { state: 'held', sessionId: 's', deviceId: null, node: 'n', settled: true }
const base = {
  product: 'shop',
  callUuid: '0b6f9f0c-3c1e-4a53-9d43-6f0f0a7a5a11',
  version: 1,
  caller: { userId: 'ann', role: 'customer', displayName: 'Ann' },
  callee: { userId: 'bob', role: 'agent', displayName: null },
  contextType: 'order',
  contextId: '17',
  callType: 'video',
  metadata: { secret: 'not in the history' },
  startedAt: at,
  ringTimeoutMs: 45_000,
  ringExpiresAt: at + 45_000,
}
const ringing: RingingCall = { ...base, status: 'ringing', callerPlace: place, silenced: [] }
const accepted: AnsweredCall = {
  ...base,
  status: 'accepted',
  callee: { ...base.callee, displayName: 'Bob' },
  callerPlace: place,
  calleePlace: place,
  acceptedAt: at + 1000,
  connectedAt: null,
}
const ended: OverCall = {
  ...accepted,
  status: 'ended',
  connectedAt: at + 1500,
  endedAt: at + 61_000,
  endReason: 'hangup',
}
const missed: OverCall = {
  ...base,
  status: 'missed',
  callerPlace: place,
  calleePlace: null,
  acceptedAt: null,
  connectedAt: null,
  endedAt: at + 45_000,
  endReason: 'no_answer',
}

const ann = { product: 'shop', role: 'customer', userId: 'ann' }
const bob = { product: 'shop', role: 'agent', userId: 'bob' }

test('[HIST2] an ended call, as each side reads it', () => {
  expect(callRecord(ended, ann)).toEqual({
    call_uuid: base.callUuid,
    status: 'ended',
    context_type: 'order',
    context_id: '17',
    started_at: '2026-01-02T03:04:05.006Z',
    ended_at: '2026-01-02T03:05:06.006Z',
    end_reason: 'hangup',
    direction: 'outgoing',
    peer: { user_id: 'bob', role: 'agent', display_name: 'Bob' },
    call_type: 'video',
    accepted_at: '2026-01-02T03:04:06.006Z',
    connected_at: '2026-01-02T03:04:06.506Z',
    duration_ms: 60_000,
  })
  expect(callRecord(ended, bob)).toMatchObject({
    direction: 'incoming',
    peer: { user_id: 'ann', role: 'customer', display_name: 'Ann' },
  })
})

test('[HIST2] ended_at is null, and present, while a call is not over', () => {
  for (const call of [ringing, accepted]) {
    const record = callRecord(call, ann)
    expect(record).toMatchObject({ status: call.status, ended_at: null, end_reason: null, duration_ms: null })
    expect(Object.keys(record)).toContain('ended_at')
  }
  expect(callRecord(ringing, bob).accepted_at).toBeNull()
  expect(callRecord(accepted, bob).accepted_at).toBe('2026-01-02T03:04:06.006Z')
})

test('[HIST2] a call that nobody answered has no duration', () => {
  expect(callRecord(missed, bob)).toMatchObject({
    status: 'missed',
    end_reason: 'no_answer',
    accepted_at: null,
    connected_at: null,
    duration_ms: null,
  })
})

test('[HIST2] every record fits the schema, and metadata stays inside', () => {
  const valid = createValidator(CallRecord)
  const calls: Call[] = [ringing, accepted, ended, missed]
  for (const call of calls) {
    for (const viewer of [ann, bob]) {
      const record = callRecord(call, viewer)
      expect(valid(record).ok).toBe(true)
      expect(JSON.stringify(record)).not.toContain('secret')
    }
  }
})
