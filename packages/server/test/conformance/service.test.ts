/** `ringwire conformance --service`: a right service passes, and each planted fault is found by its rule. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { productKey, Service } from '@ringwire/testkit/service'
import type { Report } from '../../src/conformance/report.ts'
import { type RuleId, ruleTitles } from '../../src/conformance/rules.ts'
import { testService } from '../../src/conformance/service/run.ts'
import { createBox } from '../cli/command.ts'
import { type Fault, startFaulty } from './faulty.ts'

const service = new Service()
beforeAll(() => service.start(), 60_000)
afterAll(() => service.dispose())

const environment = () => ({
  RINGWIRE_URL: service.url,
  RINGWIRE_KEY_ID: productKey.id,
  RINGWIRE_KEY_SECRET: productKey.secret,
})

function run(url: string, only: readonly RuleId[], patienceMs: number): Promise<Report> {
  return testService({
    target: { url, keyId: productKey.id, keySecret: productKey.secret, product: undefined },
    roles: { caller: 'customer', callee: 'agent' },
    ...{ patienceMs, isSlowToo: false, only, named: '' },
    onScenario() {},
  })
}

const failedOf = ({ rules }: Report) => rules.filter(({ verdict }) => verdict === 'failed').map(({ rule }) => rule)

test('the real service passes everything, and the report is text, JSON and JUnit without a secret', async () => {
  const box = createBox()
  const files = await makeTemporaryDirectory()
  const [json, junit] = ['report.json', 'report.xml'].map((name) => join(files.path, name)) as [string, string]
  try {
    const args = `conformance --service --patience 60 --json ${json} --junit ${junit}`
    const { code, out, err } = await box.run(args, { env: environment() })
    const texts = [out, err, readFileSync(json, 'utf8'), readFileSync(junit, 'utf8')]
    const report = JSON.parse(texts[2] ?? '') as Report
    expect({ failures: report.rules.flatMap(({ failures }) => failures), code }).toEqual({ failures: [], code: 0 })
    // What takes half a minute is not claimed.
    expect(report.rules.filter(({ verdict }) => verdict === 'not seen').map(({ rule }) => rule)).toEqual(['END3'])
    expect(out).toContain('not seen  END3')
    expect(out).toContain(`${report.summary.passed} passed, 0 failed, 1 not seen`)
    expect(texts[3]).toContain(`tests="${report.rules.length}" failures="0" skipped="1"`)
    for (const text of texts) {
      expect(text).not.toContain(productKey.secret)
      expect(text).not.toMatch(/eyJ[\w-]+\.[\w-]+/)
    }
  } finally {
    await box.clean()
    await files.remove()
  }
}, 240_000)

test('what cannot be tested is said in a line: no service, a wrong secret, an unknown rule, nothing to test', async () => {
  const box = createBox()
  try {
    for (const [args, env, code, words] of [
      ['--service', { RINGWIRE_URL: 'http://127.0.0.1:1' }, 1, 'http://127.0.0.1:1 does not answer'],
      ['--service', { RINGWIRE_KEY_SECRET: 'wrong' }, 1, 'gave no session token: 401'],
      ['--service --rule INV99', {}, 2, '--rule INV99: the kit checks TOK1,'],
      ['--service', { RINGWIRE_KEY_ID: '' }, 2, 'Set RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET'],
    ] as const) {
      const ended = await box.run(`conformance ${args}`, { env: { ...environment(), ...env } })
      expect([args, ended.code]).toEqual([args, code])
      expect(ended.err).toContain(words)
    }
  } finally {
    await box.clean()
  }
}, 120_000)

test('the command loads the kit when it runs, and no start of the service does', () => {
  const source = readFileSync(join(import.meta.dir, '../../src/cli/conformance.ts'), 'utf8')
  const still = [...source.matchAll(/^import .* from '\.\.\/conformance\/.*'$/gm)].map(([line]) => line)
  expect(still.length).toBeGreaterThan(0)
  expect(still.filter((line) => !line.startsWith('import type '))).toEqual([])
})

test('the rules of the kit are rules of docs/protocol.md', () => {
  const page = readFileSync(join(import.meta.dir, '../../../../docs/protocol.md'), 'utf8')
  for (const rule of Object.keys(ruleTitles)) expect(page).toMatch(new RegExp(`\\*\\*${rule}[* ]`))
})

const isOf = (event: string) => (text: string) => text.includes(`"event":"${event}"`)
const drop = (event: string): Fault => ({ message: (text) => (isOf(event)(text) ? [] : [text]) })
const double = (event: string): Fault => ({ message: (text) => (isOf(event)(text) ? [text, text] : [text]) })
const rename = (event: string, from: string, to: string): Fault => ({
  message: (text) => [isOf(event)(text) ? text.replaceAll(from, to) : text],
})
const http = (from: string, to: string): Fault => ({ http: (text) => text.replaceAll(from, to) })

/** Keeps one candidate back until the next one has passed. */
function swap(): Fault {
  let held: string | undefined
  return {
    message(text) {
      if (!text.includes('candidate:1 ') && held === undefined) return [text]
      if (held === undefined) {
        held = text
        return []
      }
      const before = held
      held = undefined
      return [text, before]
    },
  }
}

