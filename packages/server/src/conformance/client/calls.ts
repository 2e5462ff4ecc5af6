/** What a client does with calls. */
import { about } from '../heard.ts'
import type { Party } from '../party.ts'
import { type ClientScenario, type ClientStage, callClient, finish, hangsUp, says } from './stage.ts'
import type { Said } from './subject.ts'

/** A call that the client made, and that rings at the peer. */
async function called(stage: ClientStage, peer: Party): Promise<string> {
  await stage.has('call', says('call.invite'))
  const { data } = await peer.next('RING2', 'call.ringing')
  stage.check('INV1', data.caller_user_id === stage.client.user_id, 'it called as somebody else')
  await stage.hears(['call.invited'], data.call_uuid)
  return data.call_uuid
}

const connects: ClientScenario = {
  name: 'it connects, and ignores what it does not know',
  rules: ['WS1', 'WS6', 'ENV1', 'ENV3'],
  async run(stage: ClientStage) {
    const link = await stage.online()
    stage.must('WS6', await link.ping(10_000), 'a ping had no pong within 10 s')
    // Numbers of pushes have no room for one that is not the service's: an answer has none.
    link.toClient(JSON.stringify({ event: 'call.kit_unknown', request_id: 'kit-unknown', data: { any: [1, null] } }))
    const isThere = (await link.ping(10_000)) && link.isOpen
    stage.check('ENV3', isThere, 'an event that it does not know ended its connection')
    await stage.never('ENV3', 'it complained', ({ event }) => event === 'call.error', 300)
  },
}

const answers: ClientScenario = {
  name: 'it is called, and answers; the peer hangs up',
  rules: ['PLACE1', 'END2', 'ENV3'],
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    stage.gate.traffic = { up: () => true, down: withMore }
    const call_uuid = await callClient(stage, peer)
    const accept = await stage.has('answer', says('call.accept'))
    const isIt = String(accept.data.call_uuid).toLowerCase() === call_uuid
    stage.must('PLACE1', isIt, 'call.accept names another call')
    await peer.next('PLACE1', 'call.accepted', about(call_uuid))
    stage.check('ENV3', stage.subject.link !== undefined, 'a field that it does not know ended its connection')
    const from = stage.subject.said.length
    await finish(stage, peer, call_uuid)
    await stage.subject.until(() => false, 700)
    const late = stage.subject.said
      .slice(from)
      .find((it) => says('call.accept', call_uuid)(it) || it.event === 'call.invite')
    stage.check('END2', late === undefined, `after the end it sent ${late?.event}`)
  },
}

/** A field that no version has. */
const withMore = (text: string) => [text.replace(/"data":\{/, '"data":{"kit_unknown":{"more":[1]},')]

const declines: ClientScenario = {
  name: 'it is called, and declines',
  rules: ['END1'],
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    const call_uuid = await callClient(stage, peer)
    await stage.has('decline', hangsUp)
    const heard = await peer.waitFor(({ event, data }) => event === 'call.rejected' && data.call_uuid === call_uuid)
    stage.check('END1', heard !== undefined, 'the peer did not hear that it declined')
  },
}

const calls: ClientScenario = {
  name: 'it calls, the peer answers, it hangs up',
  rules: ['INV1', 'REL1', 'END1'],
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    const call_uuid = await called(stage, peer)
    peer.send('call.accept', { call_uuid })
    await stage.hears(['call.accepted'], call_uuid)
    const offer = await peer.waitFor(({ event }) => event === 'webrtc.offer', 1_000)
    if (offer !== undefined) {
      stage.check('REL1', offer.data.call_uuid === call_uuid, 'the offer is for another call')
      peer.send('webrtc.answer', { call_uuid, sdp: { type: 'answer', sdp: answerTo(offer.data.sdp.sdp) } })
      await peer.settle()
    }
    await stage.has('hang_up', hangsUp)
    const ended = await peer.waitFor(({ event, data }) => event === 'call.ended' && data.call_uuid === call_uuid)
    stage.check('END1', ended !== undefined, 'the peer did not hear that it hung up')
  },
}

