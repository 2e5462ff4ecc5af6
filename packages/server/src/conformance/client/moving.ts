/** What a client does with a call that another device takes, or that its peer hands on. */
import { about, type Heard } from '../heard.ts'
import type { Party } from '../party.ts'
import { Stop } from '../verdicts.ts'
import { answeredByClient, type ClientScenario, type ClientStage, finish, hangsUp, says } from './stage.ts'
import type { Said } from './subject.ts'

/** What the kit asks for has to work: it is nothing of the client's. */
async function asked(party: Party, event: string, data: object): Promise<Heard> {
  const id = party.ask(event, data)
  const heard = await party.waitFor(({ request_id }) => request_id === id)
  if (heard === undefined || heard.event === 'call.error')
    throw new Stop(`the service answered ${event} with ${heard?.error?.code ?? 'nothing'}`)
  return heard
}

const taken: ClientScenario = {
  name: 'another device of the user takes its call',
  rules: ['TAKE1'],
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer()
    const other = await stage.otherDevice(['take'])
    const call_uuid = await answeredByClient(stage, peer)
    const from = stage.subject.said.length
    await asked(other, 'call.take', { call_uuid })
    await stage.hears(['call.cancelled'], call_uuid)
    const acts = (it: Said) => hangsUp(it) || says('call.accept')(it)
    const said = await stage.subject.until(() => stage.subject.said.slice(from).find(acts), 1_500)
    stage.check('TAKE1', said === undefined, `another device has taken the call, and it sent ${said?.event}`)
    await finish(stage, peer, call_uuid)
  },
}

const transferred: ClientScenario = {
  name: 'its peer transfers the call',
  rules: ['XFER1', 'END1'],
  needs: 'transfer',
  async run(stage: ClientStage) {
    await stage.online()
    const peer = await stage.peer(['transfer'])
    const { party: target, who } = await stage.target()
    const first = await answeredByClient(stage, peer)
    const to = { to_user_id: who.user_id, to_role: who.role }
    const { data } = await asked(peer, 'call.transfer', { call_uuid: first, ...to })
    const second = data.new_call_uuid
    await target.next('RING2', 'call.ringing', about(second))
    target.send('call.accept', { call_uuid: second })
    await stage.hears(['call.accepted'], second)
    await stage.hears(['call.ended'], first)
    const offer = await target.waitFor(({ event }) => event === 'webrtc.offer')
    stage.check('XFER1', offer?.data.call_uuid === second, 'the target answered, and it made no offer in the new call')
    const end = await stage.has('hang_up', hangsUp)
    stage.check('XFER1', end.data.call_uuid === second, 'it hung up, and did not name the call that it was handed to')
    const ended = await target.waitFor((heard) => heard.event === 'call.ended' && about(second)(heard))
    stage.check('END1', ended !== undefined, 'the peer did not hear that it hung up')
  },
}

export const clientMovingScenarios: readonly ClientScenario[] = [taken, transferred]
