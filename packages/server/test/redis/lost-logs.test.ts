import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { StoreError } from '../../src/ports/store-error.ts'
import {
  createSocket,
  identityOf,
  numbersOf,
  openReady,
  pushes,
  relays,
  resumeOf,
  seqsOf,
  upTo,
} from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, loseFirstReply, relayAtLast, type SessionNode, sendAll, until } from './session-nodes.ts'

/** What is still under way of a log when the store loses it. */
const nodes = createSessionNodes()
let server: RedisServer
let admin: Redis
let [one, two]: SessionNode[] = []
beforeEach(async () => {
  server = await startRedis(['--enable-debug-command', 'yes'])
  admin = new Redis(server.url)
  one = await nodes.start(server.url)
  two = await nodes.start(server.url)
})
afterEach(async () => {
  await nodes.closeAll()
  admin.disconnect()
  await server.stop()
})

function both(): { one: SessionNode; two: SessionNode } {
  if (one === undefined || two === undefined) throw new Error('no nodes')
  return { one, two }
}

/** What a store that took over from another one looks like: whatever it has is of before. */
const takeOver = () => admin.call('DEBUG', 'CHANGE-REPL-ID')

/** What nodes are told of appends from now on, with the channels of it. */
async function recordHints(): Promise<{ hints: [string, string][]; stop(): void }> {
  const subscriber = new Redis(server.url)
  const hints: [string, string][] = []
  await subscriber.psubscribe('rw:n:*')
  subscriber.on('pmessage', (_pattern, channel: string, message: string) => {
    if (message.startsWith('E ')) hints.push([channel, message])
  })
  return { hints, stop: () => subscriber.disconnect() }
}

for (const isAway of [false, true]) {
  const when = isAway ? ', once the store is back' : ''
  test(`[EXT4] [WS4] of a socket that is gone with its log whoever comes back waits for the last request${when}`, async () => {
    const { one, two } = both()
    const seen = await openReady(one.sessions)
    const { upstream, socket, identity } = seen
    await one.sessions.hold(seen.id, 'live', true, false, 2)
    await one.sessions.append(seen.id, pushes.final('over', 3, 1))
    await one.settled()
    await admin.flushall()
    if (isAway) {
      one.onScript = async (name, _args, send) => {
        if (name === 'detach') throw new StoreError('unavailable', 'away')
        return send()
      }
    }
    socket.isBusy = true
    expect(await one.sessions.detach(seen.id, socket, false, 1)).toBe(true)
    one.onScript = sendAll
    if (isAway) await until('the store is told', async () => (await admin.keys('rw:*:s:*')).length === 1, 8_000)
    const { promise: done, resolve } = Promise.withResolvers<void>()
    socket.retire = async () => {
      upstream.handled = 7
      resolve()
    }
    const last = await two.sessions.sinkToReplace(seen.id, identity)
    expect(last).toBeDefined()
    await last?.retire()
    await done
    // Nobody is told twice, and what is its own waits for it.
    expect(await two.sessions.append(seen.id, pushes.final('over', 3, 2))).toBe('dropped')
    expect(await two.sessions.append(seen.id, pushes.state('live', 3, 3))).toBe('kept')
    // Its client is not to take the new log for the one that it knew.
    expect(
      await two.sessions.resume({ ...resumeOf(seen, 1), replied: 7 }, identity, createSocket(), 2, last),
    ).toBeUndefined()
  })
}

test('[RES4] a store that goes away between session.reset and what comes after it', async () => {
  const { one, two } = both()
  const seen = await openReady(one.sessions)
  await relays(two.sessions, seen.id, 'c', [1, 2])
  await one.settled()
  await admin.flushall()
  one.onScript = async (name, _args, send) => {
    if (name !== 'ready') return send()
    one.onScript = sendAll
    throw new StoreError('unavailable', 'just now')
  }
  await one.compareHeads()
  await until('the reset is told, and the session ready', () => one.ran.filter((name) => name === 'ready').length === 3)
  await relays(two.sessions, seen.id, 'c', [3, 4])
  await until('what comes after it', () => seen.socket.told.length >= 5)
  expect(numbersOf(seen.socket)).toEqual([1, 2, 0, 3, 4])
  expect(seqsOf(seen.socket)).toEqual([1, 2, 1, 2, 3])
  expect(seen.socket.closes).toEqual([])
})

test('[ORD2] what could not be read is read again in a moment, though nobody says any more that it is there', async () => {
  const { one, two } = both()
  const seen = await openReady(one.sessions)
  one.onScript = async (name, _args, send) => {
    if (name !== 'read') return send()
    one.onScript = sendAll
    throw new StoreError('unavailable', 'just now')
  }
  // Of the first nothing is heard.
  const [key = ''] = await admin.keys(`rw:*:s:${seen.id}`)
  const text = JSON.stringify({ event: 'webrtc.ice_candidate', data: { n: 1 } })
  await admin.xadd(key.replace(':s:', ':l:'), '1-0', 'k', 'relay', 'c', 'c', 'v', '', 'a', '0', 't', text)
  await admin.hset(key, { q: '1', b: String(text.length) })
  await relays(two.sessions, seen.id, 'c', [2])
  await until('both are handed over', () => seen.socket.told.length === 2, 4_000)
  expect(numbersOf(seen.socket)).toEqual([1, 2])
  expect(one.ran.filter((name) => name === 'read').length).toBe(2)
})

