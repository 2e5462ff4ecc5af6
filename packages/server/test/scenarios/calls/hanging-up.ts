import { describe, expect, test } from 'bun:test'
import type { ExtendedMessage } from '@ringwire/testkit/extended-trace'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { connectExtended, connectExtendedPair, ringingCall as ringingCallOf } from '../../support/extended-flows.ts'
import {
  connectFour,
  errorCode,
  eventsOf,
  type Four,
  listen,
  offer,
  quiet,
  recordOf,
  request,
  type SessionName,
  sessionNames,
} from '../../support/sessions.ts'
import { callIn, type LiveStatus } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

type OverStatus = 'ended' | 'rejected' | 'cancelled' | 'missed'
type Status = LiveStatus | OverStatus
const verbs = ['accept', 'reject', 'cancel', 'end', 'connected', 'offer'] as const
type Verb = (typeof verbs)[number]

/** What a request comes to: an error, a new status, `ok` (nothing changes), or `relayed`. */
type Cell = string
const no = 'CALL_NOT_PARTICIPANT'
const late = 'CALL_ALREADY_ANSWERED'
const state = 'CALL_INVALID_STATE'
const over = { reject: 'ok', cancel: 'ok', end: 'ok', connected: 'ok', offer: 'ok' }

/** Written down from END1 and the table of call states; in the order of the sides' sessions. */
const expected: Record<LiveStatus | 'over', Record<SessionName, Record<Verb, Cell>>> = {
  ringing: {
    caller: { accept: no, reject: no, cancel: 'cancelled', end: 'cancelled', connected: state, offer: 'ok' },
    callerTab: { accept: no, reject: no, cancel: no, end: no, connected: no, offer: no },
    callee: { accept: 'accepted', reject: 'rejected', cancel: no, end: 'rejected', connected: state, offer: 'ok' },
    calleeTab: { accept: 'accepted', reject: 'rejected', cancel: no, end: 'rejected', connected: state, offer: 'ok' },
  },
  accepted: {
    caller: { accept: no, reject: no, cancel: 'cancelled', end: 'ended', connected: 'connected', offer: 'relayed' },
    callerTab: { accept: no, reject: no, cancel: no, end: no, connected: no, offer: no },
    callee: { accept: 'ok', reject: 'ended', cancel: no, end: 'ended', connected: 'connected', offer: 'relayed' },
    calleeTab: { accept: late, reject: no, cancel: no, end: no, connected: no, offer: no },
  },
  connected: {
    caller: { accept: no, reject: no, cancel: 'ended', end: 'ended', connected: 'ok', offer: 'relayed' },
    callerTab: { accept: no, reject: no, cancel: no, end: no, connected: no, offer: no },
    callee: { accept: 'ok', reject: 'ended', cancel: no, end: 'ended', connected: 'ok', offer: 'relayed' },
    calleeTab: { accept: late, reject: no, cancel: no, end: no, connected: no, offer: no },
  },
  over: {
    caller: { accept: no, ...over },
    callerTab: { accept: no, ...over },
    callee: { accept: state, ...over },
    calleeTab: { accept: state, ...over },
  },
}

/** All verbs in all states by all four sessions. */
export function registerHangingUp(name: string, start: Start): void {
  describe(`every verb in every state, ${name}`, () => {
    const service = serviceFor(start)
    for (const status of ['ringing', 'accepted', 'connected', 'ended', 'rejected', 'cancelled', 'missed'] as const) {
      for (const who of sessionNames) {
        test(`[END1] [PLACE3] ${status}: what the ${who} may still do`, async () => {
          for (const verb of verbs) await checkCell(service(), status, who, verb)
        })
      }
    }
    registerOutsiders(service)
    registerRepeats(service)
  })
}

