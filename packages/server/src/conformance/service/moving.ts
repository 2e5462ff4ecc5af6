/** What becomes of a call while people talk: it is held, goes on at another device, and is transferred. */
import { about, type Heard } from '../heard.ts'
import type { Party } from '../party.ts'
import type { RuleId } from '../rules.ts'
import { Stop } from '../verdicts.ts'
import { answered, connectPair, isCandidate, type Pair, sdp } from './flows.ts'
import type { Person, Scenario, Stage } from './stage.ts'

const capabilities = ['take', 'transfer'] as const

const connect = (stage: Stage) => connectPair(stage, { isExtended: true, can: capabilities })

/** The answer to a request; another service may not know it: then nothing is said of the rule. */
async function answerOf(stage: Stage, party: Party, rule: RuleId, requestId: string): Promise<Heard> {
  const heard = await party.waitFor(({ request_id }) => request_id === requestId)
  if (heard?.error?.code === 'UNKNOWN_EVENT') throw new Stop(`the service does not know what ${rule} has`)
  const isDone = heard !== undefined && heard.event !== 'call.error'
  stage.must(rule, isDone, `${party.name} asked, and got ${heard?.error?.code ?? 'no answer'}`)
  return heard as Heard
}

const hold: Scenario = {
  name: 'a call is put on hold',
  rules: ['HOLD1'],
  needs: 'extended',
  async run(stage: Stage) {
    const { caller, callee, ...pair } = await connect(stage)
    const call_uuid = await answered({ caller, callee, ...pair })
    const says = async (media: { audio: boolean; video: boolean; screen: boolean; held?: boolean }) => {
      caller.ask('call.media', { call_uuid, ...media })
      return (await callee.next('HOLD1', 'call.media', about(call_uuid))).data
    }
    const silent = { audio: false, video: false, screen: false }
    const held = await says({ ...silent, held: true })
    stage.check('HOLD1', held.held === true, `a call that is put on hold came with held ${held.held}`)
    const resumed = await says({ ...silent, audio: true, held: false })
    stage.check('HOLD1', resumed.held === false, `a call that goes on came with held ${resumed.held}`)
    const plain = await says({ ...silent, audio: true })
    stage.check('HOLD1', !('held' in plain), 'held was passed on, and the client had not sent it')
  },
}

const taken: Scenario = {
  name: 'another device of the callee takes the call',
  rules: ['TAKE1'],
  needs: 'extended',
  async run(stage: Stage) {
    const pair = await connect(stage)
    const call_uuid = await answered(pair)
    const tablet = { isExtended: true, can: capabilities, device: 'kit-tablet', as: 'tablet' }
    const { party: taker, hello } = await stage.enter(pair.ben, tablet)
    const shown = hello.data.active_calls.find((call: { call_uuid: string }) => call.call_uuid === call_uuid)
    const take = taker.ask('call.take', { call_uuid })
    await answerOf(stage, taker, 'TAKE1', take)
    stage.check('TAKE1', shown?.elsewhere === true, 'active_calls does not say that the call is at another device')
    const { data } = await pair.callee.next('TAKE1', 'call.cancelled', about(call_uuid))
    const isTaken = data.reason === 'taken_elsewhere' && data.ended_at === null
    stage.check('TAKE1', isTaken, `the former device was told ${data.reason}, ended_at ${data.ended_at}`)
    await pair.caller.next('TAKE1', 'call.peer_moved', about(call_uuid))
    await pair.caller.next('TAKE1', 'call.accepted', about(call_uuid))
    pair.caller.ask('webrtc.offer', { call_uuid, sdp: sdp('offer', 'taken') })
    await taker.next('TAKE1', 'webrtc.offer', about(call_uuid))
    const late = pair.callee.ask('webrtc.answer', { call_uuid, sdp: sdp('answer', 'late') })
    const { error } = await pair.callee.error('TAKE1', late)
    stage.check('TAKE1', error?.code === 'CALL_NOT_PARTICIPANT', `the former device that answers got ${error?.code}`)
    await pair.callee.settle()
    const isLeft = pair.callee.hasUnread((heard) => heard.event === 'webrtc.offer' || isCandidate(call_uuid)(heard))
    stage.check('TAKE1', !isLeft, 'a relay still went to the former device')
    taker.ask('call.end', { call_uuid })
    await pair.caller.next('END2', 'call.ended', about(call_uuid))
  },
}

/** In the call that goes on, the caller offers to the other side, which then hangs up. */
async function goOn(rule: RuleId, caller: Party, other: Party, call_uuid: string): Promise<void> {
  caller.ask('webrtc.offer', { call_uuid, sdp: sdp('offer', 'goes-on') })
  await other.next(rule, 'webrtc.offer', about(call_uuid))
  other.ask('call.end', { call_uuid })
  await caller.next('END2', 'call.ended', about(call_uuid))
}

