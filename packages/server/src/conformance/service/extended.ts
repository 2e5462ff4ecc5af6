/** Extended sessions: numbers, replies, resumes. */
import { about } from '../heard.ts'
import { Stop } from '../verdicts.ts'
import { candidate, candidateNumbers, connectPair, inviteData, type Pair, sdp } from './flows.ts'
import { type Entered, queryOf, type ResumePoint, type Scenario, type Stage } from './stage.ts'

/** A call that was answered, asked for with numbers. */
async function numberedCall(pair: Pair): Promise<string> {
  const id = pair.caller.ask('call.invite', inviteData(pair.ben))
  const { call_uuid } = (await pair.caller.next('EXT2', 'call.invited', ({ request_id }) => request_id === id)).data
  await pair.callee.next('RING2', 'call.ringing', about(call_uuid))
  await pair.callee.reply('EXT2', pair.callee.ask('call.accept', { call_uuid }))
  await pair.caller.next('PLACE1', 'call.accepted', about(call_uuid))
  return call_uuid
}

const pointOf = ({ party, hello }: Entered): ResumePoint => ({
  session_id: hello.data.session_id,
  epoch: hello.data.epoch,
  seq: party.seq,
  n: party.replied,
})

const numbered: Scenario = {
  name: 'an extended call',
  rules: ['EXT1', 'EXT2', 'EXT4', 'EXT5', 'MEDIA1', 'ORD3'],
  needs: 'extended',
  async run(stage: Stage) {
    const pair = await connectPair(stage, { isExtended: true })
    const { caller, callee } = pair
    const { data } = pair.callerHello
    const names = ['session_id', 'epoch', 'server_time']
    const isNamed = names.every((name) => typeof data[name] === 'string') && Array.isArray(data.active_calls)
    stage.must('EXT1', isNamed && data.recovered === false && data.handled === 0, 'auth.ok of a new session')
    const id = caller.ask('call.invite', inviteData(pair.ben))
    const { call_uuid } = (await caller.next('EXT2', 'call.invited', ({ request_id }) => request_id === id)).data
    await callee.next('RING2', 'call.ringing', about(call_uuid))
    await callee.reply('EXT2', callee.ask('call.alerting', { call_uuid }))
    await caller.next('EXT5', 'call.alerting', about(call_uuid))
    await callee.reply('EXT2', callee.ask('call.accept', { call_uuid }))
    const accepted = await caller.next('EXT5', 'call.accepted', about(call_uuid))
    stage.check('EXT5', accepted.data.display_name === pair.ben.who.display_name, 'who answered is not named')
    await caller.reply('EXT2', caller.ask('call.media', { call_uuid, audio: true, video: false, screen: false }))
    await callee.next('MEDIA1', 'call.media', about(call_uuid))
    await callee.reply('EXT2', callee.ask('call.connected', { call_uuid }))
    await caller.next('EXT5', 'call.status', about(call_uuid))
    caller.text(JSON.stringify({ event: 'call.end', request_id: 'gap', n: caller.n + 5, data: { call_uuid } }))
    const { error } = await caller.error('EXT4', 'gap')
    const isGap = error?.code === 'INVALID_MESSAGE' && error.expected_n === caller.n + 1
    stage.check('EXT4', isGap, `a request that skips numbers got ${error?.code}, expected_n ${error?.expected_n}`)
    caller.text(JSON.stringify({ event: 'call.end', request_id: 'old', n: caller.n, data: { call_uuid } }))
    await caller.settle()
    await callee.settle()
    stage.check('EXT4', !callee.hasUnread(({ event }) => event === 'call.ended'), 'an old number had an effect')
    await caller.reply('EXT2', caller.ask('call.end', { call_uuid }))
    await callee.next('END2', 'call.ended', about(call_uuid))
  },
}

const resumed: Scenario = {
  name: 'a resume',
  rules: ['RES1', 'EXT1', 'EXT4', 'PEER1'],
  needs: 'extended',
  async run(stage: Stage) {
    const pair = await connectPair(stage, { isExtended: true })
    const call_uuid = await numberedCall(pair)
    await pair.callee.settle()
    const point = pointOf({ party: pair.callee, hello: pair.calleeHello })
    // The effect of this one comes, and its reply is not seen: the point is from before.
    const answer = { event: 'webrtc.answer', request_id: 'unseen', n: pair.callee.n + 1 }
    pair.callee.text(JSON.stringify({ ...answer, data: { call_uuid, sdp: sdp('answer', 'once') } }))
    await pair.caller.next('REL1', 'webrtc.answer', about(call_uuid))
    pair.callee.cut()
    await pair.callee.closed
    await pair.caller.next('PEER1', 'call.peer_away', about(call_uuid))
    for (let n = 1; n <= 5; n++) pair.caller.ask('webrtc.ice_candidate', { call_uuid, candidate: candidate(n) })
    await pair.caller.settle()
    const options = { isExtended: true, device: 'kit-callee', resume: point, as: 'callee again' }
    const back = await stage.enter(pair.ben, options)
    const { recovered, handled } = back.hello.data
    stage.must('RES1', recovered === true, 'the session was not recovered')
    stage.check('EXT4', handled === answer.n, `handled is ${handled}, not ${answer.n}`)
    await back.party.reply('RES1', answer.request_id)
    await back.party.next('RES1', 'webrtc.ice_candidate', ({ data }) =>
      data.candidate?.candidate.startsWith('candidate:5 '),
    )
    const came = candidateNumbers(back.party, call_uuid).join(' ')
    stage.check('RES1', came === '1 2 3 4 5', `what was missed came as ${came}`)
    await pair.caller.next('PEER1', 'call.peer_back', about(call_uuid))
    back.party.text(JSON.stringify({ ...answer, data: { call_uuid, sdp: sdp('answer', 'once') } }))
    await back.party.settle()
    await pair.caller.settle()
    stage.check('EXT4', !pair.caller.hasUnread(({ event }) => event === 'webrtc.answer'), 'a request took effect twice')
  },
}

