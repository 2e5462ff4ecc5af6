import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Link } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { numbersOf, openReady, pushes, relays, type Seen, seqsOf, upTo } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { RedisProxy } from '../support/redis-proxy.ts'
import { createSessionNodes, relayAtLast, type SessionNode, until } from './session-nodes.ts'

/** Parts of what is kept of a session that go without the rest, or make room, while its node hears nothing. */
const nodes = createSessionNodes()
let server: RedisServer
let proxy: RedisProxy
let admin: Redis
let isSilent: boolean
/** Of these connections nothing arrives any more. */
let silent: Set<Link>
let behind: SessionNode
let direct: SessionNode
beforeEach(async () => {
  server = await startRedis()
  isSilent = false
  silent = new Set()
  proxy = await new RedisProxy(server.port, (bytes, link) => {
    // One that subscribes meanwhile is silent, too.
    if (isSilent && proxy.subscribes(link)) silent.add(link)
    return silent.has(link) ? undefined : bytes
  }).start()
  admin = new Redis(server.url)
  behind = await nodes.start(proxy.url)
  direct = await nodes.start(server.url)
})
afterEach(async () => {
  await nodes.closeAll()
  admin.disconnect()
  await proxy.stop()
  await server.stop()
})

/** What is said meanwhile is lost: the node hears of it when its subscription is back. */
async function unheard(work: () => Promise<unknown>): Promise<void> {
  isSilent = true
  await work()
  // The last of it may still be under way to the proxy: what was silent stays so.
  for (const link of proxy.links) if (proxy.subscribes(link)) silent.add(link)
  isSilent = false
  await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
}

/** Deletes one key of a session, or of its participant, and leaves the others. */
async function evict(pattern: string): Promise<void> {
  const keys = await admin.keys(pattern)
  expect(keys.length).toBe(1)
  await admin.del(...keys)
}

const isTold = (seen: Seen, n: number) => until(`${n} is told`, () => numbersOf(seen.socket).includes(n))

test.each([
  { what: '512 pushes', count: 600, pad: 0 },
  { what: '1 MiB', count: 30, pad: 48_000 },
])(
  '[RES2] [RES4] more than $what that a node has not heard of: the loss is told, and no part of it',
  async ({ count, pad }) => {
    const seen = await openReady(behind.sessions)
    await relays(direct.sessions, seen.id, 'c', upTo(3))
    await behind.settled()
    await unheard(async () => {
      expect(new Set(await relays(direct.sessions, seen.id, 'c', upTo(3 + count, 4), pad))).toEqual(new Set(['sent']))
    })
    await isTold(seen, 0)
    await relayAtLast(direct.sessions, seen.id, 'c', 1000)
    await isTold(seen, 1000)
    expect(numbersOf(seen.socket)).toEqual([1, 2, 3, 0, 1000])
    expect(seqsOf(seen.socket)).toEqual([1, 2, 3, 1, 2])
  },
)

test('[RES1] as much as the log holds that a node has not heard of is handed over', async () => {
  const seen = await openReady(behind.sessions)
  await unheard(() => relays(direct.sessions, seen.id, 'c', upTo(512)))
  await isTold(seen, 512)
  expect(seqsOf(seen.socket)).toEqual(upTo(512))
  expect(behind.lost).toEqual([])
})

test('[REL2] a base session of which a part was not heard and is gone is closed: its client comes back', async () => {
  const seen = await openReady(behind.sessions, { extended: false })
  await unheard(() => relays(direct.sessions, seen.id, 'c', upTo(513)))
  await until('it is closed', () => seen.socket.closes.length > 0)
  expect(seen.socket.closes).toEqual([1013])
  expect(numbersOf(seen.socket)).toEqual([])
})

test('[RES4] a base session that has been told of more than its log holds goes on', async () => {
  const seen = await openReady(behind.sessions, { extended: false })
  await relays(direct.sessions, seen.id, 'c', upTo(600))
  await unheard(() => relays(direct.sessions, seen.id, 'c', [601]))
  await isTold(seen, 601)
  expect(numbersOf(seen.socket)).toEqual(upTo(601))
  expect(seen.socket.closes).toEqual([])
})