test('[ORD2] a late hint of a lost log sets nobody looking for what will not come', async () => {
  const { one, two } = both()
  const seen = await openReady(one.sessions, { extended: false })
  const { hints, stop } = await recordHints()
  await relays(two.sessions, seen.id, 'c', upTo(5))
  await one.settled()
  await until('every hint is recorded', () => hints.length === 5)
  stop()
  await admin.flushall()
  await one.compareHeads()
  const before = one.ran.length
  await admin.publish(...hints[4]!)
  let isSettled = false
  void one.settled().then(() => {
    isSettled = true
  })
  await until('no read is under way', () => isSettled)
  expect(one.ran.slice(before).filter((name) => name === 'read').length).toBeLessThan(3)
  await relays(two.sessions, seen.id, 'c', [6])
  await one.settled()
  expect(numbersOf(seen.socket)).toEqual(upTo(6))
})

test('[ORD2] a late hint of a lost log is not handed over in the place of what has its seq now', async () => {
  for (const extended of [true, false]) {
    const { one, two } = both()
    const seen = await openReady(one.sessions, { extended })
    const { hints, stop } = await recordHints()
    await relays(two.sessions, seen.id, 'c', upTo(4))
    await one.settled()
    await until('every hint is recorded', () => hints.length === 4)
    stop()
    await admin.flushall()
    await one.compareHeads()
    await until('the loss is told', () => !extended || seen.socket.told.length === 5)
    await relays(two.sessions, seen.id, 'c', extended ? [12] : [11, 12])
    await one.settled()
    // The next is the third of the new log, and so was this one of the old.
    await admin.publish(...hints[2]!)
    await one.settled()
    await relays(two.sessions, seen.id, 'c', [13, 14])
    await one.settled()
    expect(numbersOf(seen.socket)).toEqual([...upTo(4), extended ? 0 : 11, 12, 13, 14])
  }
})

test('[ORD2] a late reply to an append of its own is not taken for news of the new log', async () => {
  const { one, two } = both()
  const seen = await openReady(one.sessions, { extended: false })
  await relays(one.sessions, seen.id, 'c', upTo(5))
  const found = one.lost.length
  one.onScript = async (name, _args, send) => {
    if (name !== 'append') return send()
    one.onScript = sendAll
    const reply = await send()
    await takeOver()
    await relayAtLast(two.sessions, seen.id, 'c', 7)
    await until('the loss is heard of', () => one.lost.length > found)
    return reply
  }
  await relays(one.sessions, seen.id, 'c', [6])
  let isSettled = false
  void one.settled().then(() => {
    isSettled = true
  })
  await until('no read is under way', () => isSettled)
  await relays(two.sessions, seen.id, 'c', upTo(14, 8))
  await one.settled()
  expect(numbersOf(seen.socket)).toEqual([...upTo(5), ...upTo(14, 7)])
})

test('[ORD2] a log that begins again while it is read is read from its begin', async () => {
  for (const extended of [true, false]) {
    const { one, two } = both()
    const seen = await openReady(one.sessions, { extended })
    await relays(one.sessions, seen.id, 'c', upTo(5))
    // Something to read: this node does not know that the sixth is there.
    loseFirstReply(one, 'append')
    await Promise.resolve(one.sessions.append(seen.id, pushes.relay('c', 6))).catch(() => {})
    const found = one.lost.length
    one.onScript = async (name, _args, send) => {
      if (name !== 'read') return send()
      one.onScript = sendAll
      await takeOver()
      await relayAtLast(two.sessions, seen.id, 'c', 7)
      const reply = await send()
      // News of it are faster than the reply: they have a connection of their own.
      await until('the loss is heard of', () => one.lost.length > found)
      return reply
    }
    await one.compareHeads()
    await one.settled()
    await relays(two.sessions, seen.id, 'c', [8])
    await until('what comes after it', () => numbersOf(seen.socket).includes(8))
    expect(numbersOf(seen.socket)).toEqual([...upTo(5), ...(extended ? [0] : []), 7, 8])
  }
})

test('[RES4] a log that begins again while a session is made ready', async () => {
  for (const extended of [true, false]) {
    const { one, two } = both()
    const identity = identityOf({ extended })
    const { sessionId: id } = identity
    const socket = createSocket()
    await one.sessions.open(identity, socket, 0)
    await relays(two.sessions, id, 'c', upTo(3))
    const found = one.lost.length
    one.onScript = async (name, _args, send) => {
      if (name !== 'ready') return send()
      one.onScript = sendAll
      const reply = await send()
      await takeOver()
      await relayAtLast(two.sessions, id, 'c', 4)
      await until('the loss is heard of', () => one.lost.length > found)
      return reply
    }
    await one.sessions.ready(id)
    await until('what came after the loss', () => numbersOf({ told: socket.told }).includes(4))
    await relays(two.sessions, id, 'c', [5, 6])
    await one.settled()
    expect(numbersOf(socket)).toEqual([...(extended ? [0] : []), 4, 5, 6])
  }
})
