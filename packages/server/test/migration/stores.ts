import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { type Call, isLive } from '../../src/call/call.ts'
import type { CallCommand } from '../../src/call/command.ts'
import { actorOf, callLife, durations, inviteCommand } from '../../src/call/decide.fixture.ts'
import { decide } from '../../src/call/decide.ts'
import { decideInvite } from '../../src/call/invite.ts'
import type { TimelineRow } from '../../src/call/observed.ts'
import { newAuditId } from '../../src/ports/audit.ts'
import { liveIn, overSince } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import type { Device } from '../../src/ports/devices.ts'
import type { Group } from '../../src/ports/groups.ts'
import type { ProductStore } from '../../src/ports/product-store.ts'
import { participantHash } from '../../src/ports/session-id.ts'
import type { TimelineStore } from '../../src/ports/timeline.ts'
import { hashSecret } from '../../src/products/product-auth.ts'
import { databaseFile } from '../../src/stores/sqlite/data-dir.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { attempted, endpoint as webhook } from '../contracts/webhooks.ts'

/** Names of every kind: what JSON, SQL or a locale could change. */
const odd = { metadata: { note: 'ä "quoted" \\ \u2028 😀', n: 1e21 }, contextId: "it's; --" }

/** Calls in every stage of their lives, keys with a rotated secret, settings. */
export async function fill(dataDir: string, lives: number): Promise<void> {
  const opened = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: true })
  const { calls, products, webhooks, devices, groups, audit, timeline, close } = opened
  const endpoint = webhook({
    product: 'clinic',
    events: null,
    oldSecret: 'whsec_b2xk',
    oldSecretUntil: 1_700_000_000_000,
  })
  await webhooks.addEndpoint(endpoint)
  await webhooks.addEndpoint(webhook({ product: 'shop', events: ['call.missed'], enabled: false }))
  await webhooks.refresh()
  await Promise.all(
    Array.from({ length: lives }, async (_, index) => {
      const steps = callLife()
      // Four of ten are left in the middle.
      const length = index % 10 < 4 ? 1 + (index % 10) : steps.length
      for (const step of steps.slice(0, length)) await step(calls)
    }),
  )
  const [first] = await liveIn(calls)
  if (first !== undefined) {
    await calls.transition(first, (call) => {
      if (call === undefined) throw new Error('There is no such call.')
      const at = { type: 'place_settled', at: Date.now(), by: null, notices: [] } as const
      return { steps: [{ call: { ...call, ...odd, version: call.version + 1 }, event: at }] }
    })
  }
  const outcomes = ['delivered', 'failed', 'pending'] as const
  const { claimed } = await webhooks.claim(new Map([[endpoint.id, outcomes.length]]))
  await webhooks.settle(
    claimed.map(({ id }, index) => attempted(id, { outcome: outcomes[index] ?? 'pending', afterMs: 60_000 })),
  )
  await products.putKey({ keyId: 'k1', secretHash: hashSecret('one'), products: ['clinic', 'shop'], origin: 'cli' }, 1)
  await products.rotateKey('k1', hashSecret('two'), Date.now() + 3_600_000, 2)
  await products.putKey({ keyId: 'k2', secretHash: hashSecret('three'), products: ['clinic'], origin: 'cli' }, 3)
  await products.setDisabled('k2', true, 4)
  await products.putKey({ keyId: 'k3', secretHash: hashSecret('four'), products: ['shop'], origin: 'bootstrap' }, 5)
  await products.changeSettings('clinic', {
    busy: 'reject',
    revealBusy: true,
    ringTimeoutMs: 30_000,
    media: 'relay',
    presence: 'off',
  })
  await products.changeSettings('shop', {
    busy: 'allow',
    revealBusy: false,
    ringTimeoutMs: null,
    media: 'all',
    presence: 'off',
  })
  await devices.put(device)
  await groups.put(group)
  const { role, userId } = device.participant
  const change = { actor: { kind: 'operator', name: 'ä "quoted" 😀' }, action: 'key.rotate', subject: 'k1' } as const
  await audit.add({ ...change, id: newAuditId(7), product: '', participant: null, detail: {} })
  await audit.add({ ...change, id: newAuditId(8), product: 'clinic', participant: { role, userId }, detail: odd })
  await groups.put({ ...group, name: 'nobody', members: [] })
  await timeline.add(
    Array.from({ length: 1_100 }, (_, n) => ({ ...seen, id: `a${n}` })).map((row, n) => ({
      ...row,
      callUuid: crypto.randomUUID(),
      at: n,
    })),
  )
  await timeline.add([seen])
  const over = (await overSince(calls, 0)).map(({ call }) => call)
  for (const call of [first, ...over].filter((call) => call !== undefined)) await timeline.add(entriesOf(call))
  await products.revoke(participantHash(device.participant), 1_700_000_000_000, 6)
  await close()
}

/**
 * Calls to a group of five: one that was answered and is over, one that rings, and one that nobody answered in turn. In each of
 * them the second member declined and the third has left.
 */