/** Of a call that its callee hands on. */
interface HandedOn {
  readonly pair: Pair
  readonly target: Party
  readonly first: string
  readonly second: string
}

async function handOn(stage: Stage): Promise<HandedOn> {
  const pair = await connect(stage)
  const eve: Person = stage.person('target', 'caller')
  const { party: target } = await stage.enter(eve, { isExtended: true })
  const first = await answered(pair)
  const { user_id: to_user_id, role: to_role } = eve.who
  const asked = pair.callee.ask('call.transfer', { call_uuid: first, to_user_id, to_role })
  const { data } = await answerOf(stage, pair.callee, 'XFER1', asked)
  const second = data.new_call_uuid
  const told = (await pair.caller.next('XFER1', 'call.transferring', about(first))).data
  const isTold = told.new_call_uuid === second && told.to?.user_id === to_user_id && told.status === 'ringing'
  stage.check('XFER1', isTold, 'call.transferring does not name the new call and its target')
  const rung = (await target.next('XFER1', 'call.ringing', about(second))).data
  const { user_id } = pair.ben.who
  const isRung = rung.transferred_from === first && rung.transferred_by?.user_id === user_id
  stage.check('XFER1', isRung, 'call.ringing does not say who transferred which call')
  stage.check('XFER1', rung.caller_user_id === pair.ann.who.user_id, 'the caller is not the side that is handed on')
  return { pair, target, first, second }
}

const transferred: Scenario = {
  name: 'a call is transferred, and the target answers',
  rules: ['XFER1'],
  needs: 'extended',
  async run(stage: Stage) {
    const { pair, target, first, second } = await handOn(stage)
    target.ask('call.accept', { call_uuid: second })
    for (const party of [pair.caller, pair.callee]) {
      const { data } = await party.next('XFER1', 'call.ended', about(first))
      stage.check('XFER1', data.reason === 'transferred', `the first call ended as ${data.reason}`)
    }
    const told = pair.caller.all.map(({ event, data }) => `${event} ${data?.call_uuid}`)
    const at = told.indexOf(`call.accepted ${second}`)
    stage.check('XFER1', at >= 0, 'the side that is handed on was not told that the target answered')
    stage.check(
      'XFER1',
      at < told.indexOf(`call.ended ${first}`),
      'the first call ended before the new one was answered',
    )
    await goOn('XFER1', pair.caller, target, second)
  },
}

const declined: Scenario = {
  name: 'a call is transferred, and the target declines',
  rules: ['XFER1'],
  needs: 'extended',
  async run(stage: Stage) {
    const { pair, target, first, second } = await handOn(stage)
    target.ask('call.reject', { call_uuid: second })
    for (const party of [pair.caller, pair.callee]) {
      const { data } = await party.next('XFER1', 'call.transfer_failed', about(first))
      const isSaid = data.new_call_uuid === second && data.status === 'rejected'
      stage.check('XFER1', isSaid, `a transfer that was declined failed with ${data.status}`)
    }
    await goOn('XFER1', pair.callee, pair.caller, first)
  },
}

const consulted: Scenario = {
  name: 'two calls of one person become one',
  rules: ['XFER1'],
  needs: 'extended',
  async run(stage: Stage) {
    const pair = await connect(stage)
    const eve = stage.person('target', 'caller')
    const { party: target } = await stage.enter(eve, { isExtended: true, can: capabilities })
    const first = await answered(pair)
    const second = await answered({ ...pair, caller: pair.callee, callee: target, ann: pair.ben, ben: eve })
    const asked = pair.callee.ask('call.transfer', { call_uuid: first, to_call_uuid: second })
    const { data } = await answerOf(stage, pair.callee, 'XFER1', asked)
    const call_uuid = data.new_call_uuid
    for (const [party, former, direction] of [
      [pair.caller, first, 'outgoing'],
      [target, second, 'incoming'],
    ] as const) {
      const told = (await party.next('XFER1', 'call.transferring', about(former))).data
      const isTold = told.new_call_uuid === call_uuid && told.status === 'accepted' && told.direction === direction
      stage.check('XFER1', isTold, `${party.name} was not told which call it is in`)
      const ended = (await party.next('XFER1', 'call.ended', about(former))).data
      stage.check('XFER1', ended.reason === 'transferred', `a former call ended as ${ended.reason}`)
    }
    await goOn('XFER1', pair.caller, target, call_uuid)
  },
}

export const movingScenarios: readonly Scenario[] = [hold, taken, transferred, declined, consulted]
