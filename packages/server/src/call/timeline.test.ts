import { expect, test } from 'bun:test'
import type { Call, OverCall, RingingCall } from './call.ts'
import type { CallEvent, Step } from './effects.ts'
import { mostEntries, type TimelineRow } from './observed.ts'
import { timelineOf } from './timeline.ts'

const place = { state: 'held', sessionId: 's1', deviceId: 'phone', node: 'n', settled: true } as const
const ringing: RingingCall = {
  ...{ product: 'shop', callUuid: crypto.randomUUID(), version: 1, status: 'ringing' },
  caller: { userId: 'ann', role: 'customer', displayName: 'Ann' },
  callee: { userId: 'ben', role: 'agent', displayName: null },
  ...{ contextType: 'order', contextId: '1', callType: 'audio', metadata: null },
  ...{ startedAt: 0, ringTimeoutMs: 45_000, ringExpiresAt: 45_000, callerPlace: place, silenced: [] },
}
const missed: OverCall = {
  ...ringing,
  ...{
    status: 'missed',
    calleePlace: null,
    acceptedAt: null,
    connectedAt: null,
    endedAt: 45_000,
    endReason: 'no_answer',
  },
}
const step = (
  call: Call,
  version: number,
  type: CallEvent['type'],
  at: number,
  more: Partial<CallEvent> = {},
): Step => ({
  call: { ...call, version },
  event: { type, at, by: null, notices: [], ...more },
})
const row = (id: string, at: number, more: Partial<TimelineRow> = {}): TimelineRow => ({
  ...{ product: 'shop', callUuid: ringing.callUuid, id, at, what: 'rung', side: 'callee', detail: {} },
  ...more,
})
const iso = (at: number) => new Date(at).toISOString()
const by = { userId: 'ann', role: 'customer', sessionId: 's1' }

test('[TRACE1] events and what was seen are in the order of time, and each says whose it is', () => {
  const steps = [step(missed, 1, 'invited', 0, { by }), step(missed, 2, 'missed', 45_000)]
  const rows = [
    row('b', 0, { sessionId: 's2' }),
    row('c', 20, { what: 'socket_lost', sessionId: 's1', side: 'caller', deviceId: 'phone' }),
  ]
  expect(timelineOf(missed, steps, rows)).toEqual([
    {
      at: '1970-01-01T00:00:00.000Z',
      what: 'invited',
      who: { user_id: 'ann', role: 'customer' },
      session_id: 's1',
      device_id: 'phone',
      detail: { version: 1 },
    },
    {
      at: '1970-01-01T00:00:00.000Z',
      what: 'rung',
      who: { user_id: 'ben', role: 'agent' },
      session_id: 's2',
      detail: {},
    },
    {
      at: '1970-01-01T00:00:00.020Z',
      what: 'socket_lost',
      who: { user_id: 'ann', role: 'customer' },
      session_id: 's1',
      device_id: 'phone',
      detail: {},
    },
    {
      at: '1970-01-01T00:00:45.000Z',
      what: 'missed',
      detail: { version: 2, status: 'missed', end_reason: 'no_answer' },
    },
  ])
})

test('[TRACE1] of very many entries what became of the call is never left out', () => {
  const flaps = Array.from({ length: 700 }, (_, n) => step(missed, n + 2, 'place_lost', n + 1))
  const steps = [step(missed, 1, 'invited', 0, { by }), ...flaps, step(missed, 702, 'missed', 45_000)]
  const entries = timelineOf(missed, steps, [row('a', 5)])
  expect([entries.length, entries[0]?.what, entries.at(-1)?.what]).toEqual([mostEntries, 'invited', 'missed'])
})

test('[SRV2] [PEER1] whose place was lost, where it passed on, and why a backend ended the call', () => {
  const away = { call_uuid: ringing.callUuid, since: '', ends_at: '' }
  const steps = [
    step(missed, 1, 'place_lost', 0, { peers: [{ to: 'caller', event: 'call.peer_away', data: away }] }),
    step(missed, 2, 'place_taken', 1, { by, moved: [{ side: 'caller', from: 's0', taken: true }] }),
    step(missed, 3, 'ended', 2, { note: 'closed' }),
  ]
  const [lost, taken, ended] = timelineOf(missed, steps, [])
  expect(lost?.who).toEqual({ user_id: 'ben', role: 'agent' })
  expect(taken?.detail).toEqual({ version: 2, places: [{ side: 'caller', from: 's0', taken: true }] })
  expect(ended?.detail).toMatchObject({ note: 'closed' })
})

test('[PEER1] a loss of which the other side hears later is one entry, which says whose place it was', () => {
  const away = (to: 'caller' | 'callee', since: number) =>
    ({ to, event: 'call.peer_away', data: { call_uuid: ringing.callUuid, since: iso(since), ends_at: '' } }) as const
  const steps = [
    step(missed, 1, 'place_lost', 1_000),
    step(missed, 2, 'place_lost', 1_000),
    // The client of this one is back before its time is over.
    step(missed, 3, 'place_lost', 2_000),
    step(missed, 4, 'place_taken', 2_100, { by }),
    step(missed, 5, 'place_lost', 3_000, { peers: [away('caller', 1_000), away('callee', 1_000)] }),
    step(missed, 6, 'place_lost', 4_000, { peers: [away('callee', 4_000)] }),
  ]
  const lost = timelineOf(ringing, steps, []).filter(({ what }) => what === 'place_lost')
  expect(lost.map(({ at, who, detail }) => [at, who?.user_id, detail.version])).toEqual([
    [iso(1_000), 'ben', 1],
    [iso(1_000), 'ann', 2],
    [iso(2_000), undefined, 3],
    [iso(4_000), 'ann', 6],
  ])
})