/** One that takes whatever is offered, and sends nothing. No media connects: the kit has none. */
function answerTo(offer: string): string {
  return offer
    .split(/\r?\n/)
    .filter((line) => !/^a=(candidate|ssrc|msid|end-of-candidates)/.test(line))
    .map((line) => line.replace('a=setup:actpass', 'a=setup:active').replace('a=sendrecv', 'a=recvonly'))
    .join('\r\n')
}

const cancels: ClientScenario = {
  name: 'it calls, and gives up',
  rules: ['INV1', 'END1', 'UUID1'],
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    for (const turn of ['first', 'second']) {
      const call_uuid = await called(stage, peer)
      await stage.has('cancel', hangsUp)
      const over = await peer.waitFor(({ event, data }) => event === 'call.cancelled' && data.call_uuid === call_uuid)
      stage.must('END1', over !== undefined, `the peer did not hear that it gave up its ${turn} call`)
    }
  },
}

const elsewhere: ClientScenario = {
  name: 'another device of the user answers',
  rules: ['PLACE1'],
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    const other = await stage.otherDevice()
    stage.tell('ignore')
    const call_uuid = await callClient(stage, peer)
    other.send('call.accept', { call_uuid })
    await peer.next('PLACE1', 'call.accepted', about(call_uuid))
    await stage.hears(['call.cancelled'], call_uuid)
    const acts = (it: Said) => hangsUp(it) || says('call.accept')(it)
    await stage.never('PLACE1', 'another device has the call, and it sent', acts)
    await finish(stage, peer, call_uuid)
  },
}

const misses: ClientScenario = {
  name: 'nobody answers',
  rules: ['RING1'],
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    stage.tell('ignore')
    const call_uuid = await callClient(stage, peer, { ring_timeout_ms: 1_000 })
    await stage.hears(['call.missed'], call_uuid)
    await stage.never('RING1', 'the call is missed, and it sent', says('call.accept'))
  },
}

const twice: ClientScenario = {
  name: 'the same call rings twice',
  rules: ['PLACE5'],
  // The pushes of an extended session are numbered: none comes twice.
  needs: 'base',
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    const repeated = ['"event":"call.ringing"', '"event":"call.ended"']
    stage.gate.traffic = {
      up: () => true,
      down: (text) => (repeated.some((it) => text.includes(it)) ? [text, text] : [text]),
    }
    const call_uuid = await callClient(stage, peer)
    const isKept = await stage.never('PLACE5', 'the call rang twice, and it sent', hangsUp, 500)
    if (!isKept) return
    await stage.has('answer', says('call.accept'))
    await peer.next('PLACE1', 'call.accepted', about(call_uuid))
    await finish(stage, peer, call_uuid)
    stage.check('PLACE5', stage.subject.link !== undefined, 'an end that came twice ended its connection')
  },
}

const glare: ClientScenario = {
  name: 'its invite crosses one of the peer',
  rules: ['INV6'],
  async run(stage: ClientStage) {
    const link = await stage.online()
    const peer = await stage.peer()
    let held: string | undefined
    const hold = (text: string) => {
      if (held !== undefined || !text.includes('"call.invite"')) return true
      held = text
      return false
    }
    stage.gate.traffic = { up: hold, down: (text) => [text] }
    await stage.has('call', says('call.invite'))
    const call_uuid = await callClient(stage, peer)
    const from = stage.subject.said.length
    link.toService(held ?? '')
    const invites = () => stage.subject.said.slice(from).filter(says('call.invite')).length
    const answer = () => stage.subject.said.slice(from).find(says('call.accept', call_uuid))
    await stage.subject.until(() => answer() ?? invites() > 0, 1_000)
    stage.must('INV6', invites() === 0, 'it sent its invite again, where a call of the peer waits')
    // Some clients answer by themselves: both wanted the same.
    if (answer() === undefined) await stage.has('answer', says('call.accept', call_uuid))
    const accepted = await peer.waitFor(({ event, data }) => event === 'call.accepted' && data.call_uuid === call_uuid)
    stage.check('INV6', accepted !== undefined, 'the call that waited was not answered')
    await finish(stage, peer, call_uuid)
  },
}

export const clientCallScenarios: readonly ClientScenario[] = [
  ...[connects, answers, declines, calls, cancels, elsewhere, misses, twice, glare],
]
