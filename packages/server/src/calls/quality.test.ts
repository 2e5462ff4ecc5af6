import { afterEach, beforeEach, expect, test } from 'bun:test'
import { participantOf } from '../call/call.ts'
import { accepted, created, ringing } from '../ports/call-store.fixture.ts'
import { openHarness, type SqliteHarness, unhurried } from '../stores/sqlite/open.fixture.ts'
import { createRecorder } from '../timeline/recorder.ts'
import { createQuality } from './quality.ts'

let harness: SqliteHarness
beforeEach(async () => {
  harness = await openHarness(unhurried)
})
afterEach(() => harness.close())

test('[STAT1] what was reported is stored before it is read; a call of which nobody reported waits for no write', async () => {
  const { timeline } = harness.stores()
  const fail = (error: unknown) => {
    throw error
  }
  const recorder = createRecorder({ store: timeline, now: Date.now, retentionMs: null, onDropped: fail, onError: fail })
  const rings = ringing()
  const answer = accepted(rings)
  const { call } = answer
  await harness.store().transition(call, () => ({ steps: [created(rings)] }))
  await harness.store().transition(call, () => ({ steps: [answer] }))
  const quality = createQuality({
    recorder,
    holds: { hasWritten: () => false },
    timeline,
    load: async () => call,
    now: Date.now,
  })
  const place = call.status === 'ringing' ? null : call.callerPlace
  const session = { participant: participantOf(call, 'caller'), sessionId: place?.sessionId ?? '', deviceId: null }
  recorder.record(call, { what: 'rung', side: 'callee', detail: {} })
  expect((await quality.of(call)).quality).toBeNull()
  expect(await timeline.of(call)).toEqual([])
  expect(await quality.report(session, { call_uuid: call.callUuid, stats: { rtt_ms: 40 } })).toBe('accepted')
  expect((await quality.of(call)).quality).toEqual({
    caller: { reports: 1, rtt_ms: { min: 40, avg: 40, max: 40 } },
    callee: null,
  })
  expect((await timeline.of(call)).map(({ what }) => what).sort()).toEqual(['quality', 'rung'])
})
