import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { created, participant, ringing } from '../../src/ports/call-store.fixture.ts'
import { newDeliveryId } from '../../src/ports/webhooks.ts'
import { openHarness, type SqliteHarness } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { attempted, endpoint, registerWebhooksContract } from './webhooks.ts'

registerWebhooksContract('SQLite', async () => {
  let now = 1_000_000
  const harness = await openHarness({ clock: { now: () => now } })
  return {
    store: harness.store,
    forge: harness.forge,
    webhooks: () => harness.stores().webhooks,
    // No other process claims.
    other: () => harness.stores().webhooks,
    async pass(ms) {
      now += ms
    },
    reopen: harness.reopen,
    child: () => ['sqlite', harness.dataDir],
    close: harness.close,
  }
})

/* What commits write for endpoints is spread later, 200 steps at a time. */
let harness: SqliteHarness
const hooks = () => harness.stores().webhooks
const ann = participant('ann')
const bodiesOf = async (id: string) => (await hooks().claim(new Map([[id, 1_000]]))).claimed.map(({ body }) => body)
async function commit(count: number, caller = ann): Promise<void> {
  for (let n = 0; n < count; n++) {
    const call = ringing(caller)
    await harness.store().transition(call, () => ({ steps: [created(call)] }))
  }
}

beforeEach(async () => {
  harness = await openHarness()
})
afterEach(() => harness.close())

test('[SRV2] who is erased is erased from what is just being spread, and from what is not yet', async () => {
  const one = endpoint()
  await hooks().addEndpoint(one)
  await hooks().refresh()
  await commit(250)
  const spreading = hooks().claim(new Map([['we_other', 1]]))
  // It has asked for it by then, and was not answered.
  for (let n = 0; n < 5; n++) await undefined
  expect(await hooks().erase(ann)).toBe(250)
  await spreading
  const bodies = await bodiesOf(one.id)
  expect(bodies).toHaveLength(250)
  expect(bodies.filter((body) => body.includes('"ann"'))).toEqual([])
})

test('[HOOK3] an endpoint that others have written much for is asked for until nothing is left', async () => {
  const [busy, quiet] = [endpoint(), endpoint({ product: 'quiet' })]
  await hooks().addEndpoint(busy)
  await hooks().addEndpoint(quiet)
  await hooks().refresh()
  await commit(450)
  await commit(1, { ...ann, product: 'quiet' })
  const wanted = new Map([
    [busy.id, 1],
    [quiet.id, 1],
  ])
  const first = await hooks().claim(wanted)
  expect([first.claimed.map(({ endpointId }) => endpointId), first.isMore]).toEqual([[busy.id], true])
  const rest = new Map([[quiet.id, 1]])
  expect(await hooks().claim(rest)).toEqual({ claimed: [], isMore: true })
  const last = await hooks().claim(rest)
  expect([last.claimed.length, last.isMore]).toEqual([1, false])
})

test('[HOOK1] a command beside the service lists and removes also what is not spread yet', async () => {
  const [one, other] = [endpoint(), endpoint()]
  await hooks().addEndpoint(one)
  await hooks().addEndpoint(other)
  await hooks().refresh()
  await commit(3)
  const beside = await openSqlite({ dataDir: harness.dataDir, synchronous: 'NORMAL', exclusive: false })
  try {
    const page = { status: undefined, limit: 10, before: undefined }
    expect(await beside.webhooks.deliveries({ ...page, endpointId: one.id })).toHaveLength(3)
    await commit(1)
    expect(await beside.webhooks.removeEndpoint(one.product, one.id)).toBe(true)
    expect(await hooks().deliveries({ ...page, endpointId: one.id })).toEqual([])
    expect(await hooks().deliveries({ ...page, endpointId: other.id })).toHaveLength(4)
  } finally {
    await beside.close()
  }
})

test('[HOOK3] thousands of events of one person, which wait behind a failed one, keep no other event back', async () => {
  const one = endpoint()
  await hooks().addEndpoint(one)
  const of = { endpointId: one.id, type: 'participant.online', body: '{}', createdAt: Date.now() }
  const made = (subject: string, version: number) => ({ ...of, id: newDeliveryId(Date.now()), subject, version })
  const ofOne = Array.from({ length: 1_000 }, (_, index) => made('one', index + 1))
  const other = made('other', 1)
  await hooks().add([...ofOne, other])
  const next = async () => (await hooks().claim(new Map([[one.id, 10]]))).claimed.map(({ id }) => id)
  const [first = ''] = await next()
  expect(first).toBe(ofOne[0]?.id ?? 'none')
  await hooks().settle([attempted(first, { outcome: 'pending', afterMs: 60_000, responseStatus: 500 })])
  expect(await next()).toEqual([other.id])
  // It failed for good, and somebody asks for it again: then those behind it are due earlier than it is.
  await hooks().settle([attempted(first, { outcome: 'failed' }), attempted(other.id)])
  const changed = new Database(harness.database)
  changed.run("UPDATE webhook_deliveries SET due_at = 0 WHERE status = 'pending'")
  changed.close()
  expect(await hooks().retry(one.id, first)).toBe(true)
  for (let n = 0; n < 10 && (await hooks().putOff([one.id])); n++);
  expect(await next()).toEqual([first])
})

test('[HOOK3] a read that fails in the middle of a claim leaves nothing claimed that nobody has', async () => {
  const [first, second] = [endpoint(), endpoint()]
  for (const one of [first, second]) await hooks().addEndpoint(one)
  await hooks().refresh()
  await commit(1)
  const wanted = new Map([first, second].map(({ id }) => [id, 5] as const))
  // The first claim spreads what was committed.
  const none = new Map([['we_other', 1]])
  expect(await hooks().claim(none)).toEqual({ claimed: [], isMore: false })
  const beside = new Database(harness.database)
  let isBroken = false
  const breaking = new Map(wanted)
  breaking[Symbol.iterator] = function* () {
    for (const one of wanted) {
      yield one
      if (!isBroken) beside.run('ALTER TABLE webhook_deliveries RENAME TO away')
      isBroken = true
    }
    return undefined
  } as (typeof breaking)[typeof Symbol.iterator]
  const claiming = Promise.resolve(hooks().claim(breaking))
  const claimed = await claiming.then(
    (taken) => taken.claimed,
    () => [],
  )
  beside.run('ALTER TABLE away RENAME TO webhook_deliveries')
  beside.close()
  const rest = (await hooks().claim(wanted)).claimed
  expect(isBroken).toBe(true)
  expect([...claimed, ...rest].map(({ endpointId }) => endpointId).toSorted()).toEqual([first.id, second.id])
})
