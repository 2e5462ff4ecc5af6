import { afterEach, beforeEach, expect, test } from 'bun:test'
import { participantOf } from '../call/call.ts'
import { created, ringing } from '../ports/call-store.fixture.ts'
import { openHarness, type SqliteHarness } from '../stores/sqlite/open.fixture.ts'
import { createTimelines } from '../timeline/timelines.ts'
import { createParticipantExport } from './export.ts'

let harness: SqliteHarness
beforeEach(async () => {
  harness = await openHarness()
})
afterEach(() => harness.close())

test('[SRV2] a refused invite is exported once, also where its uuid became a call', async () => {
  const { calls, timeline } = harness.stores()
  const call = ringing()
  const ann = participantOf(call, 'caller')
  const never = { product: call.product, callUuid: crypto.randomUUID() }
  const refused = { what: 'refused', side: 'caller', asker: ann, detail: {} } as const
  await timeline.add([
    { ...refused, ...never, id: 'a', at: call.startedAt - 2 },
    { ...refused, product: call.product, callUuid: call.callUuid, id: 'b', at: call.startedAt - 1 },
  ])
  await harness.store().transition(call, () => ({ steps: [created(call)] }))
  const rung = { what: 'alerting', side: 'caller', detail: {} } as const
  await timeline.add([{ ...rung, product: call.product, callUuid: call.callUuid, id: 'c', at: call.startedAt }])
  const exportOf = createParticipantExport({
    participants: { show: async () => ({ online: false, sessions: [], devices: [], live_calls: [] }) },
    revoked: { tokensFrom: () => undefined },
    calls,
    groups: { of: () => ['support'] },
    audit: { about: () => [] },
    timeline,
    timelines: createTimelines({ calls, timeline }),
    now: () => call.startedAt,
  })
  const exported = JSON.parse((await Array.fromAsync(exportOf(ann))).join(''))
  expect(exported.refused.map(({ call_uuid }: { call_uuid: string }) => call_uuid)).toEqual([
    call.callUuid,
    never.callUuid,
  ])
  expect(exported.groups).toEqual(['support'])
  expect(exported.calls).toMatchObject([{ call: { call_uuid: call.callUuid }, entries: [{ what: 'alerting' }] }])
})
