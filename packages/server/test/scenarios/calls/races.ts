import { describe, expect, test } from 'bun:test'
import type { Received } from '@ringwire/testkit/client'
import { candidate, connectPair } from '@ringwire/testkit/flows'
import { isLong } from '@ringwire/testkit/long'
import type { Service } from '@ringwire/testkit/service'
import {
  answer,
  burst,
  connectFour,
  type Four,
  inviteOf,
  listen,
  type Message,
  offer,
  quiet,
  received,
  recordOf,
  sessionNames,
} from '../../support/sessions.ts'
import { callIn } from './call-states.ts'
import { type Start, serviceFor } from './composition.ts'

const rounds = isLong ? 40 : 15

/** What arrives at once, or in one segment, has one order and one outcome. */
export function registerRaces(name: string, start: Start): void {
  describe(`races, ${name}`, () => {
    const service = serviceFor(start)
    registerBursts(service)
    registerAccepts(service)
    registerEnds(service)
    registerTimeouts(service)
  })
}

function registerBursts(service: () => Service): void {
  test(`[ORD1] invite and cancel in one segment, ${rounds} rounds: rung, then cancelled, each call`, async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = crypto.randomUUID()
      const heard = [received(caller).length, received(callee).length] as const
      burst(caller, [
        ['call.invite', inviteOf(calleeId, { call_uuid: callUuid })],
        ['call.cancel', { call_uuid: callUuid }],
      ])
      await quiet(caller, callee)
      expect(caller.events().slice(heard[0])).toEqual(['call.invited'])
      expect(callee.events().slice(heard[1])).toEqual(['call.ringing', 'call.cancelled'])
    }
  })

  test(`[ORD1] [ORD2] everything that both sides have to say in one segment each, ${rounds} rounds: nothing overtakes`, async () => {
    const isOneNode = service().passedOn === undefined
    const { caller, callee, calleeId } = await connectPair(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = crypto.randomUUID()
      const heard = [received(caller).length, received(callee).length] as const
      burst(caller, [
        ['call.invite', inviteOf(calleeId, { call_uuid: callUuid })],
        ['webrtc.offer', offer(callUuid)],
        ...[0, 1, 2].map((n) => ['webrtc.ice_candidate', candidate(callUuid, n)] as const),
        ['call.connected', { call_uuid: callUuid }, `early-${round}`],
      ])
      const hangUp: readonly Message[] = [
        ['call.end', { call_uuid: callUuid }],
        ['webrtc.ice_candidate', candidate(callUuid, 11)],
      ]
      await callee.next('call.ringing', ({ data }) => data.call_uuid === callUuid)
      burst(callee, [
        ['webrtc.ice_candidate', candidate(callUuid, 9)],
        ['call.accept', { call_uuid: callUuid }],
        ['webrtc.answer', answer(callUuid)],
        ['call.connected', { call_uuid: callUuid }],
        ['webrtc.ice_candidate', candidate(callUuid, 10)],
        ...(isOneNode ? hangUp : []),
      ])
      // Between two nodes the end may be faster than what the caller had to say, which is dropped then [END1].
      if (!isOneNode) {
        const isLastOfCaller = ({ data }: Received) =>
          data.call_uuid === callUuid && data.candidate.candidate === 'candidate:2'
        await callee.next('webrtc.ice_candidate', isLastOfCaller)
        burst(callee, hangUp)
      }
      await quiet(callee, caller)
      const told = received(caller).slice(heard[0])
      // Between two nodes the accept may be faster than what the caller had to say right after the invite.
      const events = told.map(({ event, error }) => error?.code ?? event)
      expect(events.filter((event) => event === 'CALL_INVALID_STATE').length).toBeLessThanOrEqual(1)
      expect(events.filter((event) => event !== 'CALL_INVALID_STATE')).toEqual([
        'call.invited',
        'call.accepted',
        'webrtc.ice_candidate',
        'webrtc.answer',
        'webrtc.ice_candidate',
        'call.ended',
      ])
      expect(callee.events().slice(heard[1])).toEqual([
        'call.ringing',
        'webrtc.offer',
        'webrtc.ice_candidate',
        'webrtc.ice_candidate',
        'webrtc.ice_candidate',
      ])
    }
  })

  test(`[ORD2] both sides send at once all the time, ${rounds} rounds: each direction keeps its order`, async () => {
    const four = await connectFour(service())
    const callUuid = await callIn('accepted', four)
    for (let round = 0; round < rounds; round++) {
      for (const [client, base] of [
        [four.caller, 0],
        [four.callee, 100_000],
      ] as const) {
        burst(
          client,
          [0, 1, 2, 3, 4].map((n) => ['webrtc.ice_candidate', candidate(callUuid, base + round * 5 + n)] as const),
        )
      }
    }
    await quiet(four.caller, four.callee)
    const numbers = (client: Four['caller']) =>
      client.all
        .filter(({ event }) => event === 'webrtc.ice_candidate')
        .map(({ data }) => Number(data.candidate.candidate.split(':')[1]))
    const inOrder = Array.from({ length: rounds * 5 }, (_, n) => n)
    expect(numbers(four.callee)).toEqual(inOrder)
    expect(numbers(four.caller)).toEqual(inOrder.map((n) => 100_000 + n))
  })
}

