/** What goes between the two sides: when, and unchanged. */
import { about } from '../heard.ts'
import { answered, candidate, candidateNumbers, connectPair, ring, sdp } from './flows.ts'
import type { Scenario, Stage } from './stage.ts'

const early: Scenario = {
  name: 'the caller offers before the accept',
  rules: ['REL2', 'REL1', 'ORD2'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const { party: tablet } = await stage.enter(pair.ben, { device: 'kit-tablet', as: 'tablet' })
    const call_uuid = await ring(pair)
    pair.caller.send('webrtc.offer', { call_uuid, sdp: sdp('offer', 'early') })
    for (let n = 1; n <= 3; n++) pair.caller.send('webrtc.ice_candidate', { call_uuid, candidate: candidate(n) })
    await pair.caller.settle()
    await pair.callee.settle()
    stage.check('REL2', !pair.callee.hasUnread(({ event }) => event.startsWith('webrtc.')), 'it came before the accept')
    pair.callee.send('call.accept', { call_uuid })
    await pair.callee.next('REL2', 'webrtc.offer', about(call_uuid))
    await pair.callee.next('REL2', 'webrtc.ice_candidate', ({ data }) =>
      data.candidate?.candidate.startsWith('candidate:3 '),
    )
    const came = candidateNumbers(pair.callee, call_uuid).join(' ')
    stage.check('ORD2', came === '1 2 3', `what waited came as ${came}`)
    await tablet.settle()
    stage.check('REL1', !tablet.all.some(({ event }) => event.startsWith('webrtc.')), 'another device got a relay')
  },
}

const unchanged: Scenario = {
  name: 'relayed JSON',
  rules: ['REL3', 'REL4', 'ENV3'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const call_uuid = await answered(pair)
    const inner = '{"candidate":"","sdpMid":null,"big":12345678901234567890,"text":"\\u00e9\\/"}'
    const forgedFrom = '"from_user_id":"mallory","from_role":"admin"'
    const data = `{"call_uuid":"${call_uuid.toUpperCase()}","candidate":${inner},${forgedFrom},"more":1.50}`
    pair.caller.text(`{"event":"webrtc.ice_candidate","data":${data}}`)
    const heard = await pair.callee.next('REL3', 'webrtc.ice_candidate')
    const isFrom = heard.data.from_user_id === pair.ann.who.user_id && heard.data.from_role === pair.ann.who.role
    stage.check('REL3', isFrom, 'a sender can forge from_user_id')
    stage.check('REL4', heard.data.call_uuid === call_uuid, 'call_uuid is not in lower case')
    const text = pair.callee.texts.at(-1) ?? ''
    stage.check('REL4', text.includes('12345678901234567890'), 'a long number was written anew')
    stage.check('REL4', text.includes('"more":1.50'), 'a number, or a field of the sender, was changed')
    const twice = `{"call_uuid":"${call_uuid}","candidate":{"candidate":"a","candidate":"b"}}`
    pair.caller.text(`{"event":"webrtc.ice_candidate","request_id":"twice","data":${twice}}`)
    const { error } = await pair.caller.error('REL4', 'twice')
    stage.check('REL4', error?.code === 'INVALID_PAYLOAD', `a key that is named twice got ${error?.code}`)
    pair.caller.send('webrtc.offer', { call_uuid, sdp: { type: 'answer', sdp: '-' } }, 'type')
    const wrong = (await pair.caller.error('ENV3', 'type')).error
    stage.check('ENV3', wrong?.code === 'INVALID_PAYLOAD', `an offer of type answer got ${wrong?.code}`)
  },
}

export const relayScenarios: readonly Scenario[] = [early, unchanged]
