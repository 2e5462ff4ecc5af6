import { describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { connectPair, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { connectFour, type Four, inviteOf, quiet, recordOf } from '../../support/sessions.ts'
import { callIn, type LiveStatus } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

/** What both participants read about their calls over REST [HIST1, HIST2]. */
export function registerHistory(name: string, start: Start): void {
  describe(`history, ${name}`, () => {
    const service = serviceFor(start)
    registerRecords(service)
    registerPaging(service)
  })
}

const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

interface Ending {
  readonly from: LiveStatus
  readonly ends?: (four: Four, callUuid: string) => Promise<unknown>
  readonly status: string
  readonly reason: string | null
}

const sends =
  (who: 'caller' | 'callee', event: string, more: object = {}) =>
  async (four: Four, callUuid: string) => {
    four[who].send(event, { call_uuid: callUuid, ...more })
    await four[who].settle()
  }

const endings: Readonly<Record<string, Ending>> = {
  'still ringing': { from: 'ringing', status: 'ringing', reason: null },
  'still accepted': { from: 'accepted', status: 'accepted', reason: null },
  'still connected': { from: 'connected', status: 'connected', reason: null },
  rejected: { from: 'ringing', ends: sends('callee', 'call.reject'), status: 'rejected', reason: 'declined' },
  'rejected with a reason': {
    from: 'ringing',
    ends: sends('callee', 'call.reject', { reason: 'driving' }),
    status: 'rejected',
    reason: 'driving',
  },
  cancelled: { from: 'ringing', ends: sends('caller', 'call.cancel'), status: 'cancelled', reason: 'caller_cancelled' },
  'cancelled after the accept': {
    from: 'accepted',
    ends: sends('caller', 'call.cancel'),
    status: 'cancelled',
    reason: 'caller_cancelled',
  },
  missed: { from: 'ringing', ends: (four) => four.caller.next('call.missed'), status: 'missed', reason: 'no_answer' },
  'ended before the media': {
    from: 'accepted',
    ends: sends('callee', 'call.end', { reason: 'no_media' }),
    status: 'ended',
    reason: 'no_media',
  },
  ended: { from: 'connected', ends: sends('caller', 'call.end'), status: 'ended', reason: 'hangup' },
}

function registerRecords(service: () => Service): void {
  for (const [name, ending] of Object.entries(endings)) {
    test(`[HIST2] ${name}: the whole record, as each of the two reads it`, async () => {
      const four = await connectFour(service())
      const given = { context_type: 'ticket', context_id: 't-1', call_type: 'video' }
      const callUuid = await callIn(ending.from, four, name === 'missed' ? { ...given, ring_timeout_ms: 1 } : given)
      await ending.ends?.(four, callUuid)
      const [over, answered] = [ending.ends !== undefined, ending.from !== 'ringing']
      const record = {
        call_uuid: callUuid,
        status: ending.status,
        ...given,
        started_at: instant,
        ended_at: over ? instant : null,
        end_reason: ending.reason,
        accepted_at: answered ? instant : null,
        connected_at: ending.from === 'connected' ? instant : null,
        duration_ms: over && answered ? expect.any(Number) : null,
      }
      const outgoing = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, callUuid)
      const incoming = await recordOf(service(), { user_id: four.calleeId, role: 'agent' }, callUuid)
      const callee = { user_id: four.calleeId, role: 'agent', display_name: answered ? four.calleeId : null }
      const caller = { user_id: four.callerId, role: 'customer', display_name: four.callerId }
      expect(outgoing).toEqual({ ...record, direction: 'outgoing', peer: callee })
      expect(incoming).toEqual({ ...record, direction: 'incoming', peer: caller })
      for (const field of ['started_at', 'ended_at', 'accepted_at', 'connected_at', 'duration_ms']) {
        expect(outgoing[field]).toBe(incoming[field])
      }
      expectOrder(outgoing)
    })
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a record as it came.
function expectOrder(record: any): void {
  const instants = [record.started_at, record.accepted_at, record.connected_at, record.ended_at]
    .filter((at) => at !== null)
    .map(Date.parse)
  expect(instants).toEqual(instants.toSorted((a, b) => a - b))
  if (record.duration_ms !== null) {
    expect(record.duration_ms).toBe(Date.parse(record.ended_at) - Date.parse(record.accepted_at))
  }
}

const calls = 250

/** Calls and hangs up, all in a few bursts, so that many calls start in the same millisecond. */
async function makeCalls(caller: Client, calleeId: string, count: number): Promise<string[]> {
  const uuids = Array.from({ length: count }, () => crypto.randomUUID())
  for (let at = 0; at < count; at += 50) {
    for (const callUuid of uuids.slice(at, at + 50)) {
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      caller.send('call.cancel', { call_uuid: callUuid })
    }
    await caller.settle()
  }
  return uuids
}

function registerPaging(service: () => Service): void {
  test(`[HIST1] [HIST2] ${calls} calls, page by page: each once, newest first, ties by call_uuid`, async () => {
    const { caller, callerId, calleeId } = await connectPair(service())
    const uuids = await makeCalls(caller, calleeId, calls)
    for (const wish of [
      { user_id: callerId, role: 'customer' },
      { user_id: calleeId, role: 'agent' },
    ]) {
      const token = await service().token(wish)
      for (const limit of [100, 37, undefined]) {
        const { records, sizes } = await readAll(service(), token, limit)
        const size = limit ?? 30
        const full = Math.floor(calls / size)
        expect(sizes).toEqual([...Array(full).fill(size), calls - full * size])
        expect(records.map(({ call_uuid }) => call_uuid).toSorted()).toEqual(uuids.toSorted())
        expect(records.map(positionOf)).toEqual(records.map(positionOf).toSorted().reverse())
      }
    }
  })

  test('[HIST1] limit: unreadable or under 1 means 30, too large 100', async () => {
    const { caller, callerId, calleeId } = await connectPair(service())
    await makeCalls(caller, calleeId, 110)
    const token = await service().token({ user_id: callerId, role: 'customer' })
    for (const [limit, count] of [
      ['', 30],
      ['many', 30],
      ['NaN', 30],
      ['0', 30],
      ['-7', 30],
      ['1', 1],
      ['100', 100],
      ['101', 100],
      ['99999999999999999999', 100],
    ] as const) {
      const { data } = await service().history(token, `?limit=${limit}`)
      expect([limit, data.length]).toEqual([limit, count])
    }
    expect((await service().history(token)).data).toHaveLength(30)
  })

  test('[HIST2] new calls while somebody reads on move nothing', async () => {
    const { caller, callerId, calleeId } = await connectPair(service())
    const uuids = await makeCalls(caller, calleeId, 20)
    const token = await service().token({ user_id: callerId, role: 'customer' })
    const first = await service().history(token, '?limit=10')
    await makeCalls(caller, calleeId, 5)
    const second = await service().history(token, `?limit=10&cursor=${first.next_cursor}`)
    const read = [...first.data, ...second.data].map(({ call_uuid }) => call_uuid)
    expect(read.toSorted()).toEqual(uuids.toSorted())
    expect(second.next_cursor).toBeNull()
  })

  test("[HIST2] a cursor gives no right: with another's one reads one's own calls, with a broken one the first page", async () => {
    const [one, two] = [await connectPair(service()), await connectPair(service())]
    await makeCalls(one.caller, one.calleeId, 5)
    const mine = await makeCalls(two.caller, two.calleeId, 5)
    const tokenOf = (userId: string) => service().token({ user_id: userId, role: 'customer' })
    const { next_cursor: cursor } = await service().history(await tokenOf(one.callerId), '?limit=2')
    const token = await tokenOf(two.callerId)
    for (const query of [`?cursor=${cursor}`, '?cursor=%00', '?cursor=abc', `?cursor=${'x'.repeat(5_000)}`]) {
      const { success, data } = await service().history(token, query)
      expect(success).toBe(true)
      for (const { call_uuid: callUuid } of data) expect(mine).toContain(callUuid)
    }
    expect((await service().history(token, '?cursor=abc')).data).toHaveLength(5)
  })

  test('[HIST1] nobody reads the calls of others, and who never called reads an empty list', async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    await makeCalls(caller, calleeId, 3)
    await quiet(caller, callee)
    const stranger = await service().token({ user_id: someone('stranger'), role: 'customer' })
    expect(await service().history(stranger)).toEqual({ success: true, data: [], next_cursor: null })
    const namesake = await service().token({ user_id: calleeId, role: 'customer' })
    expect((await service().history(namesake)).data).toEqual([])
  })
}

interface Positioned {
  readonly call_uuid: string
  readonly started_at: string
}
const positionOf = ({ started_at, call_uuid }: Positioned) => `${started_at} ${call_uuid}`

async function readAll(service: Service, token: string, limit: number | undefined) {
  const records: Positioned[] = []
  const sizes: number[] = []
  let cursor: string | null = ''
  do {
    const query = new URLSearchParams(limit === undefined ? {} : { limit: String(limit) })
    if (cursor !== '') query.set('cursor', cursor)
    const page: { data: Positioned[]; next_cursor: string | null } = await service.history(token, `?${query}`)
    records.push(...page.data)
    sizes.push(page.data.length)
    cursor = page.next_cursor
  } while (cursor !== null)
  return { records, sizes }
}
