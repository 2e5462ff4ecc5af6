/** What a client does when its connection ends: by the network, or by a close code. */
import { closeCodes } from '@ringwire/protocol/close-codes'
import { envelopeOf } from '../heard.ts'
import { untouched } from './gate.ts'
import { answeredByClient, type ClientScenario, type ClientStage, callClient, finish, hangsUp, says } from './stage.ts'

const cut: ClientScenario = {
  name: 'its network is cut in a call',
  rules: ['CLOSE', 'RES1', 'EXT4'],
  async run(stage: ClientStage) {
    const link = await stage.online()
    const peer = await stage.peer()
    const call_uuid = await answeredByClient(stage, peer)
    stage.note('the network of the client is cut')
    link.end(undefined)
    const candidate = { candidate: '', sdpMid: '0', sdpMLineIndex: 0 }
    for (let n = 0; n < 3; n++) peer.send('webrtc.ice_candidate', { call_uuid, candidate })
    await stage.comesBack('CLOSE', link.number, 'its network was cut')
    await resumes(stage)
    await finish(stage, peer, call_uuid)
  },
}

/** Of an extended client: the eye judged the numbers of the resume; this is whether there was one. */
async function resumes(stage: ClientStage): Promise<void> {
  const { subject } = stage
  if (!subject.isExtended) return
  const isResume = subject.link?.request.target.includes('resume=') === true
  stage.must('RES1', isResume, 'it came back without a resume')
  stage.check('RES1', subject.hello?.data.recovered === true, 'its resume was refused')
}

const unheard: ClientScenario = {
  name: 'what it asked for is lost with the socket',
  rules: ['EXT4', 'RES1'],
  needs: 'extended',
  async run(stage: ClientStage) {
    const link = await stage.online()
    const peer = await stage.peer()
    const call_uuid = await answeredByClient(stage, peer)
    const { said } = stage.subject
    stage.gate.traffic = { up: (text) => !hangsUp(envelopeOf(text) ?? { event: '' }), down: (text) => [text] }
    const first = await stage.has('hang_up', hangsUp)
    stage.note(`${first.event} did not reach the service; the network of the client is cut`)
    stage.gate.traffic = untouched
    link.end(undefined)
    await stage.comesBack('CLOSE', link.number, 'its network was cut')
    const isAgain = (it: (typeof said)[number]) => it.event === first.event && it.n === first.n && it.link !== link
    const again = await stage.subject.until(() => said.find(isAgain), 5_000)
    stage.check('EXT4', again !== undefined, `n ${first.n} took no effect, and was not sent again`)
    if (again === undefined) await finish(stage, peer, call_uuid)
  },
}

const refusedResume: ClientScenario = {
  name: 'its session cannot be resumed',
  rules: ['RES2'],
  needs: 'extended',
  async run(stage: ClientStage) {
    const link = await stage.online()
    const peer = await stage.peer()
    const call_uuid = await answeredByClient(stage, peer)
    // As after a node that lost what it knew: the service begins a new session.
    stage.gate.query = (search) => search.replace(/([?&]epoch=)[^&]*/, '$1kit-lost')
    link.end(undefined)
    await stage.comesBack('CLOSE', link.number, 'its network was cut')
    stage.gate.query = (search) => search
    if (stage.subject.hello?.data.recovered !== false) return stage.note('the session was recovered after all')
    const from = stage.subject.said.length
    await finish(stage, peer, call_uuid)
    // Its next message has n 1 [RES2]: a call makes it send something.
    await callClient(stage, peer)
    await stage.has('decline', hangsUp)
    const numbers = stage.subject.said.slice(from).flatMap(({ n }) => n ?? [])
    stage.check('RES2', numbers.length === 0 || Math.min(...numbers) <= 2, `after a new session n was ${numbers[0]}`)
  },
}

const refused: ClientScenario = {
  name: 'the service cannot be reached for a while',
  rules: ['CLOSE'],
  async run(stage: ClientStage) {
    const link = await stage.online()
    const from = stage.subject.attempts.length
    stage.gate.isRefusing = true
    link.end(undefined)
    await stage.subject.until(() => stage.subject.attempts.length - from > mostAttempts, refusedMs)
    const attempts = stage.subject.attempts.slice(from)
    stage.gate.isRefusing = false
    const told = `${attempts.length} attempts in ${refusedMs / 1_000} s`
    stage.check('CLOSE', attempts.length <= mostAttempts, `its pauses do not grow: ${told}`)
    await stage.comesBack('CLOSE', link.number, 'the service was away')
  },
}

/** Pauses that begin at half a second and double make five attempts in that time, each of them asking for a token, too. */
const refusedMs = 6_000
const mostAttempts = 20