/**
 * Of several nodes: the refusal of what came second may be faster than the notice of what came first, which the other node
 * sends. One node says the notice first.
 */
function noticesFirst({ passedOn }: Service, heard: readonly Received[]): readonly Received[] {
  const isRefusal = ({ event }: Received) => event === 'call.error'
  return passedOn === undefined ? heard : [...heard.filter((it) => !isRefusal(it)), ...heard.filter(isRefusal)]
}

function registerAccepts(service: () => Service): void {
  test(`[PLACE1] two accepts at once, ${rounds} rounds: one wins, only the other hears answered_elsewhere`, async () => {
    const four = await connectFour(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = await callIn('ringing', four)
      const news = listen(four, sessionNames)
      const tabs = round % 2 === 0 ? [four.callee, four.calleeTab] : [four.calleeTab, four.callee]
      for (const tab of tabs) tab.send('call.accept', { call_uuid: callUuid }, 'accept')
      await quiet(...sessionNames.map((who) => four[who]))
      const heard = news()
      const loser = heard.callee.length > 0 ? 'callee' : 'calleeTab'
      const winner = loser === 'callee' ? 'calleeTab' : 'callee'
      const lost = noticesFirst(service(), heard[loser])
      expect(lost.map(({ event }) => event)).toEqual(['call.cancelled', 'call.error'])
      expect(lost[0]?.data).toMatchObject({ status: 'accepted', reason: 'answered_elsewhere', ended_at: null })
      expect(lost[1]).toMatchObject({ request_id: 'accept', error: { code: 'CALL_ALREADY_ANSWERED' } })
      expect(heard[winner]).toEqual([])
      expect(heard.caller.map(({ event }) => event)).toEqual(['call.accepted'])
      expect(heard.callerTab).toEqual([])
      four[winner].send('call.end', { call_uuid: callUuid })
      await four.caller.next('call.ended')
    }
  })

  test(`accept and cancel at once, ${rounds} rounds: one of the two ends, and everybody agrees which`, async () => {
    const four = await connectFour(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = await callIn('ringing', four)
      const news = listen(four, sessionNames)
      const accept = () => four.callee.send('call.accept', { call_uuid: callUuid }, 'accept')
      const cancel = () => four.caller.send('call.cancel', { call_uuid: callUuid }, 'cancel')
      for (const send of round % 2 === 0 ? [accept, cancel] : [cancel, accept]) send()
      await quiet(...sessionNames.map((who) => four[who]))
      const heard = news()
      const told = (who: keyof typeof heard) =>
        noticesFirst(service(), heard[who]).map(({ event, error, data }) => error?.code ?? data.reason ?? event)
      if (told('caller').length > 0) {
        // It hears what became of the call whose accept it has just got [END4].
        expect(told('caller')).toEqual(['call.accepted', 'caller_cancelled'])
        expect(told('callee')).toEqual(['caller_cancelled'])
        expect(told('calleeTab')).toEqual(['answered_elsewhere'])
      } else {
        expect(told('callee')).toEqual(['caller_cancelled', 'CALL_INVALID_STATE'])
        expect(told('calleeTab')).toEqual(['caller_cancelled'])
      }
      expect(heard.callerTab).toEqual([])
    }
    const { data } = await service().history(
      await service().token({ user_id: four.calleeId, role: 'agent' }),
      '?limit=100',
    )
    expect(data.every(({ status }: { status: string }) => status === 'cancelled')).toBe(true)
  })

  test(`accept in one tab and reject in the other at once, ${rounds} rounds: one counts`, async () => {
    const four = await connectFour(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = await callIn('ringing', four)
      const news = listen(four, sessionNames)
      const accept = () => four.callee.send('call.accept', { call_uuid: callUuid }, 'accept')
      const reject = () => four.calleeTab.send('call.reject', { call_uuid: callUuid }, 'reject')
      for (const send of round % 2 === 0 ? [accept, reject] : [reject, accept]) send()
      await quiet(...sessionNames.map((who) => four[who]))
      const heard = news()
      const codes = (who: keyof typeof heard) =>
        noticesFirst(service(), heard[who]).map(({ event, error, data }) => error?.code ?? data.reason ?? event)
      const record = await recordOf(service(), { user_id: four.callerId, role: 'customer' }, callUuid)
      if (record.status === 'accepted') {
        expect(codes('caller')).toEqual(['call.accepted'])
        expect(codes('callee')).toEqual([])
        expect(codes('calleeTab')).toEqual(['answered_elsewhere', 'CALL_NOT_PARTICIPANT'])
        four.callee.send('call.end', { call_uuid: callUuid })
        await four.caller.next('call.ended')
      } else {
        expect(codes('caller')).toEqual(['declined'])
        expect(codes('callee')).toEqual(['rejected_elsewhere', 'CALL_INVALID_STATE'])
        expect(codes('calleeTab')).toEqual([])
      }
    }
  })
}

