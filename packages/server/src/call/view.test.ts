import { expect, test } from 'bun:test'
import { CallView } from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import type { AnsweredCall, Call, OverCall, Place, RingingCall } from './call.ts'
import { callView } from './view.ts'

const at = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const place: Place = { state: 'held', sessionId: 'hidden-session', deviceId: 'hidden-device', node: 'n', settled: true }
const base = {
  product: 'shop',
  callUuid: '0b6f9f0c-3c1e-4a53-9d43-6f0f0a7a5a11',
  caller: { userId: 'ann', role: 'customer', displayName: 'Ann' },
  callee: { userId: 'bob', role: 'agent', displayName: null },
  contextType: 'order',
  contextId: '17',
  callType: 'video',
  metadata: { table: 4 },
  startedAt: at,
  ringTimeoutMs: 45_000,
  ringExpiresAt: at + 45_000,
}
const ringing: RingingCall = {
  ...base,
  version: 1,
  status: 'ringing',
  callerPlace: place,
  silenced: ['hidden-session'],
}
const accepted: AnsweredCall = {
  ...base,
  version: 2,
  status: 'accepted',
  callee: { ...base.callee, displayName: 'Bob' },
  callerPlace: place,
  calleePlace: place,
  acceptedAt: at + 1000,
  connectedAt: null,
}
const connected: AnsweredCall = { ...accepted, version: 3, status: 'connected', connectedAt: at + 1500 }
const ended: OverCall = { ...connected, version: 4, status: 'ended', endedAt: at + 61_000, endReason: 'hangup' }
const missed: OverCall = {
  ...base,
  version: 2,
  status: 'missed',
  callerPlace: place,
  calleePlace: null,
  acceptedAt: null,
  connectedAt: null,
  endedAt: at + 45_000,
  endReason: 'no_answer',
}
const bob = { userId: 'bob', role: 'agent', sessionId: 'hidden-session' }

test('[SRV2] a call that is over, whole', () => {
  expect(callView(ended, bob)).toEqual({
    call_uuid: base.callUuid,
    version: 4,
    status: 'ended',
    end_reason: 'hangup',
    caller: { user_id: 'ann', role: 'customer', display_name: 'Ann' },
    callee: { user_id: 'bob', role: 'agent', display_name: 'Bob' },
    call_type: 'video',
    context_type: 'order',
    context_id: '17',
    metadata: { table: 4 },
    started_at: '2026-01-02T03:04:05.006Z',
    accepted_at: '2026-01-02T03:04:06.006Z',
    connected_at: '2026-01-02T03:04:06.506Z',
    ended_at: '2026-01-02T03:05:06.006Z',
    by: { user_id: 'bob', role: 'agent' },
  })
})

test('[SRV2] what has not happened is null, and present', () => {
  const members = Object.keys(callView(ended, bob))
  for (const call of [ringing, accepted, connected, missed]) expect(Object.keys(callView(call, null))).toEqual(members)
  expect(callView(ringing, null)).toMatchObject({ end_reason: null, accepted_at: null, connected_at: null, by: null })
  expect(callView(accepted, bob)).toMatchObject({ connected_at: null, ended_at: null, end_reason: null })
  expect(callView(missed, null)).toMatchObject({ status: 'missed', end_reason: 'no_answer', accepted_at: null })
})

test('[SRV2] every view fits the schema; sessions, devices and nodes stay inside', () => {
  const valid = createValidator(CallView)
  const calls: Call[] = [ringing, accepted, connected, ended, missed, { ...ended, metadata: null }]
  for (const call of calls) {
    const view = callView(call, bob)
    expect(valid(view)).toEqual({ ok: true, value: view })
    expect(JSON.stringify(view)).not.toContain('hidden')
  }
})
