import { afterAll, beforeAll, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { signsTag } from '../../src/stores/redis/keys.ts'
import { slotOf } from '../../src/stores/redis/slots.ts'
import { holder, newNode, openEphemerals, registerEphemeralsContract } from '../contracts/ephemerals.ts'
import { type RedisCluster, startCluster } from '../support/redis.ts'

let cluster: RedisCluster
let admins: readonly Redis[]
beforeAll(async () => {
  cluster = await startCluster()
  admins = cluster.servers.map(({ url }) => new Redis(url))
}, 240_000)
afterAll(async () => {
  for (const admin of admins) admin.disconnect()
  await cluster.stop()
})

registerEphemeralsContract(
  'a Redis Cluster',
  async () => ({ kind: 'redis', url: cluster.url, close: async () => {} }),
  true,
)

test('signs are taken again where connections were ended, and go along where another master has them', async () => {
  const [one, two] = [await openEphemerals('redis', cluster.url), await openEphemerals('redis', cluster.url)]
  const names = [newNode('one'), newNode('two')]
  const heard = await Promise.all([one, two].map((opened, i) => holder(opened, names[i]!)))
  const see = async () => {
    const looks = await Promise.all([one, two].map(({ ephemerals }) => ephemerals.look(names).catch(() => undefined)))
    return looks.map((look) => ({ origin: look?.origin, count: look?.held.size }))
  }
  const [{ origin: before } = { origin: '' }] = await see()
  for (const admin of admins) await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await until('both were lost and taken again', () => heard.every((each) => each.join() === 'held,lost,held'))
  await until('both see both', async () => (await see()).every(({ count }) => count === 2))

  const slot = slotOf(signsTag)
  const ids = await Promise.all(admins.map(async (admin) => String(await admin.call('CLUSTER', 'MYID'))))
  const slots = (await admins[0]!.call('CLUSTER', 'SLOTS')) as [number, number, [string, number, string]][]
  const owner = slots.find(([from, to]) => from <= slot && slot <= to)?.[2][2]
  const next = ids.find((id) => id !== owner)!
  // The new master says it last: its word is newer than that of the other one.
  for (const i of [...ids.keys()].sort((i) => (ids[i] === next ? 1 : -1)))
    await admins[i]!.call('CLUSTER', 'SETSLOT', slot, 'NODE', next)
  await admins[ids.indexOf(next)]!.call('CLUSTER', 'BUMPEPOCH')
  await until('both see both at the other master', async () =>
    (await see()).every(({ origin, count }) => count === 2 && origin !== before),
  )
  await Promise.all([one.close(), two.close()])
}, 120_000)