async function checkCell(service: Service, status: Status, who: SessionName, verb: Verb): Promise<void> {
  const four = await connectFour(service)
  const callUuid = await callAt(status, four)
  const news = listen(four, sessionNames)
  const reply = await request(four[who], verb === 'offer' ? 'webrtc.offer' : `call.${verb}`, offer(callUuid))
  await quiet(...sessionNames.map((name) => four[name]))
  const live = status === 'ringing' || status === 'accepted' || status === 'connected'
  const cell = expected[live ? status : 'over'][who][verb]
  const where = `${status}, ${who}: ${verb}`

  expect([where, reply?.error?.code ?? 'ok']).toEqual([where, cell.startsWith('CALL_') ? cell : 'ok'])
  if (cell === state) expect(reply?.error.status).toBe(status)
  const heard = news()
  const others = sessionNames.filter((name) => name !== who).flatMap((name) => heard[name])
  if (cell === 'relayed') expect(others.map(({ event }) => event)).toEqual(['webrtc.offer'])
  const moves = !cell.startsWith('CALL_') && cell !== 'ok' && cell !== 'relayed'
  if (!moves && cell !== 'relayed') expect([where, others]).toEqual([where, []])
  // Who had not heard of the end, or met another state than it asked about, hears how the call ended [END4].
  const crossed = moves && status !== 'ringing' && (verb === 'cancel' || verb === 'reject')
  const isNew = !live && verb !== 'accept' && (who === 'callerTab' || (who === 'calleeTab' && status === 'ended'))
  const finals = heard[who].filter(({ data }) => typeof data.ended_at === 'string')
  expect([where, finals.length]).toEqual([where, crossed || isNew ? 1 : 0])
  expect([where, heard[who].length]).toEqual([where, finals.length + (reply === undefined ? 0 : 1)])
  const record = await recordOf(service, { user_id: four.callerId, role: 'customer' }, callUuid)
  expect([where, record.status]).toEqual([where, moves ? cell : status])
}

async function callAt(status: Status, four: Four): Promise<string> {
  switch (status) {
    case 'ringing':
    case 'accepted':
    case 'connected':
      return callIn(status, four)
    case 'ended': {
      const callUuid = await callIn('accepted', four)
      four.caller.send('call.end', { call_uuid: callUuid })
      await four.callee.next('call.ended')
      return callUuid
    }
    case 'rejected': {
      const callUuid = await callIn('ringing', four)
      four.callee.send('call.reject', { call_uuid: callUuid })
      await Promise.all([four.caller.next('call.rejected'), four.calleeTab.next('call.cancelled')])
      return callUuid
    }
    case 'cancelled': {
      const callUuid = await callIn('ringing', four)
      four.caller.send('call.cancel', { call_uuid: callUuid })
      await Promise.all([four.callee.next('call.cancelled'), four.calleeTab.next('call.cancelled')])
      return callUuid
    }
    case 'missed': {
      const callUuid = await callIn('ringing', four, { ring_timeout_ms: 1 })
      await Promise.all([four.caller, four.callee, four.calleeTab].map((client) => client.next('call.missed')))
      return callUuid
    }
  }
}

function registerOutsiders(service: () => Service): void {
  test('[ENV5] [ID1] outsiders cannot tell a call of others from none, in any state, by any verb', async () => {
    for (const status of ['ringing', 'accepted', 'ended'] as const) {
      const four = await connectFour(service())
      const callUuid = await callAt(status, four)
      const outsiders = await Promise.all([
        service().connect({ user_id: someone('nobody'), role: 'agent' }),
        // The same names in the other role are other people.
        service().connect({ user_id: four.callerId, role: 'agent' }),
        service().connect({ user_id: four.calleeId, role: 'customer' }),
      ])
      const news = listen(four, sessionNames)
      for (const outsider of outsiders) {
        for (const verb of verbs) {
          const event = verb === 'offer' ? 'webrtc.offer' : `call.${verb}`
          const real = await request(outsider, event, offer(callUuid))
          const none = await request(outsider, event, offer(crypto.randomUUID()))
          expect(real?.error.code).toBe('CALL_NOT_FOUND')
          expect(real?.error).toEqual(none?.error)
        }
        expect(outsider.events().filter((event) => event !== 'call.error')).toEqual(['auth.ok'])
      }
      await quiet(...sessionNames.map((name) => four[name]))
      expect(Object.values(news()).flat()).toEqual([])
    }
  })
}