async function refuse(stage: Stage, why: string, change: (point: ResumePoint) => ResumePoint): Promise<void> {
  const ann = stage.person(`caller-${why}`, 'caller')
  const first = await stage.enter(ann, { isExtended: true, device: 'kit-caller' })
  await first.party.settle()
  const point = pointOf(first)
  first.party.cut()
  await first.party.closed
  const { token, ws_url } = await stage.issue(ann, 'kit-caller')
  const headers = [`Sec-WebSocket-Protocol: jwt, ${token}`]
  // Messages are numbered from 1 again.
  const wsUrl = `${ws_url}?${queryOf(change(point))}`
  const party = stage.open('again', { wsUrl, headers, isExtended: true })
  const { data } = await party.next('WS3', 'auth.ok')
  stage.check('RES2', data.recovered === false, `a resume with ${why} was recovered`)
  stage.check('RES2', data.handled === 0, 'n does not begin again')
}

const refusedResumes: Scenario = {
  name: 'resumes that cannot be exact',
  rules: ['RES2'],
  needs: 'extended',
  async run(stage: Stage) {
    await refuse(stage, 'another-epoch', (point) => ({ ...point, epoch: 'kit-no-such-epoch' }))
    await refuse(stage, 'a-seq-that-never-was', (point) => ({ ...point, seq: 999 }))
    await refuse(stage, 'an-unknown-session', (point) => ({ ...point, session_id: 'A'.repeat(25) }))
  },
}

const newestWins: Scenario = {
  name: 'two sockets for one session',
  rules: ['RES1', 'CLOSE'],
  needs: 'extended',
  async run(stage: Stage) {
    const ann = stage.person('caller', 'caller')
    const first = await stage.enter(ann, { isExtended: true, device: 'kit-caller' })
    await first.party.settle()
    const options = { isExtended: true, device: 'kit-caller', resume: pointOf(first), as: 'newer' }
    const second = await stage.enter(ann, options)
    stage.check('RES1', second.hello.data.recovered === true, 'the newer socket did not get the session')
    const closed = await first.party.closes()
    stage.check('CLOSE', closed?.code === 4409, `the older socket: ${closed?.code ?? 'stays open'}`)
  },
}

const left: Scenario = {
  name: 'an extended caller leaves while it rings',
  rules: ['END6'],
  needs: 'extended',
  async run(stage: Stage) {
    const pair = await connectPair(stage, { isExtended: true })
    const id = pair.caller.ask('call.invite', inviteData(pair.ben))
    const { call_uuid } = (await pair.caller.next('EXT2', 'call.invited', ({ request_id }) => request_id === id)).data
    await pair.callee.next('RING2', 'call.ringing', about(call_uuid))
    pair.caller.close(1000)
    const { data } = await pair.callee.next('END6', 'call.cancelled', about(call_uuid))
    stage.check('END6', data.reason === 'caller_cancelled', `the reason is ${data.reason}`)
  },
}

const refreshed: Scenario = {
  name: 'a new token on an open session',
  rules: ['WS5'],
  needs: 'extended',
  async run(stage: Stage) {
    const ann = stage.person('caller', 'caller')
    const { party } = await stage.enter(ann, { isExtended: true, device: 'kit-caller' })
    const { token } = await stage.issue(ann, 'kit-caller')
    const id = party.ask('auth.refresh', { token })
    const { data } = await party.next('WS5', 'auth.refreshed', ({ request_id }) => request_id === id)
    stage.check('WS5', Date.parse(data.expires_at) > Date.now(), 'expires_at is over')
    const other = await stage.issue(stage.person('other', 'caller'), 'kit-caller')
    const { error } = await party.error('WS5', party.ask('auth.refresh', { token: other.token }))
    stage.check('WS5', error?.code === 'AUTH_TOKEN_INVALID', `the token of somebody else got ${error?.code}`)
  },
}

const baseHearsNothing: Scenario = {
  name: 'a base client beside an extended one',
  rules: ['EXT1', 'EXT5'],
  needs: 'extended',
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const id = crypto.randomUUID()
    pair.caller.send('call.invite', inviteData(pair.ben), id)
    const invited = await pair.caller.next('INV2', 'call.invited')
    const { call_uuid } = invited.data
    pair.callee.send('call.accept', { call_uuid }, 'accept')
    await pair.caller.next('PLACE1', 'call.accepted')
    for (const party of [pair.caller, pair.callee]) await party.settle()
    const all = [...pair.caller.all, ...pair.callee.all]
    const isPlain = all.every(
      ({ seq, version, event }) => seq === undefined && version === undefined && event !== 'call.ack',
    )
    stage.check('EXT1', isPlain, 'a base client got seq, version or call.ack')
    if (!isPlain) throw new Stop('base')
  },
}

export const extendedScenarios: readonly Scenario[] = [
  ...[numbered, resumed, refusedResumes, newestWins, left, refreshed, baseHearsNothing],
]