interface Goodbye {
  readonly code: number
  readonly reason?: string
  /** What the service says before. */
  readonly error?: object
  /** It must not come back before, in ms. */
  readonly notBeforeMs?: number
}

const again: readonly Goodbye[] = [
  { code: 1001 },
  { code: 1011 },
  { code: 1012, reason: 'restart, jitter_ms=500' },
  { code: 1013 },
  { code: 4008 },
  { code: 4408 },
  {
    code: 4429,
    error: { code: 'RATE_LIMITED', message: 'Too many requests.', retry_after_ms: 2_000, limit: 'messages' },
    notBeforeMs: 1_900,
  },
]

const nameOf = (code: number) => (closeCodes as Record<number, { name: string } | undefined>)[code]?.name ?? ''

async function dismiss(stage: ClientStage, goodbye: Goodbye): Promise<void> {
  const { code, reason = 'kit', error, notBeforeMs = 0 } = goodbye
  const link = await stage.online()
  if (error !== undefined) link.toClient(JSON.stringify({ event: 'call.error', error, data: { error } }))
  const begin = performance.now()
  stage.note(`the kit closes with ${code} ${reason}`)
  link.end(code, reason)
  const why = `${code} ${nameOf(code)}`
  const back = await stage.comesBack('CLOSE', link.number, why)
  const ms = Math.round(back.openedAt - begin)
  stage.check('CLOSE', ms >= notBeforeMs, `${why}: it was back after ${ms} ms, and was asked for ${notBeforeMs} ms`)
}

const comesAgain: ClientScenario = {
  name: 'close codes after which a client comes back',
  rules: ['CLOSE'],
  async run(stage: ClientStage) {
    for (const goodbye of again) await dismiss(stage, goodbye)
  },
}

const newToken: ClientScenario = {
  name: 'its token is over',
  rules: ['CLOSE'],
  async run(stage: ClientStage) {
    const link = await stage.online()
    const error = { code: 'AUTH_TOKEN_INVALID', message: 'The session token is invalid or expired.' }
    link.toClient(JSON.stringify({ event: 'call.error', error, data: { error } }))
    link.end(4401, 'token')
    const back = await stage.comesBack('CLOSE', link.number, '4401 TOKEN')
    stage.check('CLOSE', back.request.token !== link.request.token, '4401 TOKEN: it came back with the same token')
  },
}

const staysAway: ClientScenario = {
  name: 'close codes after which a client stays away',
  rules: ['CLOSE'],
  async run(stage: ClientStage) {
    for (const code of [4400, 4403, 4409, 1008]) {
      const link = await stage.online()
      const from = stage.subject.attempts.length
      stage.note(`the kit closes with ${code}`)
      link.end(code, 'kit')
      await stage.subject.until(() => stage.subject.attempts.length > from, 3_000)
      const tries = stage.subject.attempts.length - from
      stage.check('CLOSE', tries === 0, `${code} ${nameOf(code)}: it came back, and must not by itself`)
    }
    await stage.online()
  },
}

const expires: ClientScenario = {
  name: 'its token runs out while it is connected',
  rules: ['WS5'],
  needs: 'extended',
  async run(stage: ClientStage) {
    const link = await stage.online()
    stage.gate.expiresIn = 8
    link.end(4401, 'token')
    const back = await stage.comesBack('CLOSE', link.number, '4401 TOKEN')
    stage.gate.expiresIn = undefined
    const said = await stage.subject.until(
      () => stage.subject.said.find((it) => refreshes(it) && it.link === back),
      12_000,
    )
    // No client has to: a new one after 4401 is right, too.
    if (said === undefined) return stage.note('it did not refresh its token')
    stage.check('WS5', said.data.token !== back.request.token, 'auth.refresh has the token that runs out')
  },
}

const refreshes = says('auth.refresh')

const silent: ClientScenario = {
  name: 'its network is silent',
  rules: ['CLOSE'],
  needs: 'time',
  async run(stage: ClientStage) {
    const link = await stage.online()
    stage.note('nothing passes any more, and nobody is told')
    link.freeze()
    await stage.comesBack('CLOSE', link.number, 'a socket was silent', 90_000)
  },
}

const leaves: ClientScenario = {
  name: 'it leaves for good',
  rules: ['RES1'],
  async run(stage: ClientStage) {
    const link = await stage.online()
    stage.tell('disconnect')
    const isGone = await stage.subject.until(() => !link.isOpen, stage.patienceMs)
    if (!isGone) return stage.note('it did not leave')
    const code = stage.subject.leftWith
    if (stage.subject.isExtended) stage.check('RES1', code === 1000, `it left for good with ${code}, not with 1000`)
  },
}

export const networkScenarios: readonly ClientScenario[] = [
  ...[cut, unheard, refusedResume, refused, comesAgain, newToken, expires, staysAway, silent, leaves],
]
