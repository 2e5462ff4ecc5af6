import { expect, test } from 'bun:test'
import { type EndReasonDefinition, endReasons } from '@ringwire/protocol/end-reasons'
import type { Call } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { StoreError } from '../ports/store-error.ts'
import { countsOf, type Family, sumOf, textOf } from './families.ts'
import { createJournal } from './journal.ts'
import { createSilentLogger } from './logger.ts'
import { createMetrics, nobody } from './metrics.ts'
import { createCounter, createHistogram, maxSeries } from './series.ts'
import { createTimed } from './timed.ts'

const create = () => createMetrics({ node: 'n', version: '1.2.3', stores: ['database', 'redis'] })

/** The values by the names of their samples. */
function valuesOf(families: readonly Family[]): Record<string, number> {
  return Object.fromEntries(families.flatMap(({ samples }) => samples))
}

const storeErrorsOf = (store: string) =>
  ['unavailable', 'unknown', 'full', 'refused'].map(
    (kind) => `ringwire_store_errors_total{store="${store}",kind="${kind}"}`,
  )

const place = { sessionId: 's', deviceId: null, node: 'n', settled: true, state: 'held' } as const
const accepted: Extract<Call, { status: 'accepted' | 'connected' }> = {
  product: 'shop',
  callUuid: 'c0ffee',
  version: 2,
  status: 'accepted',
  caller: { role: 'customer', userId: 'ann', displayName: 'Ann' },
  callee: { role: 'agent', userId: 'ben', displayName: 'Ben' },
  contextType: 'order',
  contextId: '17',
  callType: 'audio',
  metadata: null,
  startedAt: 1_000,
  ringTimeoutMs: 45_000,
  ringExpiresAt: 46_000,
  callerPlace: place,
  calleePlace: place,
  acceptedAt: 4_000,
  connectedAt: null,
}
const step = (call: Call, type: Step['event']['type']): Step => ({
  call,
  event: { type, at: 0, by: null, notices: [] },
})

test('[MET2] [XFER1] transfers are counted by what became of them, and only real rings have a time', () => {
  const metrics = create()
  const by = { userId: 'eva', role: 'agent', displayName: 'Eva' }
  const transferred = { from: 'beef', by, firstStartedAt: 500 }
  const missed = { status: 'missed', endedAt: 9_000, endReason: 'no_answer', acceptedAt: null } as const
  metrics.committed(step({ ...accepted, transferred }, 'accepted'))
  metrics.committed(step({ ...accepted, transferred, status: 'connected', connectedAt: 5_000 }, 'connected'))
  metrics.committed(step({ ...accepted, transferred: { ...transferred, secondStartedAt: 700 } }, 'accepted'))
  metrics.committed(step({ ...accepted, ...missed, transferred } as Call, 'missed'))
  metrics.committed(step({ ...accepted, status: 'ended', endedAt: 9_000, endReason: 'hangup', transferred }, 'ended'))
  metrics.committed(step(accepted, 'accepted'))
  const seen = valuesOf(metrics.families(nobody))
  const counted = ['accepted', 'joined', 'rejected', 'missed', 'cancelled'].map(
    (result) => seen[`ringwire_transfers_total{result="${result}"}`],
  )
  expect(counted).toEqual([1, 1, 0, 1, 0])
  expect(seen['ringwire_call_setup_seconds_count{phase="ring"}']).toBe(2)
})

test('[MET1] [GROUP1] calls to groups are counted by what became of them, transferred ones as well', () => {
  const metrics = create()
  const group = { name: 'support', members: ['ben'], declined: [] }
  const over = { endedAt: 9_000, acceptedAt: null, group } as const
  const transferred = { from: 'beef', by: accepted.callee, firstStartedAt: 500 }
  const ringing = { ...accepted, group, status: 'ringing', acceptedAt: undefined } as unknown as Call
  metrics.committed(step(ringing, 'invited'))
  metrics.committed(step({ ...accepted, group }, 'accepted'))
  metrics.committed(step({ ...accepted, group, transferred }, 'accepted'))
  metrics.committed(step({ ...accepted, group, status: 'connected', connectedAt: 5_000 }, 'connected'))
  metrics.committed(step({ ...accepted, group, status: 'ended', endedAt: 9_000, endReason: 'hangup' }, 'ended'))
  metrics.committed(step({ ...accepted, ...over, status: 'rejected', endReason: 'all_declined' } as Call, 'rejected'))
  metrics.committed(step({ ...accepted, ...over, status: 'busy', endReason: 'busy' } as Call, 'busy'))
  metrics.committed(step({ ...accepted, ...over, status: 'missed', endReason: 'no_answer' } as Call, 'missed'))
  metrics.committed(step(accepted, 'accepted'))
  const seen = valuesOf(metrics.families(nobody))
  const counted = ['accepted', 'rejected', 'missed', 'cancelled', 'busy'].map(
    (result) => seen[`ringwire_group_calls_total{result="${result}"}`],
  )
  expect(counted).toEqual([2, 1, 1, 0, 1])
  expect(seen['ringwire_transfers_total{result="accepted"}']).toBe(1)
})

