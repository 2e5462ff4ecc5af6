import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import { createIceServers } from '../../src/ice/ice-servers.ts'
import { tryTurn } from '../../src/ice/turn-allocation.ts'
import { createBox } from '../cli/command.ts'

const secret = 'the-secret-of-coturn'
const answerMs = 20_000
const box = createBox()
let turn: TurnServer
let overTcp: string
beforeAll(async () => {
  turn = await startTurnServer(secret)
  overTcp = turn.url.replace('udp', 'tcp')
}, 60_000)
afterAll(async () => {
  await box.clean()
  await turn.stop()
})

function credentials(of = secret, now = Date.now()) {
  const config = { stunUrls: [], turnUsername: null, turnCredential: null, turnTtlS: null, tokenTtlS: 3600 }
  const servers = createIceServers({ ...config, turnUrls: [turn.url], turnSecrets: [of] })
  const [{ username = '', credential = '' } = {}] = servers({ product: 'shop', role: 'agent', userId: 'ben' }, now)
  return { username, credential }
}

test('[ICE1] coturn gives an allocation for the credentials of a token, over UDP and TCP, and takes it back', async () => {
  expect(await tryTurn(turn.url, credentials(), answerMs)).toBeUndefined()
  expect(await tryTurn(overTcp, credentials(), answerMs)).toBeUndefined()
  await turn.said(/incoming packet ALLOCATE processed, success/)
  await turn.said(/(incoming packet REFRESH processed, success[\s\S]*){2}/)
})

test('[ICE1] what coturn refuses is said in its words', async () => {
  const dayMs = 86_400_000
  for (const wrong of [credentials('another secret'), credentials(secret, Date.now() - dayMs)]) {
    for (const url of [turn.url, overTcp]) expect(await tryTurn(url, wrong, answerMs)).toBe('401 Unauthorized')
  }
})

test('where nobody answers, or somebody who is no TURN server, that is said', async () => {
  // Nobody listens there, and nobody is given it who asks for any port.
  expect(await tryTurn('turn:127.0.0.1:1?transport=tcp', credentials(), answerMs)).toBe('ECONNREFUSED')
  expect(await tryTurn('turn:nowhere.invalid', credentials(), answerMs)).toMatch(/ENOTFOUND|EAI_AGAIN/)
  const mute = createSocket('udp4')
  const heard = Promise.withResolvers<void>()
  mute.on('message', () => heard.resolve())
  await new Promise<void>((resolve) => mute.bind(0, '127.0.0.1', resolve))
  // Time enough to ask, on a busy machine too: what is given up before has asked nobody.
  expect(await tryTurn(`turn:127.0.0.1:${mute.address().port}`, credentials(), 3_000)).toBe('no answer within 3 s')
  await heard.promise
  mute.close()
  // TLS where there is none.
  expect(await tryTurn(overTcp.replace(/turn:(.*)\?.*/, 'turns:$1'), credentials(), answerMs)).toBeString()
})

test('[KEY1] ringwire turn check asks each server with each secret', async () => {
  const env = { RINGWIRE_TURN_URLS: `${turn.url},${overTcp}`, RINGWIRE_TURN_SECRET: `${secret},another-secret` }
  const both = await box.run('turn check --json', { env })
  const first = { secret: 'first secret', ok: true }
  const second = { secret: 'second secret', ok: false, problem: '401 Unauthorized' }
  expect(JSON.parse(both.out)).toEqual(
    [turn.url, overTcp].flatMap((url) => [
      { url, ...first },
      { url, ...second },
    ]),
  )
  expect([both.code, both.err]).toEqual([1, '2 of 4 failed.\n'])
  const one = await box.run('turn check', { env: { ...env, RINGWIRE_TURN_SECRET: secret } })
  expect([one.code, one.out.match(/first secret +good/g)?.length, one.err]).toEqual([0, 2, ''])
  const fixed = { RINGWIRE_TURN_URLS: turn.url, RINGWIRE_TURN_USERNAME: 'u', RINGWIRE_TURN_CREDENTIAL: 'c' }
  expect((await box.run('turn check', { env: fixed })).out).toMatch(/fixed +401 Unauthorized/)
  const none = await box.run('turn check')
  expect([none.code, none.err]).toEqual([1, 'RINGWIRE_TURN_URLS is not set: clients get no TURN server.\n'])
  for (const { out, err } of [both, one]) expect(out + err).not.toMatch(/the-secret-of|another-secret/)
})