function registerEnds(service: () => Service): void {
  test(`[END1] both hang up at once, ${rounds} rounds: no error, and one of the two is told`, async () => {
    const { caller, callee, calleeId, callerId } = await connectPair(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = crypto.randomUUID()
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      await callee.next('call.ringing')
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      const heard = [received(caller).length, received(callee).length] as const
      const sends = [
        () => caller.send('call.end', { call_uuid: callUuid, reason: 'by_caller' }, 'end'),
        () => callee.send('call.end', { call_uuid: callUuid, reason: 'by_callee' }, 'end'),
      ]
      for (const send of round % 2 === 0 ? sends : sends.reverse()) send()
      await quiet(caller, callee)
      const told = [...received(caller).slice(heard[0]), ...received(callee).slice(heard[1])]
      expect(told.map(({ event }) => event)).toEqual(['call.ended'])
      const byCaller = received(callee).length > heard[1]
      expect(told[0]?.data).toMatchObject({
        reason: byCaller ? 'by_caller' : 'by_callee',
        by: { user_id: byCaller ? callerId : calleeId },
      })
      const record = await recordOf(service(), { user_id: callerId, role: 'customer' }, callUuid)
      expect(record.end_reason).toBe(told[0]?.data.reason)
    }
  })

  test(`[ORD2] an end and a flood of candidates cross, ${rounds} rounds: nothing comes after the final notice`, async () => {
    const { caller, callee, calleeId } = await connectPair(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = crypto.randomUUID()
      caller.send('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
      await callee.next('call.ringing')
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      const flood = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => ['webrtc.ice_candidate', candidate(callUuid, n)] as const)
      burst(caller, flood)
      callee.send('call.end', { call_uuid: callUuid })
      burst(callee, flood)
      burst(caller, flood)
      await quiet(caller, callee)
      expect(caller.events().at(-1)).toBe('call.ended')
      expect(caller.events()).not.toContain('call.error')
      expect(callee.events()).not.toContain('call.error')
    }
  })
}

function registerTimeouts(service: () => Service): void {
  test(`[RING1] accept racing the ring timeout, ${rounds} rounds: accepted or missed, and everybody agrees which`, async () => {
    const four = await connectFour(service())
    const pace = await connectPair(service())
    for (let round = 0; round < rounds; round++) {
      const callUuid = crypto.randomUUID()
      const news = listen(four, sessionNames)
      // Another call's timeout is the signal to accept: at about the time of this one's.
      pace.caller.send('call.invite', inviteOf(pace.calleeId, { ring_timeout_ms: 4 }))
      const invitation = inviteOf(four.calleeId, { call_uuid: callUuid, ring_timeout_ms: 4 + (round % 4) })
      four.caller.send('call.invite', invitation)
      await four.callee.next('call.ringing', ({ data }) => data.call_uuid === callUuid)
      await pace.caller.next('call.missed')
      four.callee.send('call.accept', { call_uuid: callUuid }, 'accept')
      await quiet(...sessionNames.map((who) => four[who]))
      const heard = news()
      const codes = (who: keyof typeof heard) =>
        noticesFirst(service(), heard[who]).map(({ event, error, data }) => error?.code ?? data.reason ?? event)
      if (codes('caller').includes('call.accepted')) {
        expect(codes('caller')).toEqual(['call.invited', 'call.accepted'])
        expect(codes('callee')).toEqual(['call.ringing'])
        expect(codes('calleeTab')).toEqual(['call.ringing', 'answered_elsewhere'])
        four.callee.send('call.end', { call_uuid: callUuid })
        await four.caller.next('call.ended', ({ data }) => data.call_uuid === callUuid)
      } else {
        expect(codes('caller')).toEqual(['call.invited', 'no_answer'])
        expect(codes('callee')).toEqual(['call.ringing', 'no_answer', 'CALL_INVALID_STATE'])
        expect(codes('calleeTab')).toEqual(['call.ringing', 'no_answer'])
      }
      expect(heard.callerTab).toEqual([])
    }
  })
}
