/** One call between two, and the ways in which it ends. */
import { about } from '../heard.ts'
import {
  answered,
  candidate,
  candidateNumbers,
  connectPair,
  invite,
  inviteData,
  isCandidate,
  ring,
  sdp,
} from './flows.ts'
import type { Scenario, Stage } from './stage.ts'

const wholeCall: Scenario = {
  name: 'a call from the invite to the end',
  rules: ['INV2', 'RING2', 'PLACE1', 'REL3', 'ORD2', 'END2', 'ENV4'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const { caller, callee, ann, ben } = pair
    const invited = await invite(caller, ben, { call_type: 'video', context_type: 'order', context_id: '1042' })
    const { call_uuid } = invited.data
    stage.check('INV2', invited.data.status === 'ringing' && invited.data.delivered === true, 'call.invited')
    const { data } = await callee.next('RING2', 'call.ringing', about(call_uuid))
    const isAnn = data.caller_user_id === ann.who.user_id && data.caller_role === ann.who.role
    stage.check('RING2', isAnn && data.display_name === ann.who.display_name, 'call.ringing names another caller')
    const isContext = data.context_type === 'order' && data.context_id === '1042' && data.call_type === 'video'
    stage.check('RING2', isContext, 'call.ringing has not the context or the call_type of the invite')
    callee.send('call.accept', { call_uuid })
    const accepted = await caller.next('PLACE1', 'call.accepted', about(call_uuid))
    stage.check('PLACE1', accepted.data.status === 'accepted', `the status is ${accepted.data.status}`)
    caller.send('webrtc.offer', { call_uuid, sdp: sdp('offer', 'first') })
    const offer = await callee.next('REL3', 'webrtc.offer', about(call_uuid))
    stage.check('REL4', JSON.stringify(offer.data.sdp) === JSON.stringify(sdp('offer', 'first')), 'the sdp was changed')
    const isFrom = offer.data.from_user_id === ann.who.user_id && offer.data.from_role === ann.who.role
    stage.check('REL3', isFrom, 'from_user_id and from_role are not those of the caller')
    callee.send('webrtc.answer', { call_uuid, sdp: sdp('answer') })
    await caller.next('REL3', 'webrtc.answer', about(call_uuid))
    for (let n = 1; n <= 40; n++) caller.send('webrtc.ice_candidate', { call_uuid, candidate: candidate(n) })
    await callee.next('REL1', 'webrtc.ice_candidate', ({ data }) =>
      data.candidate?.candidate.startsWith('candidate:40 '),
    )
    const came = candidateNumbers(callee, call_uuid)
    stage.check(
      'ORD2',
      came.every((n, index) => n === index + 1),
      `candidates came as ${came.join(' ')}`,
    )
    caller.send('call.connected', { call_uuid })
    callee.send('call.connected', { call_uuid })
    callee.send('call.end', { call_uuid })
    const ended = await caller.next('END2', 'call.ended', about(call_uuid))
    stage.check('END2', ended.data.reason === 'hangup' && ended.data.by?.user_id === ben.who.user_id, 'why and by whom')
    caller.send('webrtc.ice_candidate', { call_uuid, candidate: candidate(99) })
    await caller.settle()
    await callee.settle()
    stage.check('REL1', !candidateNumbers(callee, call_uuid).includes(99), 'a relay passed after the end')
  },
}

const declined: Scenario = {
  name: 'declined, with a reason',
  rules: ['END2'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const first = await ring(pair)
    pair.callee.send('call.reject', { call_uuid: first })
    const plain = (await pair.caller.next('END2', 'call.rejected', about(first))).data
    stage.check('END2', plain.reason === 'declined' && plain.status === 'rejected', `${plain.status}, ${plain.reason}`)
    const second = await ring(pair)
    pair.callee.send('call.reject', { call_uuid: second, reason: 'In a Meeting' })
    const { reason, by } = (await pair.caller.next('END2', 'call.rejected', about(second))).data
    stage.check('END2', reason === 'in_a_meeting', `the reason "In a Meeting" came as ${reason}`)
    stage.check('END2', by?.user_id === pair.ben.who.user_id, 'by is not the callee')
  },
}

