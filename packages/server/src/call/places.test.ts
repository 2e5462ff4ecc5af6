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
  onNode,
  overCall,
  ringingCall,
  start,
  uuidOf,
} from './call.fixture.ts'
import { type AnsweredCall, type Call, nextDeadline, type Place } from './call.ts'
import type { Actor, CallCommand } from './command.ts'
import { decide } from './decide.ts'

/** Who holds a place, who may take it, and what a loss and a restart make of it. */

const now = start + 10_000
const ask = (call: Call | undefined, command: CallCommand, at = now) => decide(call, command, at, durations)
const verb = (type: 'accept' | 'connected' | 'relay' | 'arrive', actor: Actor): CallCommand => ({ type, actor })
const end = (actor: Actor): CallCommand => ({ type: 'end', actor, reason: null })
const cancel = (actor: Actor): CallCommand => ({ type: 'cancel', actor, reason: null })

const aliceTablet = actorOf(alice, 'a-2', 'tablet')
const bobMobile = actorOf(bob, 'b-2', 'mobile')

/** The end of a call and the receivers of it. */
const ended = ({ steps }: ReturnType<typeof ask>) =>
  steps.map(({ call, event }) => [call.status, event.notices.map(({ to, event: name }) => `${name} to ${to.place}`)])
const refusal = (decision: ReturnType<typeof ask>) => (decision.ok ? undefined : decision.code)

test('[EXT6] a place says what its holder listed, also where that is another list after a resume', () => {
  const able: Actor = { ...aliceOne, can: ['take'] }
  const settled = ask(answeredCall({ callerPlace: leftBy(aliceOne, now) }), verb('relay', able))
  expect(settled.ok && settled.call.callerPlace.can).toEqual(['take'])
  const unable = ask(answeredCall({ callerPlace: leftBy(able, now) }), verb('relay', aliceOne))
  expect(unable.ok && 'can' in unable.call.callerPlace).toBe(false)
  const lists = [undefined, ['take'], ['group'], ['take', 'group']] as const
  for (const before of lists) {
    for (const after of lists) {
      const callerPlace = { ...heldBy(aliceOne), ...(before && { can: before }) }
      for (const type of ['arrive', 'relay'] as const) {
        const decision = ask(answeredCall({ callerPlace }), verb(type, { ...aliceOne, ...(after && { can: after }) }))
        expect(decision.ok && decision.call.callerPlace.can).toEqual(after as never)
        expect(decision.steps).toHaveLength(before === after ? 0 : 1)
      }
    }
  }
})

test('[PLACE3] a held place is never taken, and who is without it ends nothing', () => {
  for (const command of [
    verb('relay', aliceTablet),
    end(aliceTablet),
    cancel(aliceTablet),
    verb('connected', bobMobile),
    end(bobMobile),
  ]) {
    expect(refusal(ask(answeredCall(), command))).toBe('CALL_NOT_PARTICIPANT')
  }
  expect(ask(answeredCall(), verb('arrive', actorOf(alice, 'a-9', 'phone'))).steps).toEqual([])
})

test('[PLACE2] what a client sent before its socket closed takes effect for its device, and takes no place', () => {
  const gone = (type: 'accept' | 'connected' | 'relay', actor: Actor): CallCommand => ({ type, actor, isGone: true })
  const newTab = actorOf(bob, 'b-3', bobOne.deviceId ?? '')
  for (const calleePlace of [leftBy(bobOne, now), heldBy(newTab, false)]) {
    const call = answeredCall({ calleePlace })
    for (const type of ['relay', 'accept'] as const)
      expect(ask(call, gone(type, bobOne))).toEqual({ ok: true, call, steps: [] })
    const connected = ask(call, gone('connected', bobOne))
    expect(connected.ok && connected.call).toMatchObject({ status: 'connected', calleePlace })
    const again = answeredCall({ status: 'connected', calleePlace })
    expect(ask(again, gone('connected', bobOne))).toEqual({ ok: true, call: again, steps: [] })
  }
  // Its place is another session's that has spoken, or another device's.
  expect(refusal(ask(answeredCall({ calleePlace: heldBy(newTab) }), gone('relay', bobOne)))).toBe(
    'CALL_NOT_PARTICIPANT',
  )
  const left = answeredCall({ calleePlace: leftBy(bobMobile, now - 5_000) })
  const details = { retry_after_ms: 0 }
  expect(ask(left, gone('relay', bobOne))).toMatchObject({ code: 'CALL_NOT_PARTICIPANT', details })
  expect(ask(left, gone('accept', bobOne))).toMatchObject({ code: 'CALL_ALREADY_ANSWERED', details })
  // A client that resumes reads this reply, and may ask again at once.
  const late = answeredCall({ calleePlace: leftBy(bobMobile, now - 5_001) })
  expect(ask(late, gone('relay', bobOne))).toMatchObject({ ok: false, details: { retry_after_ms: 0 } })
})

