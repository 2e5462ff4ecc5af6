import { afterEach, beforeEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { tagOfSessionId } from '../../src/ports/session-id.ts'
import { openReady, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { comeBack, pushes } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, outcomeOf, sendAll } from './session-nodes.ts'

/** A node that others take for dead, and that lives. */
const nodes = createSessionNodes()
let server: RedisServer
beforeEach(async () => {
  server = await startRedis()
})
afterEach(async () => {
  await nodes.closeAll()
  await server.stop()
})

test('[INV4] [PLACE4] nobody whose node was taken for dead is left with a socket at which nothing rings', async () => {
  const [silent, other] = [await nodes.start(server.url), await nodes.start(server.url)]
  const [extended, base] = [await openReady(silent.sessions), await openReady(silent.sessions, { extended: false })]
  const isLive = async ({ id, identity }: Seen) => (await other.sessions.liveOf(identity.participant)).includes(id)
  // It serves, and does not say that it lives.
  silent.onScript = (name, _args, send) =>
    name === 'nodes' ? Promise.reject(new StoreError('unavailable', 'just now')) : send()
  await until('it is taken for dead', async () => !(await isLive(extended)) && !(await isLive(base)), 12_000)
  // One waits for its client at the store, and of the other one there was nothing to go on with: a call that rang meanwhile
  // did not ring there.
  await until('their clients have to come back', () => [extended, base].every(({ socket }) => socket.closes.length > 0))
  for (const { id, socket } of [extended, base]) {
    expect(socket.closes).toEqual([1013])
    expect(silent.sessions.heldHere(id)).toBeUndefined()
  }
  silent.onScript = sendAll
  const comeBack = () => openReady(silent.sessions, { participant: base.identity.participant, extended: false })
  let again = await comeBack()
  await until('who comes back is there', async () => {
    // The other one has yet to hear that this node lives.
    if (again.socket.closes.length > 0) again = await comeBack()
    return isLive(again)
  })
}, 240_000)

test('[RES1] who comes back does not fail because its node died just after it had started, before this one heard of it', async () => {
  const node = await nodes.start(server.url)
  const redis = new Redis(server.url)
  const seen = await openReady(node.sessions)
  await node.settled()
  const two = await nodes.start(server.url)
  await redis.hset(`rw:{${tagOfSessionId(seen.id)}}:o:${seen.id}`, { o: 'other', f: '9', k: '1' })
  const [s = 0] = await redis.time()
  await redis.zadd('rw:alive', Number(s) * 1000, 'other')
  expect(await comeBack(two.sessions, seen, 0)).toBeDefined()
  redis.disconnect()
}, 60_000)

test('[EXT3] [RES2] who was taken for dead does not write a session over what was told to it meanwhile', async () => {
  const dead = new Set<string>()
  const isDead = (node: string) => dead.has(node)
  const [silent, other] = [await nodes.start(server.url, isDead), await nodes.start(server.url, isDead)]
  const redis = new Redis(server.url)
  const first = await openReady(other.sessions)
  // A session that has changed its node has a higher fence than a new one.
  const seen = (await comeBack(silent.sessions, first, 0))!
  await silent.settled()
  const owner = await redis.hget(rowKey(seen.id), 'o')
  // It stands still, and Redis is emptied: the others wait for what it owns until it is dead.
  const { promise: standsStill, resolve: goOn } = Promise.withResolvers<void>()
  silent.onScript = async (_name, _args, send) => {
    await standsStill
    return send()
  }
  await redis.flushall()
  const told = pushes.final('a-call', 3, 1)
  const tell = async () => {
    await stepsOf(other.sessions).openDetached(seen.identity, Date.now())
    return other.sessions.append(seen.id, told)
  }
  expect(['unavailable', 'unknown']).toContain(await outcomeOf(tell))
  dead.add(owner ?? '')
  await until('it is told', async () => (await outcomeOf(tell)) === 'kept')
  goOn()
  await until('its client has to come back', () => seen.socket.closes.length > 0)
  await silent.settled()
  dead.clear()
  for (const { sessions } of [silent, other]) expect(await comeBack(sessions, seen, 0)).toBeUndefined()
  expect(other.sessions.knowsEnd(seen.id, told.call)).toBe(true)
  redis.disconnect()
}, 60_000)

test('[ORD1] [CLOSE] a node that did not hear what became of its sessions finds out by asking, and closes those that moved', async () => {
  const { sessions, settled } = await nodes.start(server.url)
  const redis = new Redis(server.url)
  const take = async ({ id }: Seen, socket: '0' | '1') =>
    redis.hset(`rw:{${tagOfSessionId(id)}}:o:${id}`, { o: 'other', f: '9', k: socket })
  const [mine, resumed, lost] = [await openReady(sessions), await openReady(sessions), await openReady(sessions)]
  // A save that comes after it would find out by itself.
  await settled()
  await take(resumed, '1')
  await take(lost, '0')
  const seen = [mine, resumed, lost]
  const moved = seen.map(async ({ id, socket }) => sessions.hasMoved(id, socket))
  expect(await Promise.all(moved)).toEqual([false, true, true])
  // Another socket has it, or its client has to come back: nobody else would tell it what it misses.
  expect(seen.map(({ socket }) => socket.closes)).toEqual([[], [4409], [1013]])
  expect(seen.map(({ id }) => sessions.heldHere(id) !== undefined)).toEqual([true, false, false])
  redis.disconnect()
})