const cancelled: Scenario = {
  name: 'given up by the caller',
  rules: ['END2', 'END1'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const call_uuid = await ring(pair)
    pair.caller.send('call.cancel', { call_uuid })
    const { data } = await pair.callee.next('END2', 'call.cancelled', about(call_uuid))
    stage.check(
      'END2',
      data.reason === 'caller_cancelled' && data.status === 'cancelled',
      `${data.status}, ${data.reason}`,
    )
    pair.callee.send('call.accept', { call_uuid }, 'late')
    const { error } = await pair.callee.error('END1', 'late')
    stage.check('END1', error?.code === 'CALL_INVALID_STATE', `a late accept got ${error?.code}`)
    for (const event of ['call.end', 'call.reject', 'call.cancel', 'call.connected'])
      pair.callee.send(event, { call_uuid }, event)
    await pair.callee.settle()
    const isRefused = pair.callee.hasUnread(({ event }) => event === 'call.error')
    stage.check('END1', !isRefused, 'a hang-up of a call that is over was refused')
  },
}

const missed: Scenario = {
  name: 'nobody answers',
  rules: ['RING1', 'END2'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const begin = performance.now()
    const call_uuid = await ring(pair, { ring_timeout_ms: 1_500 })
    const [one] = await Promise.all(
      [pair.caller, pair.callee].map((party) => party.next('RING1', 'call.missed', about(call_uuid))),
    )
    const ms = performance.now() - begin
    stage.check('RING1', ms > 1_400, `a ring of 1.5 s was missed after ${Math.round(ms)} ms`)
    stage.check('END2', one?.data.reason === 'no_answer' && one.data.status === 'missed', 'status and reason')
    for (const party of [pair.caller, pair.callee]) await party.settle()
    const twice = [pair.caller, pair.callee].some((party) => party.hasUnread(({ event }) => event === 'call.missed'))
    stage.check('RING1', !twice, 'call.missed came twice')
  },
}

const wrongInvites: Scenario = {
  name: 'invites that are refused',
  rules: ['INV1', 'ENV5', 'ENV4'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const refused = async (data: object, code: string) => {
      const id = crypto.randomUUID()
      pair.caller.send('call.invite', data, id)
      const { error } = await pair.caller.error('INV1', id)
      stage.check('INV1', error?.code === code, `${JSON.stringify(data)} got ${error?.code}, not ${code}`)
    }
    await refused({}, 'INVALID_PAYLOAD')
    await refused({ callee_user_id: pair.ben.who.user_id }, 'INVALID_PAYLOAD')
    await refused({ ...inviteData(pair.ben), callee_role: 'kit-other-role' }, 'CALL_PEER_ROLE_NOT_ALLOWED')
    await refused(inviteData(pair.ben, { call_type: 'No Type' }), 'CALL_TYPE_INVALID')
    await refused(inviteData(pair.ben, { metadata: { text: 'x'.repeat(2_000) } }), 'PAYLOAD_TOO_LARGE')
    await pair.callee.settle()
    stage.check('INV1', !pair.callee.hasUnread(({ event }) => event === 'call.ringing'), 'a refused invite rang')
  },
}

const strangers: Scenario = {
  name: 'somebody else names the call',
  rules: ['ID1', 'ENV5', 'REL1'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const call_uuid = await answered(pair)
    // The same user_id under another role is another participant.
    const { who } = pair.ben
    const twin = { name: 'twin', who: { ...who, role: pair.ann.who.role, allowed_peer_role: who.role } }
    const { party } = await stage.enter(twin)
    for (const [event, data] of [
      ['call.end', { call_uuid }],
      ['call.accept', { call_uuid }],
      ['webrtc.ice_candidate', { call_uuid, candidate: candidate(1) }],
    ] as const) {
      party.send(event, data, event)
      const { error } = await party.error('ENV5', event)
      stage.check('ENV5', error?.code === 'CALL_NOT_FOUND', `a stranger's ${event} got ${error?.code}`)
    }
    await pair.callee.settle()
    stage.check('ID1', !pair.callee.hasUnread(isCandidate(call_uuid)), "a stranger's candidate was passed on")
    stage.check('ID1', !pair.callee.hasUnread(({ event }) => event === 'call.ended'), 'a stranger ended the call')
  },
}

export const callScenarios: readonly Scenario[] = [wholeCall, declined, cancelled, missed, wrongInvites, strangers]
