/** `ringwire conformance` with a client: a right one passes, and each that breaks one rule fails with that rule. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readDocument } from '@ringwire/testkit/documents'
import { productKey, Service } from '@ringwire/testkit/service'
import { clientScenarios, testClient } from '../../src/conformance/client/run.ts'
import { junitOf, type Report, textOf } from '../../src/conformance/report.ts'
import type { RuleId } from '../../src/conformance/rules.ts'
import { createBox } from '../cli/command.ts'
import { type ClientFault, SmallClient } from './small-client.ts'

const service = new Service()
const clients: SmallClient[] = []

interface Wish {
  readonly isExtended: boolean
  readonly fault?: ClientFault
  readonly isHasty?: boolean
  readonly only?: RuleId
  readonly named?: string
}

async function run({ isExtended, fault, isHasty = false, only, named = '' }: Wish): Promise<Report> {
  let client: SmallClient | undefined
  return testClient({
    target: { url: service.url, keyId: productKey.id, keySecret: productKey.secret, product: undefined },
    roles: { caller: 'customer', callee: 'agent' },
    listen: { host: '127.0.0.1', port: 0 },
    ...{ userId: undefined, isSlowToo: false, named, only: only === undefined ? [] : [only] },
    // A fault shows in what does not come: nobody waits long for that.
    ...(fault === undefined ? { patienceMs: 30_000, actMs: 30_000 } : { patienceMs: 4_000, actMs: 6_000 }),
    say(line) {
      if (line.type === 'session') {
        client = new SmallClient({ sessionUrl: line.session_url, peer: line.peer, isExtended, fault, isHasty })
        clients.push(client)
      }
      if (line.type === 'do') void client?.do(line.action)
    },
  })
}

const faults: readonly (readonly [fault: ClientFault, rule: RuleId, scenario: string, kind: 'base' | 'extended'])[] = [
  ['a token in the URL', 'WS1', 'it connects', 'base'],
  ['no pongs', 'WS6', 'it connects', 'base'],
  ['no envelope', 'ENV1', 'it connects', 'base'],
  ['ends at what it does not know', 'ENV3', 'it connects', 'base'],
  ['invites nobody', 'INV1', 'it calls, and gives up', 'base'],
  ['one call_uuid for all calls', 'UUID1', 'it calls, and gives up', 'base'],
  ['accepts what another device has', 'PLACE1', 'another device', 'base'],
  ['accepts what is missed', 'RING1', 'nobody answers', 'base'],
  ['accepts what is over', 'END2', 'it is called, and answers', 'base'],
  ['rejects what rings twice', 'PLACE5', 'rings twice', 'base'],
  ['invites again at glare', 'INV6', 'crosses', 'base'],
  ['hangs up without a name', 'END1', 'it calls, the peer answers', 'base'],
  ['offers to another call', 'REL1', 'it calls, the peer answers', 'base'],
  ['comes back after 4409', 'CLOSE', 'stays away', 'base'],
  ['stays away after 1012', 'CLOSE', 'comes back', 'base'],
  ['comes back before it may', 'CLOSE', 'comes back', 'base'],
  ['comes back with the old token', 'CLOSE', 'its token is over', 'base'],
  ['no pauses', 'CLOSE', 'cannot be reached', 'base'],
  ['skips a number', 'EXT4', 'network is cut', 'extended'],
  ['forgets its seq', 'RES1', 'network is cut', 'extended'],
  ['sends nothing again', 'EXT4', 'lost with the socket', 'extended'],
  ['goes on counting', 'RES2', 'cannot be resumed', 'extended'],
  ['refreshes with the old token', 'WS5', 'runs out', 'extended'],
  ['leaves without a word', 'RES1', 'leaves for good', 'extended'],
  ['hangs up what another device took', 'TAKE1', 'another device of the user takes', 'base'],
  ['stays in a call that was handed on', 'XFER1', 'transfers the call', 'extended'],
]

/** Most of the time nothing happens: several run at once. */
const atOnce = 5
const broken = new Map<ClientFault, Promise<Report>>()

