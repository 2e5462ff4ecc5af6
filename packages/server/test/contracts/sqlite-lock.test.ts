import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { participant } from '../../src/ports/call-store.fixture.ts'
import { newDeliveryId } from '../../src/ports/webhooks.ts'
import { openHarness, type SqliteHarness } from '../../src/stores/sqlite/open.fixture.ts'
import { attempted, endpoint } from './webhooks.ts'

/*
 * Nothing that a request writes waits on the thread of the event loop for the lock of the file. The lock is given back in
 * the next turn of the loop: code that waits for it on that thread never gets it.
 */
let harness: SqliteHarness
let other: Database
beforeEach(async () => {
  harness = await openHarness()
  other = new Database(harness.database, { readwrite: true })
})
afterEach(async () => {
  other.close()
  await harness.close()
})

/** Begins to write while somebody else has the lock. */
async function whileLocked<T>(write: () => T): Promise<Awaited<T>> {
  other.run('BEGIN IMMEDIATE')
  setImmediate(() => other.run('COMMIT'))
  return await write()
}

test('devices are registered and forgotten', async () => {
  const { devices } = harness.stores()
  const device = {
    participant: participant('ann'),
    deviceId: 'phone',
    address: { platform: 'fcm', token: 't' },
  } as const
  await whileLocked(() => devices.put({ ...device, registeredAt: Date.now() }))
  expect(await devices.of(device.participant, Date.now())).toHaveLength(1)
  expect(await whileLocked(() => devices.forget(device.participant, 'phone'))).toBe(true)
  expect(await whileLocked(() => devices.forgetAll(device.participant))).toBe(0)
})

test('[SRV2] tokens are taken back, and revocations are removed', async () => {
  const { products } = harness.stores()
  await whileLocked(() => products.revoke('one', 1, 1))
  await whileLocked(() => products.revoke('two', 1, 2))
  expect(await products.revocations(0)).toHaveLength(2)
  // The one that was written last stays.
  expect(await whileLocked(() => products.pruneRevocations(2))).toBe(1)
})

test('[HOOK1] endpoints are added, changed and removed, and deliveries are added and retried', async () => {
  const { webhooks } = harness.stores()
  const one = endpoint()
  await whileLocked(() => webhooks.addEndpoint(one))
  expect(await whileLocked(() => webhooks.changeEndpoint(one.product, one.id, { enabled: false }))).toEqual({
    ...one,
    enabled: false,
  })
  const id = newDeliveryId(Date.now())
  const made = { id, endpointId: one.id, subject: 's', version: 1, type: 'webhook.test', body: '{}' }
  await whileLocked(() => webhooks.add([{ ...made, createdAt: Date.now() }]))
  await webhooks.settle([attempted(id, { outcome: 'failed' })])
  expect(await whileLocked(() => webhooks.retry(one.id, id))).toBe(true)
  expect(await whileLocked(() => webhooks.removeEndpoint(one.product, one.id))).toBe(true)
})
