import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Link } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { openReady, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { comeBack, numbersOf, pushes, relays, seqsOf, upTo } from '../contracts/session-parts.ts'
import { startCluster } from '../support/redis.ts'
import { RedisProxy } from '../support/redis-proxy.ts'
import { createSessionNodes, outcomeOf, type SessionNode } from './session-nodes.ts'

/** Three masters, and of each the connections can fall silent: it runs each command, and nobody learns of it. */
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

/** Sessions of two masters, each with its master and the key of its log there. */
async function openOnTwo(): Promise<{ seen: Seen; master: Master; log: string }[]> {
  const found = new Map<Master, { seen: Seen; master: Master; log: string }>()
  await until('participants of two masters', async () => {
    const seen = await openReady(node.sessions)
    await stepsOf(node.sessions).hold(seen.id, 'c', true)
    for (const master of masters) {
      const [row] = await master.admin.keys(`rw:*:o:${seen.id}`)
      if (row !== undefined) found.set(master, { seen, master, log: row.replace(':o:', ':e:') })
    }
    return found.size >= 2
  })
  return [...found.values()]
}

/** How many frames were ever posted to the inboxes of nodes. */
async function posted(): Promise<number> {
  let count = 0
  for (const { admin } of masters) {
    for (const key of await admin.keys('rw:n:*')) {
      const about = (await admin.xinfo('STREAM', key)) as (string | number)[]
      count += Number(about[about.indexOf('entries-added') + 1])
    }
  }
  return count
}

test('[ORD2] a save whose reply was lost with the connection leaves nothing twice', async () => {
  const [at] = await openOnTwo()
  if (at === undefined) throw new Error('unreachable')
  const { seen, master, log } = at
  await relays(node.sessions, seen.id, 'c', [1])
  await node.settled()
  silence(master)
  await relays(node.sessions, seen.id, 'c', [2])
  const saved = outcomeOf(async () => node.save())
  await until('the store has it', async () => (await master.admin.llen(log)) === 2)
  await cut(master.admin)
  expect(await saved).toBe('unknown')
  await until('its master answers again', async () => (await outcomeOf(async () => node.save())) === undefined)
  await relays(node.sessions, seen.id, 'c', [3])
  const other = await nodes.start(cluster.url)
  const back = await comeBack(other.sessions, seen, 0)
  await other.settled()
  expect(back && [numbersOf(back.socket), seqsOf(back.socket)]).toEqual([upTo(3), upTo(3)])
})

test('[ORD2] what was posted to a node, while no server could be heard, is heard once, by whoever reads on', async () => {
  const other = await nodes.start(cluster.url)
  const [at] = await openOnTwo()
  if (at === undefined) throw new Error('unreachable')
  const { seen } = at
  // From now on it knows whom to ask.
  expect(await other.sessions.append(seen.id, pushes.relay('c', 1))).toBe('sent')
  const before = await posted()
  for (const master of masters) silence(master)
  const appended = outcomeOf(() => other.sessions.append(seen.id, pushes.relay('c', 2)))
  await until('it is posted', async () => (await posted()) > before)
  expect(numbersOf(seen.socket)).toEqual([1])
  for (const { admin } of masters) await cut(admin)
  expect(['unknown', 'sent']).toContain(await appended)
  await until('it is told', () => seen.socket.told.length > 1)
  await until('the other one can be asked again', async () => {
    return (await outcomeOf(() => other.sessions.append(seen.id, pushes.relay('c', 3)))) === 'sent'
  })
  await node.settled()
  expect(numbersOf(seen.socket).slice(0, 3)).toEqual(upTo(3))
  expect(numbersOf(seen.socket).filter((n) => n === 2)).toEqual([2])
})

test('[ORD2] connections that end again and again: whatever is answered with `sent` is told once, in order', async () => {
  const other = await nodes.start(cluster.url)
  const [at] = await openOnTwo()
  if (at === undefined) throw new Error('unreachable')
  const { seen } = at
  const sent: number[] = []
  for (let n = 1; n <= 60 || sent.length < 20; n++) {
    if (n % 7 === 0 && n <= 60) for (const { admin } of masters) void cut(admin)
    const outcome = await outcomeOf(() => other.sessions.append(seen.id, pushes.relay('c', n)))
    if (outcome === 'sent') sent.push(n)
    // Nothing was done where it says so; else nobody knows.
    else expect(['unknown', 'unavailable', 'volatile']).toContain(String(outcome))
    await Bun.sleep(5)
  }
  await node.settled()
  const told = numbersOf(seen.socket)
  expect(told).toEqual([...new Set(told)].sort((a, b) => a - b))
  expect(sent.filter((n) => !told.includes(n))).toEqual([])
})

test('[EXT3] a master that hangs: who has its socket here goes on, also where another master has the session', async () => {
  const [sick, healthy] = await openOnTwo()
  if (sick === undefined || healthy === undefined) throw new Error('unreachable')
  const both = [sick.seen, healthy.seen]
  await node.settled()
  silence(sick.master)
  sick.master.hangs = true
  let last = 0
  const append = async () => {
    last++
    const outcomes: string[] = []
    for (const { id } of both) outcomes.push(String(await outcomeOf(() => relays(node.sessions, id, 'c', [last]))))
    await Bun.sleep(10)
    return outcomes
  }
  await until('the node knows of it', async () => (await append()).every((outcome) => outcome === 'volatile'))
  for (let n = 0; n < 50; n++) expect(await append()).toEqual(['volatile', 'volatile'])
  await speak(sick.master)
  await until('the other one is there again', async () => (await append()).every((outcome) => outcome === 'sent'))
  await until('all is saved', async () => (await outcomeOf(async () => node.save())) === undefined)
  for (const { socket } of both) expect(numbersOf(socket)).toEqual(upTo(last))
  const other = await nodes.start(cluster.url)
  for (const seen of both) {
    const back = await comeBack(other.sessions, seen, last - 5)
    await other.settled()
    expect(back && numbersOf(back.socket)).toEqual(upTo(last, last - 4))
  }
}, 240_000)
