/** Several devices, sockets that are lost, and invites that come again or cross. */
import { about } from '../heard.ts'
import { answered, candidate, candidateNumbers, connectPair, invite, inviteData, ring, sdp } from './flows.ts'
import type { Scenario, Stage } from './stage.ts'

const twoDevices: Scenario = {
  name: 'two devices ring, one answers',
  rules: ['PLACE1', 'PLACE3', 'END2'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const { party: tablet } = await stage.enter(pair.ben, { device: 'kit-tablet', as: 'tablet' })
    const call_uuid = await ring(pair)
    await tablet.next('RING2', 'call.ringing', about(call_uuid))
    pair.callee.send('call.accept', { call_uuid })
    await pair.caller.next('PLACE1', 'call.accepted', about(call_uuid))
    const { data } = await tablet.next('PLACE1', 'call.cancelled', about(call_uuid))
    const isElsewhere = data.reason === 'answered_elsewhere' && data.status === 'accepted' && data.ended_at === null
    stage.check('PLACE1', isElsewhere, `the other device got ${data.status}, ${data.reason}, ${data.ended_at}`)
    tablet.send('call.accept', { call_uuid }, 'late')
    const late = (await tablet.error('PLACE3', 'late')).error
    stage.check('PLACE3', late?.code === 'CALL_ALREADY_ANSWERED', `its accept got ${late?.code}`)
    tablet.send('call.end', { call_uuid }, 'end')
    const end = (await tablet.error('PLACE3', 'end')).error
    stage.check('PLACE3', end?.code === 'CALL_NOT_PARTICIPANT', `its call.end got ${end?.code}`)
    await pair.caller.settle()
    stage.check('PLACE3', !pair.caller.hasUnread(({ event }) => event === 'call.ended'), 'it ended the call')
  },
}

const declinedElsewhere: Scenario = {
  name: 'two devices ring: one is busy, one declines',
  rules: ['END2', 'PLACE1'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const { party: tablet } = await stage.enter(pair.ben, { device: 'kit-tablet', as: 'tablet' })
    const call_uuid = await ring(pair)
    await tablet.next('RING2', 'call.ringing', about(call_uuid))
    tablet.send('call.reject', { call_uuid, reason: 'busy' })
    await tablet.settle()
    await pair.caller.settle()
    stage.check('END2', !pair.caller.hasUnread(({ event }) => event === 'call.rejected'), 'busy on one device ended it')
    pair.callee.send('call.reject', { call_uuid })
    await pair.caller.next('END2', 'call.rejected', about(call_uuid))
  },
}

const awayCallee: Scenario = {
  name: 'the callee is away, and comes while it rings',
  rules: ['INV4', 'WS4', 'RING2'],
  async run(stage: Stage) {
    const ann = stage.person('caller', 'caller')
    const ben = stage.person('callee', 'callee')
    const { party: caller } = await stage.enter(ann)
    const { data } = await invite(caller, ben, {}, 'INV4')
    stage.check('INV4', data.delivered === false && data.status === 'ringing', 'delivered: false, ringing')
    const { party: callee } = await stage.enter(ben)
    const ringing = await callee.next('WS4', 'call.ringing', about(data.call_uuid))
    const left = ringing.data.ring_timeout_ms
    stage.check('RING2', left > 0 && left <= data.ring_timeout_ms, `ring_timeout_ms is ${left}: what remains`)
    callee.send('call.accept', { call_uuid: data.call_uuid })
    await caller.next('PLACE1', 'call.accepted', about(data.call_uuid))
  },
}

const lostSocket: Scenario = {
  name: 'a socket is lost in the call',
  rules: ['PLACE2', 'PLACE5', 'ORD2'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const { party: frail } = await stage.enter(pair.ben, { device: 'kit-frail', as: 'frail', answersPings: false })
    const { call_uuid } = (await invite(pair.caller, pair.ben)).data
    await frail.next('RING2', 'call.ringing', about(call_uuid))
    frail.send('call.accept', { call_uuid })
    await pair.caller.next('PLACE1', 'call.accepted', about(call_uuid))
    pair.caller.send('webrtc.offer', { call_uuid, sdp: sdp('offer', 'lost') })
    await frail.next('REL1', 'webrtc.offer', about(call_uuid))
    frail.cut()
    await frail.closed
    for (let n = 1; n <= 5; n++) pair.caller.send('webrtc.ice_candidate', { call_uuid, candidate: candidate(n) })
    await pair.caller.settle()
    const { party: back } = await stage.enter(pair.ben, { device: 'kit-frail', as: 'back' })
    const offer = await back.next('PLACE5', 'webrtc.offer', about(call_uuid))
    stage.check('PLACE5', offer.data.sdp?.sdp === sdp('offer', 'lost').sdp, 'another offer came')
    await back.next('PLACE5', 'webrtc.ice_candidate', ({ data }) =>
      data.candidate?.candidate.startsWith('candidate:5 '),
    )
    const came = candidateNumbers(back, call_uuid).join(' ')
    stage.check('ORD2', came === '1 2 3 4 5', `what waited came as ${came}`)
    back.send('webrtc.answer', { call_uuid, sdp: sdp('answer') }, 'answer')
    await pair.caller.next('PLACE2', 'webrtc.answer', about(call_uuid))
  },
}

