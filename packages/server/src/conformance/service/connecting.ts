/** How a client connects, and what its messages must be. */
import type { Party } from '../party.ts'
import type { Scenario, Stage } from './stage.ts'

const protocols = (text: string) => [`Sec-WebSocket-Protocol: ${text}`]
const bearer = (token: string) => [`Authorization: Bearer ${token}`]
const forged = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJraXQifQ.c2ln'

const credentials: Scenario = {
  name: 'good and bad credentials of a socket',
  rules: ['WS1', 'WS2', 'WS3', 'CLOSE'],
  async run(stage: Stage) {
    const person = stage.person('caller', 'caller')
    const { token, ws_url: wsUrl } = await stage.issue(person)
    for (const [headers, selected] of [
      [protocols(`jwt, ${token}`), 'jwt'],
      [protocols(`${token}, jwt`), 'jwt'],
      [bearer(token), undefined],
    ] as const) {
      const party = stage.open('client', { wsUrl, headers })
      const { status, headers: said } = await party.answer
      stage.must('WS1', status === 101, `a good token got ${status}`)
      const got = said.get('sec-websocket-protocol')
      stage.check('WS1', got === selected, `it selected the subprotocol ${got}`)
      const { success, data } = await party.next('WS3', 'auth.ok')
      stage.check('WS3', success === true, 'auth.ok has no success: true')
      const isMe = data.user_id === person.who.user_id && data.role === person.who.role
      stage.check('WS3', isMe && data.display_name === person.who.display_name, 'auth.ok names somebody else')
      party.cut()
    }
    await refusals(stage, wsUrl, token)
  },
}

async function refusals(stage: Stage, wsUrl: string, token: string): Promise<void> {
  const statusOf = async (url: string, headers: readonly string[], more: object = {}) =>
    (await stage.open('stranger', { wsUrl: url, headers, ...more }).answer).status
  const none = await statusOf(wsUrl, [])
  stage.check('WS2', none === 401, `no credential got ${none}`)
  const bad = await statusOf(wsUrl, bearer(forged))
  stage.check('WS2', bad === 401, `a forged token in the header got ${bad}`)
  const inUrl = await statusOf(`${wsUrl}?token=${token}`, [])
  stage.check('WS1', inUrl === 401, `a token in the URL got ${inUrl}`)
  const old = await statusOf(wsUrl, bearer(token), { version: '8' })
  stage.check('WS1', old === 426, `Sec-WebSocket-Version: 8 got ${old}`)
  const keyless = await statusOf(wsUrl, bearer(token), { key: '' })
  stage.check('WS1', keyless === 400, `an upgrade without a key got ${keyless}`)
  // A browser shows any refused upgrade as 1006, so the service refuses it on the socket.
  const party = stage.open('stranger', { wsUrl, headers: protocols(`jwt, ${forged}`) })
  const { status } = await party.answer
  stage.must('WS2', status === 101, `a forged token in the subprotocol got ${status}`)
  const { error } = await party.next('WS2', 'call.error')
  stage.check('WS2', error?.code === 'AUTH_TOKEN_INVALID', `the code is ${error?.code}`)
  const closed = await party.closes()
  stage.check('CLOSE', closed?.code === 4401, `the close code is ${closed?.code}`)
}

const envelopes: Scenario = {
  name: 'messages that are no envelopes',
  rules: ['ENV1', 'ENV2', 'ENV3', 'ENV5', 'CLOSE'],
  async run(stage: Stage) {
    const { party } = await stage.enter(stage.person('caller', 'caller'))
    for (const text of ['no JSON', '[]', '{}', '{"event":1}', '{"event":"call.end","data":[]}']) {
      party.text(text)
      const { error } = await party.next('ENV1', 'call.error')
      stage.check('ENV1', error?.code === 'INVALID_MESSAGE', `${text} got ${error?.code}`)
    }
    await heartbeats(stage, party)
    party.send('kit.unknown', { any: 'thing' }, 'r-unknown')
    const { error } = await party.error('ENV3', 'r-unknown')
    stage.check('ENV3', error?.code === 'UNKNOWN_EVENT', `an unknown event got ${error?.code}`)
    stage.check('ENV2', typeof error?.message === 'string', 'the error has no message')
    party.send('call.end', { call_uuid: crypto.randomUUID(), more: 'fields' }, 'r-end')
    const missing = await party.error('ENV5', 'r-end')
    stage.check('ENV5', missing.error?.code === 'CALL_NOT_FOUND', `an unknown call got ${missing.error?.code}`)
    for (let sent = 0; sent < 10; sent++) party.text('{"no":"event"}')
    const closed = await party.closes()
    stage.check('ENV1', closed?.code === 4400, `ten malformed messages in a row: ${closed?.code ?? 'nothing'}`)
  },
}

async function heartbeats(stage: Stage, party: Party): Promise<void> {
  const before = party.all.length
  for (const text of ['', 'ping', '{"type":"ping"}', '{"event":"ping","at":1}']) party.text(text)
  party.binary(JSON.stringify({ event: 'kit.binary', request_id: 'r-binary' }))
  const { error } = await party.error('ENV1', 'r-binary')
  stage.check('ENV1', error?.code === 'UNKNOWN_EVENT', `a binary frame got ${error?.code}`)
  const more = party.all.length - before
  stage.check('ENV1', more === 1, 'a heartbeat was answered')
  party.text(`\ufeff${JSON.stringify({ event: 'kit.marked', request_id: 'r-mark' })}`)
  const marked = await party.error('ENV1', 'r-mark')
  stage.check('ENV1', marked.error?.code === 'UNKNOWN_EVENT', `a byte order mark got ${marked.error?.code}`)
}

const sizes: Scenario = {
  name: 'a message that is too big',
  rules: ['WS6', 'CLOSE'],
  async run(stage: Stage) {
    const { party } = await stage.enter(stage.person('caller', 'caller'))
    party.send(
      'webrtc.offer',
      { call_uuid: crypto.randomUUID(), sdp: { type: 'offer', sdp: 'x'.repeat(50_000) } },
      'r1',
    )
    const { error } = await party.error('WS6', 'r1')
    stage.check('WS6', error?.code === 'PAYLOAD_TOO_LARGE', `an sdp of 50,000 bytes got ${error?.code}`)
    party.text(JSON.stringify({ event: 'kit.big', data: { text: 'x'.repeat(70_000) } }))
    const closed = await party.closes()
    // Some runtimes drop the connection without a close frame.
    stage.check('WS6', closed?.code === 1009 || closed?.code === 1006, `70,000 bytes: ${closed?.code ?? 'nothing'}`)
  },
}

const pings: Scenario = {
  name: 'keep-alive',
  rules: ['WS6', 'CLOSE'],
  needs: 'time',
  async run(stage: Stage) {
    const { party } = await stage.enter(stage.person('caller', 'caller'), { answersPings: false })
    stage.must('WS6', await party.nextPing(30_000), 'no ping came within 30 s')
    const closed = await party.closes(15_000)
    stage.check('CLOSE', closed?.code === 4408, `a ping without a pong: ${closed?.code ?? 'nothing'} after 15 s`)
  },
}

export const connectingScenarios: readonly Scenario[] = [credentials, envelopes, sizes, pings]
