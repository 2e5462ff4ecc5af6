import { afterEach, beforeEach, expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { createRedisSessions, type RedisSessions } from '../../src/adapters/redis/sessions.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import {
  comeBack,
  createSocket,
  identityOf,
  numbersOf,
  openReady,
  pushes,
  relays,
  resetText,
  resumeOf,
  resumeWindowMs,
  seqsOf,
  upTo,
  windowMs,
} from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

let server: RedisServer
let nodes: RedisSessions[] = []
const lost: { sessionId: string; epoch: string }[] = []
beforeEach(async () => {
  server = await startRedis()
  lost.length = 0
})
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close().catch(() => {})))
  nodes = []
  await server.stop()
})

async function startNode(): Promise<RedisSessions> {
  const node: RedisSessions = createRedisSessions({
    url: server.url,
    node: crypto.randomUUID(),
    windowMs,
    resumeWindowMs,
    onLogLost({ sessionId, extended }, epoch) {
      if (!extended) return
      lost.push({ sessionId, epoch })
      void node.sessions.reset(sessionId, epoch, resetText)
    },
    // Lost connections are what is tested.
    onError: () => {},
  })
  await node.start()
  nodes.push(node)
  return node
}

/** Until the store answers again and the node hears what it is told: a connection each, one of which comes back first. */
async function isBack({ sessions, settled }: RedisSessions): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    try {
      await sessions.holdsAny('AAA0000000000000000000000')
      await settled()
      return
    } catch {
      await Bun.sleep(25)
    }
  }
  throw new Error('the store does not come back')
}

async function kindOf(work: () => unknown): Promise<string> {
  try {
    await work()
    return 'none'
  } catch (error) {
    return error instanceof StoreError ? error.kind : String(error)
  }
}

test('[RES2] [RES4] a store that comes back with less than it had: every older log is void', async () => {
  const node = await startNode()
  const { sessions } = node
  const [here, away] = [await openReady(sessions), await openReady(sessions)]
  for (const { id } of [here, away]) await relays(sessions, id, 'c', upTo(3))
  await sessions.detach(away.id, away.socket, false, 0)
  const client = new Redis(server.url)
  await client.save()
  client.disconnect()
  for (const { id } of [here, away]) await relays(sessions, id, 'c', [4, 5])
  await server.kill()
  await server.restart()
  await isBack(node)
  // It has the numbers that the client saw, and other contents under them.
  await relays(sessions, away.id, 'c', upTo(9, 6))
  expect(await sessions.resume(resumeOf(away, 3), away.identity, away.socket, 0)).toBeUndefined()
  await relays(sessions, here.id, 'c', [6, 7])
  await node.settled()
  expect(lost.map(({ sessionId }) => sessionId)).toEqual([here.id])
  expect(numbersOf(here.socket)).toEqual([...upTo(5), 0, 6, 7])
  expect(seqsOf(here.socket)).toEqual([1, 2, 3, 4, 5, 1, 2, 3])
})

test('[RES4] a store that comes back empty: sessions with a socket are told, with their places', async () => {
  const node = await startNode()
  const { sessions } = node
  const seen = await openReady(sessions)
  await sessions.hold(seen.id, 'c', true)
  await relays(sessions, seen.id, 'c', upTo(3))
  await server.kill()
  expect(await kindOf(() => sessions.append(seen.id, pushes.state('c', 2, 4)))).toMatch(/unavailable|unknown/)
  expect(await kindOf(() => sessions.append(seen.id, pushes.state('c', 2, 4)))).toBe('unavailable')
  await server.restart()
  await isBack(node)
  await node.compareHeads()
  expect(lost.map(({ sessionId }) => sessionId)).toEqual([seen.id])
  expect(await sessions.holdsAny(seen.id)).toBe(true)
  await sessions.detach(seen.id, seen.socket, false, 0)
  expect(await comeBack(sessions, { ...seen, epoch: lost[0]?.epoch ?? '' }, 1)).toBeDefined()
})

test('a store that does not answer: nothing waits for more than 5 s, and it goes on after', async () => {
  const node = await startNode()
  const seen = await openReady(node.sessions)
  process.kill(server.pid, 'SIGSTOP')
  const start = performance.now()
  expect(await kindOf(() => node.sessions.append(seen.id, pushes.relay('c', 1)))).toBe('unknown')
  expect(performance.now() - start).toBeLessThan(soon(5_000))
  process.kill(server.pid, 'SIGCONT')
  await isBack(node)
  expect(await node.sessions.append(seen.id, pushes.relay('c', 2))).toBe('sent')
  await node.settled()
  // What was unknown was done, or not: never twice, and never after what came later.
  expect([[2], [1, 2]]).toContainEqual(numbersOf(seen.socket))
}, 240_000)

test('[ORD2] appends of three nodes at once: each once, in the order of the log', async () => {
  const [one, two, three] = [await startNode(), await startNode(), await startNode()]
  const seen = await openReady(one.sessions)
  const appends = [one, two, three].flatMap(({ sessions }, i) =>
    upTo(170).map((n) => sessions.append(seen.id, pushes.relay('c', i * 1_000 + n))),
  )
  expect(new Set(await Promise.all(appends))).toEqual(new Set(['sent']))
  await one.settled()
  expect(seqsOf(seen.socket)).toEqual(upTo(510))
  for (const i of [0, 1, 2]) {
    const own = numbersOf(seen.socket).filter((n) => Math.floor(n / 1_000) === i)
    expect(own).toEqual(upTo(170).map((n) => i * 1_000 + n))
  }
})