test('[PLACE2] who names the call takes a vacant place: its device at once, another one when it is vacant for 5 s', () => {
  const secondTab = actorOf(alice, 'a-3', 'phone')
  for (const [actor, left] of [
    [secondTab, now],
    [aliceTablet, now - 5_000],
  ] as const) {
    const call = answeredCall({ callerPlace: leftBy(aliceOne, left) })
    const decision = ask(call, verb('relay', actor))
    expect(decision.ok && decision.call.callerPlace).toEqual(heldBy(actor))
    expect(decision.steps[0]?.event).toMatchObject({
      type: 'place_taken',
      by: { sessionId: actor.sessionId },
      notices: [],
    })
    expect(ended(ask(call, end(actor)))).toEqual([['ended', ['call.ended to callee']]])
  }
})

test('[PLACE2] another device that names the call too early has no place, and is told when it may have it', () => {
  const left = answeredCall({ callerPlace: leftBy(aliceOne, now - 1), calleePlace: leftBy(bobOne, now - 4_999) })
  for (const command of [verb('relay', aliceTablet), end(aliceTablet), cancel(aliceTablet)]) {
    expect(ask(left, command)).toEqual({
      ...{ ok: false, code: 'CALL_NOT_PARTICIPANT', details: { retry_after_ms: 4_999 }, steps: [] },
    })
  }
  const late = { ok: false, code: 'CALL_ALREADY_ANSWERED', details: { retry_after_ms: 1 } }
  expect(ask(left, verb('accept', bobMobile))).toMatchObject(late)
  expect(ask(answeredCall(), verb('accept', bobMobile))).toMatchObject({ ...late, details: {} })
})

test('[PLACE2] who connects with the device of the holder, or with none as it had none, takes the place', () => {
  const phone = answeredCall({ callerPlace: leftBy(aliceOne, start + 6_000) })
  const back = ask(phone, verb('arrive', actorOf(alice, 'a-3', 'phone')))
  expect(back.ok && back.call.callerPlace).toMatchObject({ state: 'held', sessionId: 'a-3', settled: false })
  expect(ask(phone, verb('arrive', aliceTablet)).steps).toEqual([])
  expect(ask(phone, verb('arrive', actorOf(alice, 'a-4'))).steps).toEqual([])
  const nameless = answeredCall({ callerPlace: leftBy(actorOf(alice, 'a-1'), start + 6_000) })
  expect(ask(nameless, verb('arrive', actorOf(alice, 'a-4'))).steps).toHaveLength(1)
  expect(ask(nameless, verb('arrive', aliceTablet)).steps).toEqual([])
})

test('[PLACE2] [RES1] the session that left comes back to its place as it had it, whoever else waits', () => {
  for (const settled of [true, false]) {
    const call = answeredCall({ callerPlace: leftBy(aliceOne, start + 6_000, settled) })
    const back = ask(call, verb('arrive', aliceOne))
    expect(back.ok && back.call.callerPlace).toEqual(heldBy(aliceOne, settled))
    expect(back.steps[0]?.event).toMatchObject({ type: 'place_taken', notices: [] })
  }
  const taken = answeredCall({ callerPlace: heldBy(aliceTablet) })
  expect(ask(taken, verb('arrive', aliceOne)).steps).toEqual([])
})

test('[PLACE2] [RES2] a new session that names the one that left has its place for good, on the same device', () => {
  const call = answeredCall({ callerPlace: leftBy(aliceOne, start + 6_000, false) })
  const arrive = (actor: Actor, resumes: string) => ask(call, { type: 'arrive', actor, resumes })
  const phone = actorOf(alice, 'a-3', 'phone')
  const named = arrive(phone, 'a-1')
  expect(named.ok && named.call.callerPlace).toEqual(heldBy(phone))
  expect(refusal(ask(named.ok ? named.call : undefined, verb('relay', aliceTablet)))).toBe('CALL_NOT_PARTICIPANT')
  const other = arrive(phone, 'a-7')
  expect(other.ok && other.call.callerPlace).toEqual(heldBy(phone, false))
  expect(arrive(aliceTablet, 'a-1').steps).toEqual([])
  expect(arrive(actorOf(alice, 'a-4'), 'a-1').steps).toEqual([])
  const held: CallCommand = { type: 'arrive', actor: phone, resumes: 'a-1' }
  expect(ask(answeredCall(), held).steps).toEqual([])
})

