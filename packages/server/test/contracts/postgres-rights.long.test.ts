import { afterAll, beforeAll, expect, test } from 'bun:test'
import { blocks } from '@ringwire/testkit/documents'
import { until } from '@ringwire/testkit/patience'
import type { Participant } from '../../src/call/call.ts'
import { actorOf, callLife, durations, inviteCommand } from '../../src/call/decide.fixture.ts'
import { decide } from '../../src/call/decide.ts'
import { decideInvite } from '../../src/call/invite.ts'
import { noneErased } from '../../src/participants/erasures.port.ts'
import { auditIdAt, newAuditId } from '../../src/ports/audit.ts'
import { liveIn, overSince } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import { migrateToPostgres } from '../../src/stores/migration.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { createBox } from '../cli/command.ts'
import { fill, seen } from '../migration/stores.ts'
import { Postgres } from '../support/postgres.ts'
import { openPostgresNodes } from '../support/postgres-nodes.ts'
import { attempted, endpoint as webhook } from './webhooks.ts'

/** The statements of docs/operations.md, as they stand there. */
const statements = blocks('docs/operations.md', '### Rights', '### Upgrades').filter(
  ({ language }) => language === 'sql',
)
const [roles = '', grants = ''] = statements.map(({ text }) => text)
const statementsOf = (block: string) => block.split(';\n').flatMap((statement) => statement.trim() || [])

let server: Postgres
let asOwner: string
let asService: string
let asSuperuser: string
/** What is copied into the database, each time. */
const filled = createBox()
beforeAll(async () => {
  await fill(filled.dataDir, 10)
  server = await Postgres.start({ fsync: 'off' })
  for (const statement of statementsOf(roles)) await server.query(statement)
  const urlOf = (role: string, password: string) => `postgres://${role}:${password}@127.0.0.1:${server.port}/calls`
  asOwner = urlOf('ringwire_owner', 'owner-password')
  asService = urlOf('ringwire_service', 'service-password')
  asSuperuser = server.url('calls')
})
afterAll(async () => {
  await server?.dispose()
  await filled.clean()
})

/** A call to a group that is cancelled, and of which the member is erased. */
async function callGroup(calls: CallStore, member: Participant): Promise<void> {
  const caller = actorOf({ ...member, userId: 'caller' })
  const ref = { product: member.product, callUuid: crypto.randomUUID() }
  const group = { name: 'all', members: [member.userId], isBusy: false }
  const command = { ...inviteCommand(caller, { ...member, userId: '' }, ref.callUuid), group }
  await calls.invite(caller.participant, caller.participant, ref.callUuid, (situation) =>
    decideInvite(situation, command, Date.now()),
  )
  expect(await calls.liveCallsOf(member)).toHaveLength(1)
  const cancel = { type: 'cancel', actor: caller, reason: null } as const
  await calls.transition(ref, (call) => decide(call, cancel, Date.now(), durations))
  expect(await calls.erase(member)).toBe(1)
}

