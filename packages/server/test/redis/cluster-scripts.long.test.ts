import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Cluster, Redis } from 'ioredis'
import { createStore } from '../../src/stores/redis/connection.ts'
import { slotOf } from '../../src/stores/redis/slots.ts'
import { startCluster } from '../support/redis.ts'

let cluster: Awaited<ReturnType<typeof startCluster>>
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

test('scripts that are sent together run, though the slot of one has moved and no server has scripts any more', async () => {
  const store = createStore(cluster.url, (error) => console.error(error))
  const servers = cluster.servers.map(({ url }) => new Redis(url))
  try {
    await store.ready()
    const client = store.client as Cluster
    const masterOf = (key: string) => client.slots[slotOf(key)]?.[0]
    const keys = Array.from({ length: 100 }, (_, n) => `rw:o:${n}`)
    const [stays = ''] = keys
    const moves = keys.find((key) => slotOf(key) !== slotOf(stays) && masterOf(key) === masterOf(stays)) ?? ''
    const other = servers.find(({ options: { host, port } }) => `${host}:${port}` !== masterOf(stays))
    const id = await other?.cluster('MYID')
    // It has no keys, so nothing has to be carried along.
    for (const server of servers) await server.cluster('SETSLOT', slotOf(moves), 'NODE', String(id))
    for (const server of servers) await server.script('FLUSH')
    // The client knows nothing of that yet: both go to one server, in one pipeline.
    expect(masterOf(moves)).toBe(masterOf(stays))
    expect(await Promise.all([stays, moves].map((key) => store.run('row', [key], [])))).toEqual([[], []])
    expect(masterOf(moves)).not.toBe(masterOf(stays))
  } finally {
    store.close()
    for (const server of servers) server.disconnect()
  }
})
