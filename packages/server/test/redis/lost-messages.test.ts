import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Link } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { StoreError } from '../../src/ports/store-error.ts'
import { numbersOf, openReady, pushes, relays, type Seen } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { RedisProxy } from '../support/redis-proxy.ts'
import { createSessionNodes, outcomeOf, relayAtLast, type SessionNode, sendAll, until } from './session-nodes.ts'

/** What the store says to a node, and the node does not get: replies, and news of its sessions. */
const nodes = createSessionNodes()
let server: RedisServer
let proxy: RedisProxy
let admin: Redis
/** Of these connections nothing arrives any more, but what was said on them. */
let silent: Set<Link>
let swallowed: string
let behind: SessionNode
let direct: SessionNode
beforeEach(async () => {
  server = await startRedis(['--enable-debug-command', 'yes'])
  silent = new Set()
  swallowed = ''
  proxy = await new RedisProxy(server.port, (bytes, link) => {
    if (!silent.has(link)) return bytes
    swallowed += bytes.toString()
    return undefined
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

/** The connections on which a node asks, or the one on which it hears. */
function silence(what: 'replies' | 'news'): void {
  silent = new Set(proxy.open.filter((link) => proxy.subscribes(link) === (what === 'news')))
  expect(silent.size).toBe(1)
}

/** Both ends see these connections go. */
const cut = (type: 'normal' | 'pubsub') => admin.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes')

const inCall = (seen: readonly Seen[]) => Promise.all(seen.map(({ id }) => behind.sessions.inCall(id)))
const holdsAny = (seen: readonly Seen[]) => Promise.all(seen.map(({ id }) => behind.sessions.holdsAny(id)))

test('[ORD2] a push whose reply was lost with the connection is handed over as soon as there is another one', async () => {
  const { sessions } = behind
  const seen = await openReady(sessions)
  const [key = ''] = await admin.keys(`rw:*:s:${seen.id}`)
  silence('replies')
  const first = outcomeOf(() => sessions.append(seen.id, pushes.ringing('c', 1, 1)))
  await until('the store has it', () => admin.hexists(key, 'Rc'))
  await cut('normal')
  expect(await first).toBe('unknown')
  // Nobody will say it again: the store takes it for told.
  const again = () => outcomeOf(() => sessions.append(seen.id, pushes.ringing('c', 1, 1)))
  await until('the store answers again', async () => (await again()) === 'dropped')
  await until('it is told', () => seen.socket.told.length > 0, 5_000)
  expect(numbersOf(seen.socket)).toEqual([1])
  expect(await inCall([seen])).toEqual([true])
})

test('[PLACE1] places and rings that nobody heard of are known when the subscription is back', async () => {
  const { sessions } = direct
  const left = await openReady(behind.sessions)
  const taken = await openReady(behind.sessions)
  const rings = await openReady(behind.sessions)
  const stopped = await openReady(behind.sessions)
  const all = [left, taken, rings, stopped]
  await sessions.hold(left.id, 'c', true)
  await sessions.ring(stopped.id, 'd')
  await behind.settled()
  expect(await inCall(all)).toEqual([true, false, false, true])
  silence('news')
  await sessions.release(left.id, 'c')
  await sessions.hold(taken.id, 'e', true)
  await sessions.ring(rings.id, 'f')
  await sessions.appendRung(stopped.identity.participant, pushes.stop('d', 2, 1), [stopped.id])
  await until('all of it is lost', () => swallowed.includes(stopped.id))
  await cut('pubsub')
  const isKnown = async () => String(await inCall(all)) === 'false,true,true,false'
  await until('what is true now', isKnown)
  expect(await holdsAny(all)).toEqual([false, true, false, false])
})

test('[PLACE1] what was missed is asked for again where the first question fails', async () => {
  const seen = await openReady(behind.sessions)
  let failed = 0
  behind.onScript = async (name, _args, send) => {
    if (name !== 'head' || failed > 0) return send()
    failed++
    throw new StoreError('unavailable', 'just now')
  }
  silence('news')
  await direct.sessions.hold(seen.id, 'c', true)
  await relays(direct.sessions, seen.id, 'c', [1])
  await until('all of it is lost', () => swallowed.includes('webrtc.offer'))
  await cut('pubsub')
  await until('the push', () => seen.socket.told.length > 0)
  expect(failed).toBe(1)
  expect(await holdsAny([seen])).toEqual([true])
})

test('[PLACE1] an answer of before does not undo what was heard meanwhile', async () => {
  const [one, two] = [await openReady(behind.sessions), await openReady(behind.sessions)]
  await direct.sessions.hold(two.id, 'c', true)
  await behind.settled()
  behind.onScript = async (name, args, send) => {
    const reply = await send()
    if (name !== 'head' || args.includes(two.id)) return reply
    behind.onScript = sendAll
    await direct.sessions.hold(one.id, 'd', true)
    await until('it is heard', () => behind.sessions.holdsAny(one.id))
    return reply
  }
  await behind.compareHeads()
  expect(await holdsAny([one, two])).toEqual([true, true])
})

/** News of these are lost, and the next push shows that something is missing. */
async function miss(seen: Seen, append: () => unknown, event: string): Promise<void> {
  silence('news')
  await append()
  await until('it is lost', () => swallowed.includes(event))
  silent.clear()
  await relays(direct.sessions, seen.id, 'another', [9])
  await until('the next push', () => numbersOf(seen.socket).includes(9))
}

test('[PLACE1] a call whose end was read from the log does not ring any more, after a lost log neither', async () => {
  const seen = await openReady(behind.sessions)
  await direct.sessions.append(seen.id, pushes.ringing('c', 1, 1))
  await behind.settled()
  await miss(seen, () => direct.sessions.append(seen.id, pushes.final('c', 2, 2)), 'call.ended')
  expect(numbersOf(seen.socket)).toEqual([1, 2, 9])
  expect(await inCall([seen])).toEqual([false])
  await admin.flushall()
  await behind.compareHeads()
  // Somebody who knows less goes on with it.
  await direct.sessions.appendRung(seen.identity.participant, pushes.final('c', 2, 3), [])
  await behind.settled()
  await until('the loss is told', () => numbersOf(seen.socket).includes(0))
  expect(numbersOf(seen.socket)).toEqual([1, 2, 9, 0])
})

test('[PLACE1] a call that was read from the log rings, after a lost log too: its end is told', async () => {
  const seen = await openReady(behind.sessions)
  await miss(seen, () => direct.sessions.append(seen.id, pushes.ringing('c', 1, 1)), 'call.ringing')
  expect(numbersOf(seen.socket)).toEqual([1, 9])
  expect(await inCall([seen])).toEqual([true])
  await admin.flushall()
  await behind.compareHeads()
  await until('the loss is told', () => numbersOf(seen.socket).includes(0))
  await direct.sessions.appendRung(seen.identity.participant, pushes.final('c', 2, 2), [])
  await until('the end is told', () => numbersOf(seen.socket).includes(2))
  expect(numbersOf(seen.socket)).toEqual([1, 9, 0, 2])
})

test('[RES4] a store that took over from another one: the holder begins the log again, and knows what it was told', async () => {
  const seen = await openReady(behind.sessions, { extended: false })
  await direct.sessions.append(seen.id, pushes.ringing('c', 1, 1))
  await direct.sessions.append(seen.id, pushes.final('d', 2, 2))
  await behind.settled()
  // Whatever it has is of before.
  await admin.call('DEBUG', 'CHANGE-REPL-ID')
  expect(await direct.sessions.append(seen.id, pushes.relay('c', 3))).toBe('gone')
  await relayAtLast(direct.sessions, seen.id, 'c', 4)
  // Told already, by whoever tells it now.
  expect(await direct.sessions.append(seen.id, pushes.ringing('c', 1, 5))).toBe('dropped')
  expect(await direct.sessions.append(seen.id, pushes.final('d', 2, 6))).toBe('dropped')
  await behind.settled()
  expect(numbersOf(seen.socket)).toEqual([1, 2, 4])
})

test('[ORD3] [PEER1] whatever a client was told of a call it is not told again when its log is lost', async () => {
  const seen = await openReady(behind.sessions)
  const told = [
    pushes.ringing('a', 1, 1),
    pushes.state('b', 2, 2),
    pushes.notice('c', 3, 3),
    pushes.stop('d', 2, 4),
    pushes.final('e', 4, 5),
    pushes.peer('b', 3, 6),
  ]
  const tellAll = async () => {
    const results = []
    for (const push of told) results.push(await direct.sessions.append(seen.id, push))
    return new Set(results)
  }
  expect(await tellAll()).toEqual(new Set(['sent']))
  await behind.settled()
  await admin.flushall()
  await behind.compareHeads()
  await until('the loss is told', () => numbersOf(seen.socket).includes(0))
  expect(await tellAll()).toEqual(new Set(['dropped']))
  await behind.settled()
  expect(numbersOf(seen.socket)).toEqual([1, 2, 3, 4, 5, 6, 0])
})