beforeAll(async () => {
  await service.start()
  const queue = faults.map(([fault, only, named, kind]) => {
    const { promise, resolve, reject } = Promise.withResolvers<Report>()
    promise.catch(() => {})
    broken.set(fault, promise)
    return () => run({ isExtended: kind === 'extended', fault, only, named }).then(resolve, reject)
  })
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await next()
  }
  for (let worker = 0; worker < atOnce; worker++) void work()
}, 60_000)
afterAll(async () => {
  for (const client of clients) client.stop()
  await service.dispose()
})

describe('a broken client fails with the rule that it breaks', () => {
  for (const [fault, rule] of faults) {
    test(`${rule}: ${fault}`, async () => {
      const report = await broken.get(fault)
      expect(report?.rules.map(({ rule, verdict }) => [rule, verdict])).toEqual([[rule, 'failed']])
      const failures = report?.rules[0]?.failures ?? []
      expect(failures[0]?.frames.length).toBeGreaterThan(0)
      expect(JSON.stringify(report)).not.toMatch(/eyJ[\w-]+\.[\w-]+/)
    }, 120_000)
  }
})

for (const kind of ['base', 'extended'] as const) {
  test(`a right ${kind} client passes, and what it has no part in is not seen`, async () => {
    const report = await run({ isExtended: kind === 'extended' })
    const of = (wanted: string) => report.rules.filter(({ verdict }) => verdict === wanted).map(({ rule }) => rule)
    expect(report.rules.flatMap(({ failures }) => failures)).toEqual([])
    expect(of('not seen')).toEqual(kind === 'base' ? ['EXT4', 'RES1', 'RES2', 'WS5', 'XFER1'] : ['PLACE5'])
    expect(report.scenarios.filter(({ outcome }) => outcome === 'stopped')).toEqual([])
    expect(report.scenarios.length).toBe(clientScenarios.length)
    for (const text of [JSON.stringify(report), textOf(report), junitOf(report)]) {
      expect(text).not.toContain(productKey.secret)
      expect(text).not.toMatch(/eyJ[\w-]+\.[\w-]+/)
    }
  }, 240_000)
}

test('[EXT4] whatever a client hangs up with is lost, and passes when it comes again', async () => {
  const report = await run({ isExtended: true, isHasty: true, only: 'EXT4', named: 'lost with the socket' })
  expect(report.rules.map(({ rule, verdict, failures }) => [rule, verdict, failures])).toEqual([['EXT4', 'passed', []]])
  expect(report.scenarios.find(({ name }) => name.includes('lost with the socket'))?.outcome).toBe('played')
}, 120_000)

test('docs/conformance.md lists each scenario with its rules', () => {
  const rows = readDocument('docs/conformance.md').split('\n')
  for (const { name, rules, needs } of clientScenarios.filter(({ needs }) => needs !== 'time')) {
    const row = rows.find((line) => line.startsWith(`| ${name} |`))
    expect([name, row?.split(' | ').at(-1)]).toEqual([name, `${rules.join(', ')} |`])
    if (needs !== undefined) expect(row).toContain(`(${needs}`)
  }
})

test('a person is told in sentences; where no client comes, nothing is claimed', async () => {
  const box = createBox()
  const json = join(box.dataDir, 'report.json')
  try {
    const env = { RINGWIRE_URL: service.url, RINGWIRE_KEY_ID: productKey.id, RINGWIRE_KEY_SECRET: productKey.secret }
    const { code, out } = await box.run(`conformance --act 1 --user dora --rule RING1 --json ${json}`, { env })
    expect(out).toContain('The client is dora (role customer). Its peer is kit-peer-')
    expect(out).toMatch(/It connects to ws:\/\/127\.0\.0\.1:\d+\/v1\/ws, with this token: eyJ/)
    expect(out).toContain('→ Connect, with a new token.')
    expect(out).toContain('not seen  RING1')
    expect(out).toContain('0 passed, 0 failed, 1 not seen')
    expect(code).toBe(1)
    expect(readFileSync(json, 'utf8')).not.toContain('eyJ')
  } finally {
    await box.clean()
  }
}, 120_000)