test('[ORD2] what was said while a subscription was lost is read from the log', async () => {
  const [one, two] = [await startNode(), await startNode()]
  const seen = await openReady(one.sessions)
  const client = new Redis(server.url)
  await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  client.disconnect()
  await relays(two.sessions, seen.id, 'c', upTo(20))
  for (let tries = 0; tries < 400 && seen.socket.told.length < 20; tries++) await Bun.sleep(25)
  expect(numbersOf(seen.socket)).toEqual(upTo(20))
}, 240_000)

test('[PLACE4] a node that died holds no socket that gives a sign of life', async () => {
  const [one, two] = [await startNode(), await startNode()]
  const seen = await openReady(one.sessions)
  const sink = await two.sessions.sinkOf(seen.id)
  expect(await sink?.probe()).toBe(true)
  await sink?.retire()
  await one.close()
  for (let tries = 0; tries < 20; tries++) {
    if ((await (await two.sessions.sinkOf(seen.id))?.probe()) === false) return
  }
  throw new Error('the node that is gone counts as alive')
}, 240_000)

test('[RES1] a session whose socket another node has taken meanwhile is let go, and nobody waits for it', async () => {
  const node = await startNode()
  const { sessions } = node
  const identity = identityOf()
  const socket = createSocket()
  await sessions.open(identity, socket, 0)
  const client = new Redis(server.url)
  // As if the one that took it over could not say so.
  const [key = ''] = await client.keys(`rw:*:s:${identity.sessionId}`)
  await client.hset(key, { n: 'another', s: 'of-another' })
  client.disconnect()
  await sessions.ready(identity.sessionId)
  expect(sessions.heldHere(identity.sessionId)).toBeUndefined()
  expect(socket.closes).toEqual([1013])
})

test('[RES1] a connection that its client gives up while another socket is waited for takes the session from nobody', async () => {
  const [one, two, three] = [await startNode(), await startNode(), await startNode()]
  const seen = await openReady(one.sessions)
  const older = await two.sessions.sinkToReplace(seen.id, seen.identity)
  await older?.retire()
  // Its client was faster elsewhere.
  const between = createSocket()
  const elsewhere = await three.sessions.sinkToReplace(seen.id, seen.identity)
  await three.sessions.resume(resumeOf(seen, 0), seen.identity, between, 0, elsewhere)
  await three.sessions.ready(seen.id)
  const givenUp = createSocket()
  between.isBusy = true
  between.retire = async () => void Object.assign(givenUp, { isClosed: true })
  const late = two.sessions.resume(resumeOf(seen, 0), seen.identity, givenUp, 0, older)
  expect(await Promise.resolve(late).then(String, (error) => error.message)).toMatch(/closed meanwhile/)
  expect(await three.sessions.sinkOf(seen.id)).toBe(between)
  expect(await one.sessions.append(seen.id, pushes.state('c', 2, 1))).toBe('sent')
  await three.settled()
  expect(numbersOf(between)).toEqual([1])
})

for (const where of ['another node', 'the same node'] as const) {
  test(`[RES1] of several sockets that come back at once the newest wins, on ${where}: one before it that is slower gives way`, async () => {
    const [one, two, three] = [await startNode(), await startNode(), await startNode()]
    const seen = await openReady(one.sessions)
    const { id, identity } = seen
    const slow = [createSocket(), createSocket()] as const
    const olders = [
      await two.sessions.sinkToReplace(id, identity, slow[0]),
      await two.sessions.sinkToReplace(id, identity, slow[1]),
    ] as const
    await olders[0]?.retire()
    const home = where === 'another node' ? three : two
    const newest = createSocket()
    const before = await home.sessions.sinkToReplace(id, identity, newest)
    await home.sessions.resume(resumeOf(seen, 0), identity, newest, 0, before)
    await home.sessions.ready(id)
    let retired = 0
    newest.retire = async () => void retired++
    // Where it has waited for the older one it looks again, or comes back.
    const late = [
      () => two.sessions.sinkToReplace(id, identity, slow[0]),
      () => two.sessions.resume(resumeOf(seen, 0), identity, slow[1], 0, olders[1]),
    ]
    for (const next of late) expect(await kindOf(next)).toBe('unavailable')
    expect(slow.map(({ closes }) => closes)).toEqual([[4409], [4409]])
    expect(await one.sessions.append(id, pushes.state('c', 2, 1))).toBe('sent')
    await home.settled()
    expect([retired, newest.closes, numbersOf(newest)]).toEqual([0, [], [1]])
  })

  test(`[RES1] [EXT4] a session that ${where} resumes meanwhile: what it was asked there is known before it is resumed`, async () => {
    const [one, two, three] = [await startNode(), await startNode(), await startNode()]
    const seen = await openReady(one.sessions)
    const older = await two.sessions.sinkToReplace(seen.id, seen.identity)
    await older?.retire()
    // Its client gave up waiting, and was faster elsewhere.
    const faster = where === 'another node' ? three : two
    const between = createSocket()
    between.isBusy = true
    const elsewhere = await faster.sessions.sinkToReplace(seen.id, seen.identity)
    const open = await faster.sessions.resume(resumeOf(seen, 0), seen.identity, between, 0, elsewhere)
    await faster.sessions.ready(seen.id)
    // A request is under way: a socket is retired when it took effect.
    let retired = 0
    between.retire = async () => {
      await Bun.sleep(20)
      retired++
      if (open !== undefined) open.upstream.handled = 7
    }
    const late = await two.sessions.resume(resumeOf(seen, 0), seen.identity, createSocket(), 0, older)
    expect(retired).toBeGreaterThan(0)
    expect(late?.upstream.handled).toBe(7)
  })
}