/** Missed messages do not come again: an offer on a socket at which nothing rang before. */
function forget(): Fault {
  let hasRung = false
  return {
    message(text) {
      hasRung ||= isOf('call.ringing')(text)
      return isOf('webrtc.offer')(text) && !hasRung ? [] : [text]
    },
  }
}

/** The caller hears of each call once that it was answered. */
function onlyOnce(): Fault {
  const heard = new Set<string | undefined>()
  return {
    message(text) {
      const id = isOf('call.accepted')(text) ? /"call_uuid":"([^"]+)"/.exec(text)?.[1] : undefined
      const isAgain = id !== undefined && heard.has(id)
      heard.add(id)
      return isAgain ? [] : [text]
    },
  }
}

const skip = (text: string) => text.replace(/"seq":(\d+)/, (_, seq: string) => `"seq":${Number(seq) * 2}`)

const faults: readonly (readonly [what: string, rule: RuleId, create: () => Fault])[] = [
  ['call.accepted is dropped', 'PLACE1', () => drop('call.accepted')],
  ['call.ringing is dropped', 'RING2', () => drop('call.ringing')],
  ['call.ringing has no caller_user_id', 'RING2', () => rename('call.ringing', 'caller_user_id', 'callerUserId')],
  ['call.missed comes twice', 'RING1', () => double('call.missed')],
  ['candidates are reordered', 'ORD2', swap],
  ['a candidate is dropped', 'ORD2', () => ({ message: (text) => (text.includes('candidate:3 ') ? [] : [text]) })],
  ['relays name no sender', 'REL3', () => rename('webrtc.offer', 'from_role', 'fromRole')],
  ['numbers are written anew', 'REL4', () => rename('webrtc.ice_candidate', '1.50', '1.5')],
  ['a call_uuid is in upper case', 'UUID1', () => ({ message: (text) => [upper(text)] })],
  ['an end has another word', 'END2', () => rename('call.ended', '"hangup"', '"hung_up"')],
  ['an end has another name', 'END2', () => rename('call.ended', 'call.ended', 'call.finished')],
  ['glare has another code', 'INV6', () => rename('call.error', 'CALL_GLARE', 'BUSY')],
  ['errors are only in data', 'ENV2', () => rename('call.error', '"error":{', '"err":{')],
  ['replies lose their request_id', 'INV2', () => rename('call.invited', 'request_id', 'requestId')],
  ['pushes have a request_id', 'ENV4', () => rename('call.accepted', '{"event"', '{"request_id":"x","event"')],
  ['pushes are numbered with gaps', 'EXT1', () => ({ message: (text) => [skip(text)] })],
  ['a reply comes twice', 'EXT2', () => double('call.ack')],
  ['every session claims to be recovered', 'RES2', () => rename('auth.ok', '"recovered":false', '"recovered":true')],
  ['no session is recovered', 'RES1', () => rename('auth.ok', '"recovered":true', '"recovered":false')],
  ['handled is behind', 'EXT4', () => ({ message: (text) => [text.replace(/"handled":[1-9]/, '"handled":0')] })],
  ['nobody hears that the peer is away', 'PEER1', () => drop('call.peer_away')],
  ['a ring does not name the group', 'GROUP1', () => rename('call.ringing', 'callee_group', 'calleeGroup')],
  ['all members decline for another reason', 'GROUP1', () => rename('call.rejected', 'all_declined', 'declined')],
  ['media is not told', 'MEDIA1', () => drop('call.media')],
  ['a call that goes on is still held', 'HOLD1', () => rename('call.media', '"held":false', '"held":true')],
  ['the former device is told another reason', 'TAKE1', () => rename('call.cancelled', 'taken_elsewhere', 'elsewhere')],
  ['the caller is not asked for a new offer', 'TAKE1', onlyOnce],
  ['nobody hears which call replaces theirs', 'XFER1', () => drop('call.transferring')],
  ['a transfer that failed is not told', 'XFER1', () => drop('call.transfer_failed')],
  ['the first call ends for another reason', 'XFER1', () => rename('call.ended', 'transferred', 'hangup')],
  ['the ring does not say who transferred', 'XFER1', () => rename('call.ringing', 'transferred_by', 'transferredBy')],
  ['a missed offer does not come again', 'PLACE5', forget],
  ['an answered call is not found', 'PLACE3', () => rename('call.error', 'CALL_ALREADY_ANSWERED', 'CALL_NOT_FOUND')],
  ['heartbeats are answered', 'ENV1', () => double('call.error')],
  ['the token is refused with another code', 'CLOSE', () => ({ close: () => 4000 })],
  ['a cache may keep tokens', 'TOK3', () => http('no-store', 'no-cache')],
  ['a wrong secret has another code', 'TOK1', () => http('AUTH_INVALID_SECRET', 'AUTH_INVALID_SEKRET')],
  ['ids may be dots', 'ID3', () => http('INVALID_REQUEST_BODY', 'INVALID_REQUEST_BODI')],
  ['the subprotocol is not selected', 'WS1', () => http('Sec-WebSocket-Protocol', 'Sec-WebSocket-Protokol')],
  ['paths that are not there have another code', 'HTTP1', () => http('NOT_FOUND', 'NOT_THERE')],
  ['the service is never ready', 'HEALTH1', () => http('"service_ready":true', '"service_ready":fals')],
  ['the history has no end reason', 'HIST2', () => http('"end_reason"', '"end_raison"')],
]

const upper = (text: string) =>
  text.replace(/"call_uuid":"([^"]+)"/g, (_, id: string) => `"call_uuid":"${id.toUpperCase()}"`)

describe('a planted fault is found', () => {
  for (const [what, rule, create] of faults) {
    test(`${rule}: ${what}`, async () => {
      const proxy = await startFaulty(service.url, create)
      try {
        const report = await run(proxy.url, [rule], 1_500)
        expect(failedOf(report)).toEqual([rule])
        const [failure] = report.rules[0]?.failures ?? []
        expect(failure?.message).not.toBe('')
      } finally {
        await proxy.stop()
      }
    }, 120_000)
  }
})

test('what a fault breaks is shown with the frames that led to it', async () => {
  const proxy = await startFaulty(service.url, swap)
  try {
    const { rules } = await run(proxy.url, ['ORD2'], 1_500)
    const [failure] = rules[0]?.failures ?? []
    const seen = failure?.frames.filter(({ kind, text }) => kind === 'received' && text.includes('candidate:')) ?? []
    expect(seen.map(({ text }) => /candidate:(\d+)/.exec(text)?.[1]).slice(0, 2)).toEqual(['2', '1'])
  } finally {
    await proxy.stop()
  }
}, 120_000)