test('[PLACE2] [RES1] a session that resumes has its place back from one that has only connected since', () => {
  const stray = actorOf(alice, 'a-3', 'phone')
  const resume = (callerPlace: Place, had: 'settled' | 'unsettled', actor = aliceOne) =>
    ask(answeredCall({ callerPlace }), { type: 'arrive', actor, had })
  for (const place of [heldBy(stray, false), leftBy(stray, start + 6_000, false)]) {
    for (const had of ['settled', 'unsettled'] as const) {
      const back = resume(place, had)
      expect(back.ok && back.call.callerPlace).toEqual(heldBy(aliceOne, had === 'settled'))
      expect(back.steps[0]?.event.moved).toMatchObject([{ side: 'caller', from: 'a-3' }])
    }
    expect(resume(place, 'settled', aliceTablet).steps).toEqual([])
  }
  for (const place of [heldBy(stray), leftBy(stray, start + 6_000)]) expect(resume(place, 'settled').steps).toEqual([])
  expect(resume(heldBy(aliceOne, false), 'unsettled').steps).toEqual([])
})

test('[PLACE2] a place taken by connecting passes on until its holder has spoken', () => {
  const call = answeredCall({ callerPlace: heldBy(actorOf(alice, 'a-3', 'phone'), false) })
  const passed = ask(call, verb('relay', aliceOne))
  expect(passed.ok && passed.call.callerPlace).toEqual(heldBy(aliceOne))
  // Its holder is there: another device has no claim.
  expect(refusal(ask(call, verb('relay', aliceTablet)))).toBe('CALL_NOT_PARTICIPANT')
  const spoken = ask(call, verb('relay', actorOf(alice, 'a-3', 'phone')))
  expect(spoken.steps[0]?.event.type).toBe('place_settled')
  expect(refusal(ask(spoken.ok ? spoken.call : undefined, verb('relay', aliceOne)))).toBe('CALL_NOT_PARTICIPANT')
})

test('[PLACE2] what waited for a place passes on with it, in every step that gives it to another session', () => {
  const left = answeredCall({ callerPlace: leftBy(aliceOne, start + 5_000) })
  const phone = actorOf(alice, 'a-3', 'phone')
  const fromOne = { side: 'caller', from: 'a-1', lost: true } as const
  // Another device: the session that left will hear so.
  const fromPhone = { ...fromOne, leftDevice: 'phone' } as const
  for (const command of [verb('relay', phone), verb('arrive', phone), end(phone)]) {
    expect(ask(left, command).steps.map(({ event }) => event.moved)).toEqual([[fromOne]])
  }
  for (const command of [verb('relay', aliceTablet), verb('connected', aliceTablet), cancel(aliceTablet)]) {
    const { steps } = ask(left, command)
    expect(steps[0]?.call.callerPlace).toEqual(heldBy(aliceTablet))
    expect(steps[0]?.event.moved).toEqual([fromPhone])
  }
  const nameless = answeredCall({ callerPlace: leftBy(actorOf(alice, 'a-1'), start + 5_000) })
  expect(ask(nameless, end(aliceTablet)).steps[0]?.event.moved).toEqual([{ ...fromOne, leftDevice: null }])
  const returned = answeredCall({ calleePlace: heldBy(bobMobile, false) })
  const tab = actorOf(bob, 'b-3', bobMobile.deviceId)
  expect(ask(returned, verb('accept', tab)).steps[0]?.event.moved).toEqual([{ side: 'callee', from: 'b-2' }])
})

test('[PLACE2] nothing passes on where a place begins, or its session stays', () => {
  const left = answeredCall({ callerPlace: leftBy(aliceOne, start + 6_000) })
  for (const decision of [
    ask(ringingCall(), verb('accept', bobOne)),
    ask(left, verb('arrive', aliceOne)),
    ask(left, verb('connected', bobOne)),
    ask(answeredCall(), end(aliceOne)),
    ask(answeredCall(), verb('relay', onNode(aliceOne, 'elsewhere'))),
    ask(answeredCall(), { type: 'lose', sessionId: 'a-1', node: aliceOne.node }),
    ask(left, { type: 'time' }, start + 200_000),
  ]) {
    expect(decision.steps).toHaveLength(1)
    expect(decision.steps[0]?.event).not.toHaveProperty('moved')
  }
})

test('[PLACE1] [RES1] a session that comes back on another node has its place there, whether or not it was lost', () => {
  const there = onNode(aliceOne, 'elsewhere')
  for (const settled of [true, false]) {
    for (const callerPlace of [heldBy(aliceOne, settled), leftBy(aliceOne, start + 6_000, settled)]) {
      const back = ask(answeredCall({ callerPlace }), verb('arrive', there))
      expect(back.ok && back.call.callerPlace).toEqual(heldBy(there, settled))
      expect(back.steps[0]?.event.type).toBe('place_taken')
    }
  }
  expect(ask(answeredCall(), verb('arrive', aliceOne)).steps).toEqual([])
  expect(ask(answeredCall(), verb('arrive', actorOf(alice, 'a-3', 'phone'))).steps).toEqual([])
  const spoken = ask(answeredCall(), verb('relay', there))
  expect(spoken.ok && spoken.call.callerPlace).toEqual(heldBy(there))
})