test('[MET1] what happens is counted by its kind', () => {
  const metrics = create()
  metrics.relayed('webrtc.offer', 'short', 4_000)
  metrics.relayed('webrtc.offer', 'long', 500)
  metrics.requested('call.invite', 'ok')
  metrics.requested('call.invite', 'CALL_GLARE')
  metrics.answered('/v1/call/session-token', 401)
  metrics.closed(4408, 'no pong to a keep-alive')
  metrics.closed(1006, 'client')
  metrics.resumed(true)
  metrics.limited('pair_invites')
  const seen = valuesOf(metrics.families({ ...nobody, connections: 7, sessions: { connected: 7, away: 2 } }))
  expect(seen).toMatchObject({
    'ringwire_relays_total{event="webrtc.offer",road="short"}': 1,
    'ringwire_relays_total{event="webrtc.offer",road="long"}': 1,
    ringwire_relay_bytes_total: 4_500,
    'ringwire_requests_total{event="call.invite",result="ok"}': 1,
    'ringwire_requests_total{event="call.invite",result="CALL_GLARE"}': 1,
    'ringwire_requests_total{event="/v1/call/session-token",result="401"}': 1,
    'ringwire_closes_total{code="4408",cause="no pong to a keep-alive"}': 1,
    'ringwire_closes_total{code="1006",cause="client"}': 1,
    'ringwire_resumes_total{result="recovered"}': 1,
    'ringwire_resumes_total{result="refused"}': 0,
    'ringwire_limited_total{limit="pair_invites"}': 1,
    ringwire_connections: 7,
    'ringwire_sessions{state="away"}': 2,
    'ringwire_build_info{version="1.2.3",node="n"}': 1,
  })
})

test('[MET1] what processes share is told once, by the one that knows it to be largest', () => {
  const families = (outboxOldestSeconds: number) =>
    create().families({ ...nobody, connections: 2, outboxOldestSeconds })
  expect(valuesOf(sumOf([families(3), families(4), families(3.5), create().families(nobody)]))).toMatchObject({
    ringwire_outbox_oldest_seconds: 4,
    ringwire_connections: 6,
  })
})

test('[MET1] set-up times are of the moment: each call once, however its places change', () => {
  const metrics = create()
  const connected: Call = { ...accepted, version: 3, status: 'connected', connectedAt: 4_300 }
  metrics.committed(step(accepted, 'accepted'))
  metrics.committed(step({ ...accepted, version: 3 }, 'place_settled'))
  metrics.committed(step(connected, 'connected'))
  metrics.committed(step({ ...connected, version: 4 }, 'place_lost'))
  metrics.committed(step({ ...connected, version: 5, status: 'ended', endedAt: 9_000, endReason: 'hangup' }, 'ended'))
  expect(valuesOf(metrics.families(nobody))).toMatchObject({
    'ringwire_call_setup_seconds_sum{phase="ring"}': 3,
    'ringwire_call_setup_seconds_count{phase="ring"}': 1,
    'ringwire_call_setup_seconds_bucket{phase="connect",le="0.25"}': 0,
    'ringwire_call_setup_seconds_bucket{phase="connect",le="0.5"}': 1,
    'ringwire_call_setup_seconds_count{phase="connect"}': 1,
    'ringwire_calls_ended_total{status="ended",end_reason="hangup"}': 1,
  })
})

test('[MET1] every reason that a call can be over for is a label', () => {
  const metrics = create()
  for (const [reason, { ends }] of Object.entries<EndReasonDefinition>(endReasons)) {
    const over = { ...accepted, status: ends[0] ?? 'ended', endedAt: 5_000, endReason: reason } as const
    metrics.committed(step(over, over.status))
    // A client that gives what only notices say has made it up.
    const label = ends.length > 0 ? reason : 'other'
    expect(textOf(metrics.families(nobody))).toContain(`{status="${over.status}",end_reason="${label}"}`)
  }
})

test('[MET1] nothing that clients make up is a label: 10,000 people make no more series than one', () => {
  const linesAfter = (people: number) => {
    const metrics = create()
    const journal = createJournal({ logger: createSilentLogger(), isDebug: false, now: () => 0, meter: metrics })
    for (let i = 0; i < people; i++) {
      const who = {
        participant: { product: 'shop', role: 'customer', userId: `planted-${i}` },
        sessionId: `planted-${i}`,
      }
      journal.request(who, { event: `planted.${i}`, data: {} }, undefined)
      journal.request(who, undefined, { code: 'INVALID_MESSAGE' })
      journal.left(3000 + (i % 2000))
      const asked = { method: 'GET', path: `/planted/${i}`, client: () => `planted-${i}` }
      journal.answered(asked, new Response(null, { status: 404 }), 1)
      journal.operator(asked, new Response(null, { status: 404 }), 1)
      const over: Call = { ...accepted, status: 'ended', endedAt: 5_000, endReason: `planted_${i}` }
      journal.committed(step({ ...over, callUuid: `planted-${i}` }, 'ended'))
    }
    return textOf(metrics.families(nobody)).split('\n')
  }
  const lines = linesAfter(10_000)
  expect(lines.join()).not.toContain('planted')
  // Of the codes that were made up some are known ones.
  const isOfClients = (line: string) => line.includes('cause="client"')
  expect(lines.filter(isOfClients).length).toBeLessThan(20)
  expect(lines.filter((it) => !isOfClients(it))).toHaveLength(linesAfter(1).filter((it) => !isOfClients(it)).length)
  expect(lines).toContain('ringwire_calls_ended_total{status="ended",end_reason="other"} 10000')
})