function registerRepeats(service: () => Service): void {
  test('[END1] [END4] hanging up again and again: no error, each session hears of the end once, the first one stays', async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('connected', four)
    const news = listen(four, sessionNames)
    four.caller.send('call.end', { call_uuid: callUuid, reason: 'first' })
    await four.callee.next('call.ended')
    const wish = { user_id: four.calleeId, role: 'agent' }
    const record = await recordOf(service(), wish, callUuid)
    for (const who of sessionNames) {
      for (const verb of ['end', 'cancel', 'reject', 'connected']) {
        expect(await errorCode(four[who], `call.${verb}`, { call_uuid: callUuid })).toBeUndefined()
      }
    }
    await quiet(...sessionNames.map((name) => four[name]))
    const ended = ['call.ended']
    expect(eventsOf(news())).toEqual({ caller: [], callerTab: ended, callee: ended, calleeTab: ended })
    expect(await recordOf(service(), wish, callUuid)).toEqual(record)
    expect(record).toMatchObject({ status: 'ended', end_reason: 'first' })
  })

  test('[END4] a phone that missed the end hears of it when it names the call: once, whatever it sends', async () => {
    const asCallee = { user_id: someone('callee'), role: 'agent' }
    const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
    const phone = await service().connect({ ...asCallee, device_id: 'phone' })
    const callUuid = await acceptedCall({ caller, callee: phone, calleeId: asCallee.user_id })
    await phone.die()
    caller.send('call.end', { call_uuid: callUuid, reason: 'over' })
    await caller.settle()
    const requests: [string, object][] = [
      ...Array.from({ length: 20 }, (_, n): [string, object] => ['webrtc.ice_candidate', candidate(callUuid, n)]),
      ['webrtc.offer', offer(callUuid)],
      ...['connected', 'end', 'reject', 'cancel'].map((verb): [string, object] => [`call.${verb}`, offer(callUuid)]),
    ]
    for (const first of requests.slice(-6)) {
      // Nothing was kept for a device that was not there.
      const laptop = await service().connect({ ...asCallee, device_id: crypto.randomUUID() })
      await laptop.settle()
      expect(laptop.events()).toEqual(['auth.ok'])
      for (const [event, data] of [first, ...requests]) laptop.send(event, data)
      await laptop.settle()
      expect(laptop.events()).toEqual(['auth.ok', 'call.ended'])
      expect((await laptop.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'over' })
    }
    // Who ended it knows.
    for (const [event, data] of requests) caller.send(event, data)
    await caller.settle()
    expect(caller.events()).toEqual(['auth.ok', 'call.invited', 'call.accepted'])
  })

  test('[END4] an extended phone hears of it before its reply', async () => {
    const pair = await connectExtendedPair(service(), { device_id: 'phone' })
    const callUuid = await ringingCallOf(pair)
    await pair.callee.request('call.reject', { call_uuid: callUuid })
    await pair.caller.next('call.rejected')
    const tablet = await connectExtended(service(), { user_id: pair.calleeId, role: 'agent', device_id: 'tablet' })
    // Another node hears of the end a moment after the caller did. Until then what a callee sends is kept, as while it rings.
    let early = -1
    let first: ExtendedMessage
    do {
      first = await tablet.request('webrtc.ice_candidate', candidate(callUuid, 1))
      early++
    } while (first.data.status === 'ringing')
    const replies = [first, await tablet.request('call.end', { call_uuid: callUuid })]
    expect(replies.map(({ event, data }) => [event, data.status])).toEqual([
      ['call.ack', 'rejected'],
      ['call.ack', 'rejected'],
    ])
    const kept = Array(early).fill('call.ack')
    expect(tablet.all.map(({ event }) => event)).toEqual(['auth.ok', ...kept, 'call.cancelled', 'call.ack', 'call.ack'])
    expect((await tablet.next('call.cancelled')).data).toMatchObject({
      status: 'rejected',
      reason: 'rejected_elsewhere',
    })
    expect(pair.callee.events()).toEqual(['call.ringing'])
  })

  for (const [reason, heard] of [
    ['User Busy', 'user_busy'],
    ['x'.repeat(65), 'x'.repeat(64)],
    ['', undefined],
    [7, undefined],
    [{}, undefined],
    [null, undefined],
  ] as const) {
    const given = JSON.stringify(reason).slice(0, 12)
    const becomes = heard === undefined ? 'has the default' : 'is made readable'
    test(`[END1] [END2] a hang-up never fails for its reason: ${given} ${becomes}`, async () => {
      const { caller, callee, calleeId } = await connectPair(service())
      const callUuid = await acceptedCall({ caller, callee, calleeId })
      expect(await errorCode(caller, 'call.end', { call_uuid: callUuid, reason })).toBeUndefined()
      expect((await callee.next('call.ended')).data.reason).toBe(heard ?? 'hangup')
      const ringing = await invite(caller, calleeId)
      await callee.next('call.ringing', ({ data }) => data.call_uuid === ringing)
      callee.send('call.reject', { call_uuid: ringing, reason })
      expect((await caller.next('call.rejected')).data.reason).toBe(heard ?? 'declined')
    })
  }
}
