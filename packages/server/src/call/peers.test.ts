import { expect, test } from 'bun:test'
import {
  actorOf,
  alice,
  aliceOne,
  answeredCall,
  bob,
  bobOne,
  durations,
  heldBy,
  leftBy,
  overCall,
  ringingCall,
  start,
} from './call.fixture.ts'
import type { AnsweredCall, Call } from './call.ts'
import type { CallCommand } from './command.ts'
import { decide } from './decide.ts'
import { absenceOf } from './peers.ts'

/** What a side hears of the other's absence [PEER1]. */

const now = start + 10_000
const { callerLostMs, peerLostMs } = durations
const iso = (at: number) => new Date(at).toISOString()
const news = (call: Call, command: CallCommand, outages = durations.outages ?? []) =>
  decide(call, command, now, { ...durations, outages }).steps.flatMap(({ event }) => event.peers ?? [])
const away = (to: 'caller' | 'callee', since: number, until: number) => ({
  ...{ to, event: 'call.peer_away' },
  data: { call_uuid: answeredCall().callUuid, since: iso(since), ends_at: iso(until) },
})
const back = (to: 'caller' | 'callee') => ({
  to,
  event: 'call.peer_back',
  data: { call_uuid: answeredCall().callUuid },
})
const lose = (closed: boolean): CallCommand => ({ type: 'lose', sessionId: 'b-1', node: bobOne.node, closed })
const arrive: CallCommand = { type: 'arrive', actor: aliceOne }
const without = (at: number, closed = false): Partial<AnsweredCall> => ({
  callerPlace: leftBy(aliceOne, at, true, closed),
})

test('[PEER1] a loss and a return are told to the other side, and nothing of a call that rings or is over', () => {
  expect(news(answeredCall(), lose(false))).toEqual([away('caller', now, now + peerLostMs)] as never)
  expect(news(answeredCall(without(now - 1)), arrive)).toEqual([back('callee')] as never)
  const taker: CallCommand = { type: 'connected', actor: actorOf(alice, 'a-3', 'phone') }
  expect(news(answeredCall(without(now - 1)), taker)).toEqual([back('callee')] as never)
  expect(news(ringingCall(), { type: 'lose', sessionId: 'a-1', node: aliceOne.node })).toEqual([])
  expect(news(answeredCall(without(now - 1)), { type: 'end', actor: bobOne, reason: null })).toEqual([])
  for (const call of [ringingCall(), overCall(), answeredCall()])
    expect(absenceOf(call, 'caller', durations)).toBeUndefined()
})

test('[PEER1] who answers a caller that is away hears of that', () => {
  const call = ringingCall({ callerPlace: leftBy(aliceOne, now - 3_000) })
  const told = [away('callee', now - 3_000, now - 3_000 + peerLostMs)]
  expect(news(call, { type: 'accept', actor: bobOne })).toEqual(told as never)
})

test('[PEER1] who takes a place hears of an absence that the session before it was told of; who comes back does not', () => {
  const gone = { callerPlace: leftBy(aliceOne, now - 8_000) }
  const told = [away('callee', now - 8_000, now - 8_000 + peerLostMs)]
  const vacant = answeredCall({ ...gone, calleePlace: leftBy(bobOne, now - 6_000) })
  const bobNew = actorOf(bob, 'b-9', 'phone')
  for (const taker of [bobNew, actorOf(bob, 'b-8', bobOne.deviceId)])
    expect(news(vacant, { type: 'relay', actor: taker })).toEqual([...told, back('caller')] as never)
  expect(news(vacant, { type: 'arrive', actor: bobOne })).toEqual([back('caller')] as never)
  // A place that was held all the time passes on as well.
  const lent = answeredCall({ ...gone, calleePlace: { ...heldBy(bobOne), settled: false } })
  const same = actorOf(bob, 'b-7', bobOne.deviceId)
  expect(news(lent, { type: 'relay', actor: same })).toEqual(told as never)
})

test('[PEER1] [END5] the second who closes has the shorter time, and the whole one for who comes back to it', () => {
  const closed = answeredCall(without(now - 5_000, true))
  expect(news(closed, lose(true))).toEqual([away('caller', now, now + callerLostMs)] as never)
  expect(news(closed, lose(false))).toEqual([away('caller', now, now + peerLostMs)] as never)
  // If both closed at the same instant, neither side gets the notice again: nobody is there.
  expect(news(answeredCall(without(now, true)), lose(true))).toEqual([away('caller', now, now + callerLostMs)] as never)
  const both = (callee: number) =>
    answeredCall({ ...without(now - 5_000, true), calleePlace: leftBy(bobOne, callee, true, true) })
  expect(news(both(now - 2_000), arrive)).toEqual([
    back('callee'),
    away('caller', now - 2_000, now - 2_000 + peerLostMs),
  ] as never)
  // It heard of the other one's absence when that had its whole time.
  expect(news(both(now - 9_000), arrive)).toEqual([back('callee')] as never)
})

test('[PEER1] [END3] an outage moves the end; a restart begins every absence anew', () => {
  const outages = [{ from: now - 2_000, to: now - 1_000 }]
  const call = answeredCall(without(now - 5_000))
  expect(absenceOf(call, 'caller', { ...durations, outages })).toEqual({
    since: iso(now - 5_000),
    ends_at: iso(now - 1_000 + peerLostMs),
  })
  expect(news(call, { type: 'restart', nodes: [bobOne.node] })).toEqual([
    away('callee', now, now + peerLostMs),
  ] as never)
})

test('[PEER1] a client that was told to come back is away when its time for that is over, and not before', () => {
  const told = answeredCall({ callerPlace: leftBy(aliceOne, now - 1_100, true, false, 1_101) })
  const lost: CallCommand = { type: 'lose', sessionId: 'b-1', node: bobOne.node, awaitedMs: 1_100 }
  expect(news(answeredCall(), lost)).toEqual([])
  expect(absenceOf(told, 'caller', durations)).toBeUndefined()
  expect(news(told, { type: 'time' })).toEqual([])
  expect(news(told, arrive)).toEqual([])
  const late = answeredCall({ callerPlace: leftBy(aliceOne, now - 1_101, true, false, 1_101) })
  expect(news(late, { type: 'time' })).toEqual([away('callee', now - 1_101, now - 1_101 + peerLostMs)] as never)
  // A session that answers, or takes the other place, hears nothing of it before.
  const ringing = ringingCall({ callerPlace: leftBy(aliceOne, now - 1_000, true, false, 1_100) })
  expect(news(ringing, { type: 'accept', actor: bobOne })).toEqual([])
  const both = answeredCall({
    callerPlace: leftBy(aliceOne, now - 1_000, true, false, 1_100),
    calleePlace: leftBy(bobOne, now - 1_000, true, false, 1_100),
  })
  expect(news(both, arrive)).toEqual([])
  // The service starts again: the time begins anew with the absence.
  expect(news(told, { type: 'restart', nodes: [bobOne.node] })).toEqual([])
})