test('[END3] the node that a session left does not lose the place that it has on another', () => {
  const call = answeredCall({ callerPlace: heldBy(onNode(aliceOne, 'elsewhere')) })
  expect(ask(call, { type: 'lose', sessionId: 'a-1', node: aliceOne.node }).steps).toEqual([])
  const lost = ask(call, { type: 'lose', sessionId: 'a-1', node: 'elsewhere' })
  expect(lost.ok && lost.call.callerPlace).toMatchObject({ state: 'vacant', node: 'elsewhere', since: now })
})

test('[END3] a loss starts the clock of the place that the session held, and of nothing else', () => {
  const decision = ask(answeredCall(), { type: 'lose', sessionId: 'a-1', node: aliceOne.node })
  expect(decision.ok && decision.call).toMatchObject({
    callerPlace: { state: 'vacant', since: now, sessionId: 'a-1', deviceId: 'phone' },
    calleePlace: { state: 'held' },
  })
  expect(ask(answeredCall(), { type: 'lose', sessionId: 'a-2', node: aliceOne.node }).steps).toEqual([])
  expect(ask(overCall(), { type: 'lose', sessionId: 'a-1', node: aliceOne.node }).steps).toEqual([])
})

test('[PLACE5] who takes a place whose client closed its socket needs a new offer: the caller is told of the accept again', () => {
  const told = (changes: Partial<AnsweredCall>, command: CallCommand) =>
    ask(answeredCall(changes), command).steps.flatMap(({ event }) => event.notices)
  const closed = { calleePlace: leftBy(bobOne, now - 5_000, true, true) }
  const again = [
    {
      to: { place: 'caller' },
      event: 'call.accepted',
      data: { call_uuid: uuidOf(1), status: 'accepted' },
    },
  ]
  const back = actorOf(bob, 'b-9', 'desk')
  for (const type of ['arrive', 'relay', 'accept'] as const)
    expect(told(closed, verb(type, back))).toEqual(again as never)
  expect(told(closed, verb('relay', bobMobile))).toEqual(again as never)
  const caller = { callerPlace: leftBy(aliceOne, now - 1, true, true) }
  expect(told(caller, verb('arrive', actorOf(alice, 'a-9', 'phone')))).toEqual(again as never)
  // It went on as it was, its media flows already, or it lost nothing that was sent.
  expect(told(closed, verb('arrive', bobOne))).toEqual([])
  expect(told({ ...closed, status: 'connected' }, verb('arrive', back))).toEqual([])
  expect(told({ calleePlace: leftBy(bobOne, now) }, verb('arrive', back))).toEqual([])
})

test('[END5] a loss says whether the client closed, and two who closed have hung up after the shorter time', () => {
  for (const closed of [false, true]) {
    const lost = ask(answeredCall(), { type: 'lose', sessionId: 'b-1', node: bobOne.node, closed })
    expect(lost.ok && lost.call).toMatchObject({ calleePlace: leftBy(bobOne, now, true, closed) })
  }
  const { callerLostMs, peerLostMs } = durations
  const endsAt = (caller: boolean, callee: boolean) =>
    nextDeadline(
      answeredCall({
        callerPlace: leftBy(aliceOne, start + 6_000, true, caller),
        calleePlace: leftBy(bobOne, start + 9_000, true, callee),
      }),
      durations,
    )
  expect(endsAt(true, true)).toBe(start + 9_000 + callerLostMs)
  for (const callee of [true, false]) expect(endsAt(!callee, callee)).toBe(start + 6_000 + peerLostMs)
})

test('[END3] after a restart every place is vacant and every lost clock starts in full', () => {
  const call = answeredCall({ callerPlace: leftBy(aliceOne, start + 6_000) })
  const decision = ask(call, { type: 'restart', nodes: [] }, start + 100_000)
  expect(decision.ok && decision.call).toMatchObject({
    callerPlace: { state: 'vacant', since: start + 100_000 },
    calleePlace: { state: 'vacant', since: start + 100_000 },
  })
})

test('[END3] a restart leaves who is on a node that serves', () => {
  const restarted = ask(answeredCall(), { type: 'restart', nodes: [bobOne.node] })
  expect(restarted.ok && restarted.call).toMatchObject({
    callerPlace: { state: 'vacant', since: now },
    calleePlace: heldBy(bobOne),
  })
  const both = [aliceOne.node, bobOne.node]
  expect(ask(answeredCall(), { type: 'restart', nodes: both }).steps).toEqual([])
  const waiting = answeredCall({ callerPlace: leftBy(aliceOne, start + 6_000) })
  const again = ask(waiting, { type: 'restart', nodes: both })
  expect(again.ok && again.call.callerPlace).toEqual(leftBy(aliceOne, now))
})