test('[RES4] a ring that was not heard of and lost with the log rings after it, what was told is not told again', async () => {
  const seen = await openReady(behind.sessions)
  const { append } = direct.sessions
  await append(seen.id, pushes.ringing('told', 1, 1))
  await append(seen.id, pushes.state('stated', 2, 2))
  await behind.settled()
  await unheard(async () => {
    await append(seen.id, pushes.ringing('lost', 1, 3))
    await relays(direct.sessions, seen.id, 'c', upTo(600, 4))
  })
  await isTold(seen, 0)
  // It is made ready after it was told.
  await behind.settled()
  expect(await append(seen.id, pushes.ringing('told', 1, 1001))).toBe('dropped')
  expect(await append(seen.id, pushes.state('stated', 2, 1002))).toBe('dropped')
  expect(await append(seen.id, pushes.ringing('lost', 1, 1003))).toBe('sent')
  await isTold(seen, 1003)
  expect(numbersOf(seen.socket)).toEqual([1, 2, 0, 1003])
})

test('[PLACE1] [RES4] a place that was taken unheard is known after the loss', async () => {
  const seen = await openReady(behind.sessions)
  await unheard(async () => {
    await direct.sessions.hold(seen.id, 'c', true)
    await relays(direct.sessions, seen.id, 'c', upTo(600))
  })
  await isTold(seen, 0)
  // It is made ready after it was told.
  await behind.settled()
  expect(await behind.sessions.holdsAny(seen.id)).toBe(true)
  const toWhomHasIt = { ...pushes.relay('c', 700), forPlace: true }
  expect(await direct.sessions.append(seen.id, toWhomHasIt)).toBe('sent')
  await isTold(seen, 700)
})

test('[RES4] a log that goes alone, with pushes in it that were not heard of: the loss is told', async () => {
  for (const later of [[], [6, 7]]) {
    const seen = await openReady(behind.sessions)
    await relays(direct.sessions, seen.id, 'c', upTo(3))
    await behind.settled()
    await unheard(async () => {
      await relays(direct.sessions, seen.id, 'c', [4, 5])
      await evict(`rw:*:l:${seen.id}`)
      await relays(direct.sessions, seen.id, 'c', later)
    })
    await isTold(seen, 0)
    await relayAtLast(direct.sessions, seen.id, 'c', 8)
    await isTold(seen, 8)
    expect(numbersOf(seen.socket)).toEqual([1, 2, 3, 0, 8])
    expect(seqsOf(seen.socket)).toEqual([1, 2, 3, 1, 2])
  }
})

test('[RES1] [RES2] a log that went alone is filled again, expires, and is not resumed from before the loss', async () => {
  const seen = await openReady(behind.sessions)
  await relays(direct.sessions, seen.id, 'c', upTo(20), 50_000)
  await behind.settled()
  await evict(`rw:*:l:${seen.id}`)
  await relays(direct.sessions, seen.id, 'c', upTo(30, 21), 50_000)
  await behind.settled()
  expect(numbersOf(seen.socket)).toEqual(upTo(30))
  const [log = ''] = await admin.keys(`rw:*:l:${seen.id}`)
  expect(await admin.xlen(log)).toBe(10)
  expect(await admin.pttl(log)).toBeGreaterThan(0)
  const resume = (seq: number) => {
    const request = { sessionId: seen.id, epoch: seen.epoch, seq }
    return direct.sessions.resume(request, seen.identity, seen.socket, 0)
  }
  await behind.sessions.detach(seen.id, seen.socket, false, 0)
  expect(await resume(20)).toBeDefined()
  await direct.sessions.detach(seen.id, seen.socket, false, 0)
  expect(await resume(19)).toBeUndefined()
})

test('[RES4] an index that goes alone: the session is found again, and told that it may have missed something', async () => {
  for (const extended of [true, false]) {
    const seen = await openReady(behind.sessions, { extended })
    await direct.sessions.append(seen.id, pushes.ringing('told', 1, 1))
    await behind.settled()
    await evict(`rw:*:a:${seen.id.slice(0, 3)}*`)
    expect(await direct.sessions.liveOf(seen.identity.participant)).toEqual([])
    await behind.compareHeads()
    expect(await direct.sessions.liveOf(seen.identity.participant)).toEqual([seen.id])
    expect(behind.lost.filter(({ sessionId }) => sessionId === seen.id).length).toBe(1)
    await until('the loss is told', () => !extended || numbersOf(seen.socket).includes(0))
    expect(await direct.sessions.append(seen.id, pushes.ringing('told', 1, 2))).toBe('dropped')
    await relayAtLast(direct.sessions, seen.id, 'c', 3)
    await isTold(seen, 3)
    expect(numbersOf(seen.socket)).toEqual(extended ? [1, 0, 3] : [1, 3])
    // Once is enough.
    await behind.compareHeads()
    expect(behind.lost.filter(({ sessionId }) => sessionId === seen.id).length).toBe(1)
  }
})
