import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import type { Link } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { numbersOf, openReady, pushes, relays, type Seen } from '../contracts/session-parts.ts'
import { startCluster } from '../support/redis.ts'
import { RedisProxy } from '../support/redis-proxy.ts'
import { createSessionNodes, outcomeOf, type SessionNode, until } from './session-nodes.ts'

/** Three masters, and of each the connections can fall silent: it runs what it is asked for, and nobody learns of it. */
interface Master {
  readonly admin: Redis
  readonly proxy: RedisProxy
  readonly silent: Set<Link>
  /** New connections are silent, too. */
  hangs: boolean
}

const nodes = createSessionNodes()
let cluster: Awaited<ReturnType<typeof startCluster>>
let masters: Master[] = []
let node: SessionNode
beforeAll(async () => {
  cluster = await startCluster()
  masters = await Promise.all(cluster.servers.map(({ port, url }) => startMaster(port, url)))
  // Its clients are sent to the proxies.
  const ports = masters.map(({ proxy }) => Number(new URL(proxy.url).port))
  await Promise.all(masters.map(({ admin }, i) => admin.config('SET', 'cluster-announce-port', ports[i]!)))
  const isKnown = async ({ admin }: Master) => {
    const slots = (await admin.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][]
    return slots.every(([, , [, port]]) => ports.includes(port))
  }
  await until('every master has heard of the proxies', async () => {
    return (await Promise.all(masters.map(isKnown))).every(Boolean)
  })
}, 240_000)
afterAll(async () => {
  for (const { admin } of masters) admin.disconnect()
  await Promise.all(masters.map(({ proxy }) => proxy.stop()))
  await cluster.stop()
})
beforeEach(async () => {
  node = await nodes.start(cluster.url)
})
afterEach(async () => {
  await Promise.all(masters.map(speak))
  await nodes.closeAll()
})

async function startMaster(port: number, url: string): Promise<Master> {
  const silent = new Set<Link>()
  const proxy = await new RedisProxy(port, (bytes, link) => {
    if (master.hangs) silent.add(link)
    return silent.has(link) ? undefined : bytes
  }).start()
  const master: Master = { admin: new Redis(url), proxy, silent, hangs: false }
  return master
}

function silence({ proxy, silent }: Master): void {
  for (const link of proxy.links) silent.add(link)
}

/** Connections on which something was not heard go. */
async function speak(master: Master): Promise<void> {
  const { admin, silent } = master
  master.hangs = false
  if (silent.size > 0) await cut(admin)
  silent.clear()
}

async function cut(admin: Redis): Promise<void> {
  for (const type of ['normal', 'pubsub']) await admin.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes')
}

/** Sessions of two masters, each with its master and its key there. */
async function openOnTwo(): Promise<{ seen: Seen; master: Master; key: string }[]> {
  const found = new Map<Master, { seen: Seen; master: Master; key: string }>()
  await until('participants of two masters', async () => {
    const seen = await openReady(node.sessions, { extended: false })
    for (const master of masters) {
      const [key] = await master.admin.keys(`rw:*:s:${seen.id}`)
      if (key !== undefined) found.set(master, { seen, master, key })
    }
    return found.size >= 2
  })
  return [...found.values()]
}

test('[ORD2] an append whose reply was lost with the connection is not sent a second time', async () => {
  const [at] = await openOnTwo()
  if (at === undefined) throw new Error('unreachable')
  const { seen, master, key } = at
  // The first one brings the script, where the master does not have it yet.
  await node.sessions.append(seen.id, pushes.relay('c', 1))
  silence(master)
  const appended = outcomeOf(() => node.sessions.append(seen.id, pushes.relay('c', 2)))
  await until('the store has it', async () => (await master.admin.hget(key, 'q')) === '2')
  await cut(master.admin)
  expect(await appended).toBe('unknown')
  const isSent = async () => (await outcomeOf(() => node.sessions.append(seen.id, pushes.relay('c', 3)))) === 'sent'
  await until('its master answers again', isSent)
  await until('all are told', () => seen.socket.told.length >= 3)
  expect(await master.admin.hget(key, 'q')).toBe('3')
  expect(numbersOf(seen.socket)).toEqual([1, 2, 3])
})

test('[ORD2] what nobody said again is told when a connection to one master is there again', async () => {
  const [at] = await openOnTwo()
  if (at === undefined) throw new Error('unreachable')
  const { seen, master, key } = at
  await node.sessions.append(seen.id, pushes.relay('d', 1))
  silence(master)
  const appended = outcomeOf(() => node.sessions.append(seen.id, pushes.ringing('c', 1, 2)))
  await until('the store has it', () => master.admin.hexists(key, 'Rc'))
  await cut(master.admin)
  expect(await appended).toBe('unknown')
  // The first question may come too early, and is asked again after 3 s; idle sessions are looked at once a minute.
  await until('it is told', () => seen.socket.told.length > 1)
  expect(numbersOf(seen.socket)).toEqual([1, 2])
})

test('[ORD2] what was said while a subscription went to another server of the cluster is told', async () => {
  const other = await nodes.start(cluster.url)
  const [at] = await openOnTwo()
  if (at === undefined) throw new Error('unreachable')
  const { seen } = at
  // News on their way are lost, wherever the node hears them.
  for (const { proxy, silent } of masters) for (const link of proxy.links) if (proxy.subscribes(link)) silent.add(link)
  await other.sessions.append(seen.id, pushes.ringing('c', 1, 1))
  expect(seen.socket.told).toEqual([])
  for (const { admin, silent } of masters) {
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    silent.clear()
  }
  await until('it is told', () => seen.socket.told.length > 0)
  expect(numbersOf(seen.socket)).toEqual([1])
})

test('[ORD2] a master that hangs takes no connection to another one away', async () => {
  const [sick, healthy] = await openOnTwo()
  if (sick === undefined || healthy === undefined) throw new Error('unreachable')
  silence(sick.master)
  sick.master.hangs = true
  let isOver = false
  const hanging: Promise<string>[] = []
  const outcomes = new Set<string>()
  let appended = 0
  const append = async () => {
    appended++
    // A connection on which is written all the time is not given up by itself.
    hanging.push(outcomeOf(() => node.sessions.append(sick.seen.id, pushes.relay('c', appended))))
    outcomes.add(await outcomeOf(() => node.sessions.append(healthy.seen.id, pushes.relay('c', appended))))
    await Bun.sleep(10)
  }
  await append()
  void hanging[0]?.finally(() => {
    isOver = true
  })
  while (!isOver) await append()
  expect(await hanging[0]).toBe('unknown')
  // What waits is given up, and what follows from that is done by now or in a moment.
  for (let n = 0; n < 50; n++) await append()
  expect([...outcomes]).toEqual(['sent'])
  await speak(sick.master)
  await until('the other one is there again', async () => {
    return String(await outcomeOf(() => relays(node.sessions, sick.seen.id, 'c', [0]))) === 'sent'
  })
  await Promise.all(hanging)
}, 240_000)