const endedMeanwhile: Scenario = {
  name: 'the call ends while a socket is away',
  rules: ['WS4', 'END4'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const call_uuid = await answered(pair)
    pair.callee.cut()
    await pair.callee.closed
    pair.caller.send('call.end', { call_uuid })
    await pair.caller.settle()
    const { party: back } = await stage.enter(pair.ben, { device: 'kit-callee', as: 'back' })
    await back.next('WS4', 'call.ended', about(call_uuid))
    // Another device of the callee heard nothing of this call.
    const { party: tablet } = await stage.enter(pair.ben, { device: 'kit-tablet', as: 'tablet' })
    tablet.send('call.end', { call_uuid })
    await tablet.next('END4', 'call.ended', about(call_uuid))
  },
}

const repeats: Scenario = {
  name: 'the same invite again',
  rules: ['INV3', 'UUID1'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const call_uuid = crypto.randomUUID()
    const first = (await invite(pair.caller, pair.ben, { call_uuid: call_uuid.toUpperCase() })).data
    stage.check('UUID1', first.call_uuid === call_uuid, `the call_uuid came as ${first.call_uuid}`)
    await pair.callee.next('RING2', 'call.ringing', about(call_uuid))
    const again = (await invite(pair.caller, pair.ben, { call_uuid }, 'INV3')).data
    stage.check('INV3', again.call_uuid === call_uuid && again.status === 'ringing', 'the repeat is another call')
    await pair.callee.settle()
    stage.check('INV3', !pair.callee.hasUnread(({ event }) => event === 'call.ringing'), 'it rang twice')
    pair.callee.send('call.accept', { call_uuid })
    await pair.caller.next('PLACE1', 'call.accepted', about(call_uuid))
    const later = (await invite(pair.caller, pair.ben, { call_uuid }, 'INV3')).data
    stage.check('INV3', later.status === 'accepted', `the repeat of an answered call is ${later.status}`)
    pair.caller.send('call.invite', inviteData(stage.person('other', 'callee'), { call_uuid }), 'other')
    const { error } = await pair.caller.error('UUID1', 'other')
    stage.check('UUID1', error?.code === 'CALL_ID_CONFLICT', `the same call_uuid to somebody else got ${error?.code}`)
  },
}

const replaced: Scenario = {
  name: 'a new invite for something else',
  rules: ['INV7'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const first = await ring(pair)
    const second = await ring(pair, { context_type: 'kit', context_id: 'other' })
    stage.check('INV7', second !== first, 'it is the same call')
    for (const party of [pair.caller, pair.callee]) {
      const { data } = await party.next('INV7', 'call.cancelled', about(first))
      stage.check('INV7', data.reason === 'superseded', `the reason is ${data.reason}`)
    }
  },
}

const glare: Scenario = {
  name: 'two invites cross',
  rules: ['INV6'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const call_uuid = await ring(pair)
    pair.callee.send('call.invite', inviteData(pair.ann), 'crossing')
    const { error } = await pair.callee.error('INV6', 'crossing')
    stage.check('INV6', error?.code === 'CALL_GLARE', `the second invite got ${error?.code}`)
    stage.check('INV6', error?.call_uuid === call_uuid, 'the error does not name the call that waits')
    pair.callee.send('call.accept', { call_uuid })
    await pair.caller.next('INV6', 'call.accepted', about(call_uuid))
  },
}

const lostCaller: Scenario = {
  name: 'the caller is gone while it rings',
  rules: ['END3'],
  needs: 'time',
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const call_uuid = await ring(pair)
    pair.caller.cut()
    const heard = await pair.callee.waitFor(({ event }) => event === 'call.cancelled', 30_000)
    stage.must('END3', heard !== undefined, 'the ring did not end within 30 s')
    stage.check('END3', heard.data.call_uuid === call_uuid && heard.data.reason === 'caller_lost', 'caller_lost')
  },
}

export const deviceScenarios: readonly Scenario[] = [
  ...[twoDevices, declinedElsewhere, awayCallee, lostSocket, endedMeanwhile],
  ...[repeats, replaced, glare, lostCaller],
]