/** Everything that a service and the commands next to it do in the database. */
async function useAll(url: string): Promise<void> {
  await server.query(
    'TRUNCATE calls, call_events, webhook_endpoints, webhook_deliveries, product_keys, product_key_secrets, product_settings',
    asSuperuser,
  )
  await migrateToPostgres({ dataDir: filled.dataDir, url, now: Date.now(), onProgress: () => {} })
  const { calls, outbox, products, devices, groups, webhooks, timeline, online, erasures, audit, prune, close } =
    await openPostgres({
      url,
      // One connection does all of it, and a refusal comes at once: nothing has to end in this time.
      limitMs: 10_000,
      readers: 1,
      writers: 1,
    })
  try {
    for (const step of callLife()) await step(calls)
    const endpoint = webhook({ product: 'clinic' })
    await webhooks.addEndpoint(endpoint)
    await webhooks.refresh()
    for (const step of callLife()) await step(calls)
    const [claimed] = (await webhooks.claim(new Map([[endpoint.id, 1]]))).claimed
    if (claimed === undefined) throw new Error('Nothing was written for the endpoint.')
    await webhooks.settle([attempted(claimed.id)])
    const all = { product: 'clinic', participant: undefined, statuses: undefined, since: 0, after: undefined }
    const [last] = (await calls.list({ ...all, limit: 1 })).calls
    if (last === undefined) throw new Error('No call was written.')
    const erased = { product: 'clinic', ...last.call.caller }
    expect([await calls.erase(erased), (await webhooks.erase(erased)) > 0]).toEqual([1, true])
    await webhooks.putOff([endpoint.id])
    await webhooks.prune(Number.MAX_SAFE_INTEGER, 0)
    await webhooks.changeEndpoint('clinic', endpoint.id, { enabled: false })
    await webhooks.removeEndpoint('clinic', endpoint.id)
    for (let i = 0; i < 2; i++) await erasures.add('a participant', { ...noneErased, calls: 1 })
    expect((await erasures.counted('a participant')).calls).toBeGreaterThan(1)
    await erasures.forget('a participant')
    for (const comes of [true, false]) await online.write('a', [{ participant: erased, comes }], 1)
    await online.nodes()
    await online.of('a')
    await outbox.claim(1)
    await outbox.release([1], 0)
    await outbox.remove([1])
    const participant = { product: 'clinic', role: 'patient', userId: 'ann' }
    await callGroup(calls, participant)
    await Promise.all([
      calls.tryWrite(),
      liveIn(calls),
      calls.liveCallsOf(participant),
      calls.inCall([participant]),
      calls.lastAnswered([participant]),
      overSince(calls, 0),
      calls.history({ participant, limit: 10, after: undefined }),
    ])
    const key = { keyId: 'k', secretHash: new Uint8Array(32), products: ['clinic'], origin: 'cli' } as const
    await products.putKey(key, 1)
    await products.putKey({ ...key, products: ['shop'] }, 1)
    await products.rotateKey('k', new Uint8Array(32).fill(1), 10, 2)
    await products.rotateKey('k', new Uint8Array(32).fill(2), 20, 15)
    await products.setDisabled('k', true, 3)
    await products.listKeys(4)
    const device = {
      participant,
      deviceId: 'phone',
      address: { platform: 'fcm', token: 'x' },
      registeredAt: 1,
    } as const
    await devices.put(device)
    await devices.of(participant, 1)
    await devices.forget(participant, 'phone', device.address)
    await devices.forgetAll(participant)
    const group = { product: 'clinic', role: 'patient', name: 'all' }
    const settings = { members: ['ann'], strategy: 'all', memberRingMs: 15_000, ringMs: 45_000 } as const
    for (let i = 0; i < 2; i++) await groups.put({ ...group, ...settings })
    expect([await groups.get(group), await groups.list({ ...group, role: '' }, 1)]).toHaveLength(2)
    expect([await groups.of(participant), await groups.forget(participant)]).toEqual([['all'], 1])
    expect(await groups.remove(group)).toBe(true)
    const change = { actor: { kind: 'cli', name: '' }, action: 'x', subject: '', detail: {} } as const
    await audit.add({ ...change, id: newAuditId(Date.now()), product: 'clinic', participant })
    expect(await audit.list({ product: 'clinic', before: undefined, limit: 1 })).toMatchObject([{ action: 'x' }])
    expect(await audit.forget(participant)).toBeGreaterThan(0)
    expect(await audit.prune(auditIdAt(Date.now() + 1_000))).toBeGreaterThan(0)
    for (const busy of ['allow', 'reject'] as const) {
      await products.changeSettings('clinic', {
        busy,
        revealBusy: false,
        ringTimeoutMs: null,
        media: 'all',
        presence: 'off',
      })
    }
    await products.listSettings()
    await products.policies()
    for (const before of [1, 2]) await products.revoke('hash', before, 5)
    await products.revocations(0)
    // In a later millisecond.
    await Bun.sleep(2)
    await products.revoke('later', 9, 6)
    expect(await products.pruneRevocations(9)).toBeGreaterThan(0)
    const refused = { ...seen, id: 'a2', at: 0 }
    for (let time = 0; time < 2; time++) await timeline.add([seen, refused])
    await timeline.of(seen)
    await timeline.refusedOf(participant, 1)
    await timeline.forgetParticipant(participant)
    expect(await timeline.pruneRefused(1)).toBeGreaterThan(0)
    expect(await prune(Date.now() + 1000)).toBeGreaterThan(0)
    await serve(url)
  } finally {
    await close()
  }
}

/** As one of several nodes. */
async function serve(url: string): Promise<void> {
  const errors: unknown[] = []
  const onError = (error: unknown) => errors.push(error)
  const nodes = await openPostgresNodes({
    url,
    nodeId: 'a',
    isGone: () => true,
    saysItLives: () => false,
    isReady: () => true,
    sockets: () => 0,
    keptMs: 86_400_000,
    onDeath: () => {},
    onError,
  })
  try {
    await nodes.start()
    for (const ms of [5_000, -5_000]) await nodes.jumps.add(ms, nodes.jumps.sum())
  } finally {
    await nodes.stop()
  }
  if (errors.length > 0) throw errors[0]
}

test('a role that may not make the tables says so, and who has to', async () => {
  const box = createBox()
  try {
    const { code, out, err } = await box.run('serve', { env: { DATABASE_URL: asService } })
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('this role may not change it: run a command of this version')
    expect((await box.run('keys list', { env: { DATABASE_URL: asOwner } })).code).toBe(0)
  } finally {
    await box.clean()
  }
})

test('the rights of the documents are enough for the service, its commands and a copy', async () => {
  for (const statement of statementsOf(grants)) await server.query(statement, asOwner)
  await useAll(asService)
  const box = createBox()
  try {
    const service = await box.serve({ env: { DATABASE_URL: asService } })
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
  } finally {
    await box.clean()
  }
  for (const statement of [
    'CREATE TABLE t (x int)',
    'CREATE TEMP TABLE t (x int)',
    'DROP TABLE calls',
    'TRUNCATE calls',
  ]) {
    const refused = await server.query(statement, asService).then(() => 'done', String)
    expect([statement, refused]).toEqual([statement, expect.stringMatching(/permission denied|must be owner/)])
  }
})

/** Each right by itself, as the statement that takes it away and the one that gives it back. */
const rights = statementsOf(grants).flatMap((statement) => {
  const [, names = '', rest = ''] = /^GRANT (.*?) ON (.*) TO ringwire_service$/.exec(statement) ?? []
  return names.split(', ').flatMap((name) => (name === '' ? [] : [{ name, on: rest }]))
})

async function connected(): Promise<number> {
  const [row] = await server.query(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE usename = 'ringwire_service'`)
  return row.n
}

for (const { name, on } of rights) {
  test(`${name} on ${on} is needed`, async () => {
    await server.query(`REVOKE ${name} ON ${on} FROM ringwire_service`, asOwner)
    // A connection that was closed may take a moment to go, and a copy is refused until then.
    await until('every connection is gone', async () => (await connected()) === 0, 30_000)
    const failed = await useAll(asService).then(() => 'nothing failed', String)
    await server.query(`GRANT ${name} ON ${on} TO ringwire_service`, asOwner)
    expect(failed).toMatch(/permission denied|no schema has been selected/)
  })
}

test('every right was taken away once', () => expect(rights.length).toBe(89))