export async function fillGroupCalls(dataDir: string, members: readonly string[]): Promise<void> {
  const { calls, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: true })
  const [caller, ...called] = ['caller', ...members].map((userId, n) =>
    actorOf({ product: 'clinic', role: n === 0 ? 'patient' : 'doctor', userId }),
  )
  const [first, second] = called
  if (caller === undefined || first === undefined || second === undefined) throw new Error('five members')
  const begin = async (name: string, memberRingMs?: number) => {
    const callUuid = crypto.randomUUID()
    const group = { name, members, isBusy: false, ...(memberRingMs !== undefined && { memberRingMs }) }
    const command = { ...inviteCommand(caller, { ...first.participant, userId: '' }, callUuid), group }
    const now = Date.now()
    await calls.invite(caller.participant, caller.participant, callUuid, (found) => decideInvite(found, command, now))
    return async (...commands: readonly CallCommand[]) => {
      for (const each of commands)
        await calls.transition({ product: 'clinic', callUuid }, (call) => decide(call, each, Date.now(), durations))
    }
  }
  const declined = { type: 'reject', actor: second, reason: null, rung: [] } as const
  const left = { type: 'leave', userIds: members.slice(2, 3) } as const
  const answered = await begin('answered')
  await answered(declined, left, { type: 'accept', actor: first }, { type: 'end', actor: first, reason: null })
  const rings = await begin('rings')
  await rings(declined, left)
  const inTurn = await begin('in turn', 5_000)
  const turn = { type: 'turn', member: first.participant.userId, seen: 1 } as const
  await inTurn(turn, declined, left, { type: 'cancel', actor: caller, reason: null })
  await close()
}

/** Somebody whose phone is woken, and whose tokens were taken back. */
export const device: Device = {
  participant: { product: 'clinic', role: 'patient', userId: "o'hara" },
  deviceId: 'phone',
  address: { platform: 'fcm', token: 'ä "quoted" \\ 😀' },
  registeredAt: Date.now(),
}

/** A group with odd names, in an order of its own. */
export const group: Group = {
  ...{ product: 'clinic', role: 'doctor', name: "o'hara's 😀" },
  ...{ members: ['zoë', 'ann "quoted"', 'ben'], strategy: 'in_turn', memberRingMs: 20_000, ringMs: 90_000 },
}

/** What was seen of a call: of each side, and of none. */
function entriesOf({ product, callUuid, startedAt }: Call): TimelineRow[] {
  return (['caller', 'callee', null] as const).map((side, n) => ({
    ...{
      product,
      callUuid,
      id: `b${n}`,
      at: startedAt + n,
      what: 'rung',
      side,
      detail: { note: 'ä "quoted" \\ 😀', n },
    },
    ...(side !== null && { sessionId: `session of the ${side}`, deviceId: "o'hara's" }),
  }))
}

/** An entry of a timeline that is of no call. */
export const seen: TimelineRow = {
  product: 'clinic',
  callUuid: '00000000-0000-4000-8000-000000000000',
  id: 'a1',
  at: 1_700_000_000_000,
  what: 'refused',
  side: 'caller',
  asker: { role: 'patient', userId: "o'hara 😀" },
  detail: { code: 'CALLEE_BUSY', note: 'ä "quoted" \\' },
}

/** Many calls with their events at once, each with nearly 4 KiB of text. */
export async function fillLarge(dataDir: string, lives: number): Promise<void> {
  await fill(dataDir, 10)
  const db = new Database(join(dataDir, databaseFile))
  const pad = 'x'.repeat(800)
  const columns = (table: string) =>
    db
      .query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`)
      .all()
      .map(({ name }) => name)
  const copied = columns('calls').filter((name) => !['id', 'call_uuid', 'context_id'].includes(name))
  const events = columns('call_events').filter((name) => !['seq', 'call_id', 'notices'].includes(name))
  const [template] = db.query<{ id: number }, []>('SELECT max(id) AS id FROM calls').all()
  const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${lives})`
  const before = template?.id ?? 0
  db.run(`
    INSERT INTO calls (${copied}, call_uuid, context_id) ${numbers}
    SELECT ${copied}, printf('00000000-0000-4000-8000-%012x', i), '${pad}' FROM calls, n WHERE id = ${before}`)
  db.run(`
    INSERT INTO call_events (call_id, ${events}, notices)
    SELECT calls.id, ${events.map((name) => `e.${name}`)}, '["${pad}"]'
    FROM calls JOIN call_events e ON e.call_id = ${before} WHERE calls.id > ${before}`)
  db.close()
}

interface Stores {
  readonly calls: CallStore
  readonly products: ProductStore
  readonly timeline: TimelineStore
}

/** Everything that the ports give, for each of the calls named. */
export async function contentOf({ calls, products, timeline }: Stores, refs: readonly Call[]) {
  const known = await Promise.all(
    refs.map(async (ref) => ({
      ...{ call: await calls.load(ref), steps: await calls.stepsAfter(ref, 0) },
      entries: await timeline.of(ref),
    })),
  )
  return { known, keys: await products.listKeys(0), settings: await products.listSettings() }
}

/** Every call of a data directory. */
export async function callsOf(dataDir: string): Promise<Call[]> {
  const { calls, close } = await openSqlite({ dataDir, synchronous: 'NORMAL', exclusive: false })
  const over = (await overSince(calls, 0)).map(({ call }) => call)
  const live = await liveIn(calls)
  await close()
  return [...live, ...over]
}

export const liveOf = (calls: readonly Call[]) => calls.filter(isLive).length