test('[MET1] what alerts ask for is there from the start, at 0: the first failure is a rate', () => {
  const seen = valuesOf(create().families(nobody))
  const names = [
    ...storeErrorsOf('database'),
    ...storeErrorsOf('redis'),
    'ringwire_store_seconds_count{store="database",operation="check"}',
    'ringwire_store_seconds_count{store="redis",operation="check"}',
    'ringwire_store_seconds_bucket{store="database",operation="commit",le="0.25"}',
    'ringwire_store_seconds_bucket{store="redis",operation="save",le="+Inf"}',
    'ringwire_requests_total{event="call.invite",result="ok"}',
    'ringwire_requests_total{event="call.invite",result="SERVICE_UNAVAILABLE"}',
    'ringwire_requests_total{event="webrtc.offer",result="INTERNAL_ERROR"}',
    'ringwire_admin_requests_total{result="401"}',
    'ringwire_limited_total{limit="operators"}',
  ]
  for (const name of names) expect([name, seen[name]]).toEqual([name, 0])
  // A store that a node has not got is not told as one that stands still.
  const alone = valuesOf(createMetrics({ node: 'n', version: '1', stores: ['database'] }).families(nobody))
  expect(Object.keys(alone).filter((name) => name.includes('redis'))).toEqual([])
})

test('several processes told as one: what has the same name is added up, in the order of the first', () => {
  const one = [
    { name: 'a_total', help: 'a', type: 'counter', samples: [['a_total{x="1"}', 1]] },
    { name: 'g', help: 'g', type: 'gauge', samples: [['g', 5]] },
  ] as const
  const other = [
    { name: 'g', help: 'g', type: 'gauge', samples: [['g', 7]] },
    {
      name: 'a_total',
      help: 'a',
      type: 'counter',
      samples: [
        ['a_total{x="2"}', 10],
        ['a_total{x="1"}', 2],
      ],
    },
  ] as const
  expect(textOf(sumOf([one, other]))).toBe(
    '# HELP a_total a\n# TYPE a_total counter\na_total{x="1"} 3\na_total{x="2"} 10\n# HELP g g\n# TYPE g gauge\ng 12\n',
  )
  expect(countsOf(one).map(({ name }) => name)).toEqual(['a_total'])
})

test('whatever is given as a label, a metric has so many series and one more', () => {
  const counter = createCounter('c_total', ['a', 'b'], 'c')
  for (let i = 0; i < 10_000; i++) counter.add(1, i % 2 === 0 ? 'other' : String(i), String(i))
  const { samples } = counter.family()
  expect(samples).toHaveLength(maxSeries + 1)
  expect(samples.reduce((sum, [, value]) => sum + value, 0)).toBe(10_000)
})

test('values of labels are escaped', () => {
  const counter = createCounter('c_total', ['a'], 'c')
  counter.add(1, 'a"b\\c\nd')
  expect(textOf([counter.family()])).toContain('c_total{a="a\\"b\\\\c\\nd"} 1\n')
})

test('a bucket counts what is as large as its bound, and +Inf all', () => {
  const histogram = createHistogram('h', [], [1, 2], 'h')
  for (const value of [0.5, 1, 1.5, 99]) histogram.observe(value)
  expect(histogram.family().samples).toEqual([
    ['h_bucket{le="1"}', 2],
    ['h_bucket{le="2"}', 3],
    ['h_bucket{le="+Inf"}', 4],
    ['h_sum', 102],
    ['h_count', 4],
  ])
})

test('[MET1] a store: how long it takes, what it refuses, and nothing of what it says', async () => {
  const metrics = create()
  const timed = createTimed(metrics, 'database')
  expect(timed('read', 'at once')).toBe('at once')
  expect(await timed('commit', Promise.resolve('done'))).toBe('done')
  const failures = [
    new StoreError('unknown', 'the commit took too long'),
    new StoreError('unavailable', 'SQLITE_FULL: the disk is full of planted'),
    new Error('a value was refused: planted'),
  ]
  for (const failure of failures) expect(await timed('commit', Promise.reject(failure)).catch((it) => it)).toBe(failure)
  const families = metrics.families(nobody)
  expect(valuesOf(families)).toMatchObject({
    'ringwire_store_seconds_count{store="database",operation="commit"}': 1,
    'ringwire_store_errors_total{store="database",kind="unknown"}': 1,
    'ringwire_store_errors_total{store="database",kind="full"}': 1,
    'ringwire_store_errors_total{store="database",kind="refused"}': 1,
    'ringwire_store_errors_total{store="database",kind="unavailable"}': 0,
  })
  expect(textOf(families)).not.toMatch(/planted|operation="read"/)
})
