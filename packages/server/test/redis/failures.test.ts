import { afterEach, beforeEach, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { createSocket, identityOf, openReady, resumeOf, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import {
  comeBack,
  numbersOf,
  pushes,
  relays,
  resumeWindowMs,
  seqsOf,
  upTo,
  windowMs,
} from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'
import { outcomeOf } from './session-nodes.ts'

let server: RedisServer
let nodes: RedisSessions[] = []
beforeEach(async () => {
  server = await startRedis()
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
    // Lost connections are what is tested.
    onError: () => {},
  })
  await node.start()
  nodes.push(node)
  return node
}

/** Until the store answers again and the node reads its inbox: a connection each, one of which comes back first. */
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

test('[RES1] [RES4] a store that comes back with less than it had: logs are in the memory of their owner', async () => {
  const node = await startNode()
  const { sessions } = node
  const [here, away] = [await openReady(sessions), await openReady(sessions)]
  for (const { id } of [here, away]) await relays(sessions, id, 'c', upTo(3))
  await sessions.detach(away.id, away.socket, false, 0)
  await node.settled()
  const client = new Redis(server.url)
  await client.save()
  client.disconnect()
  for (const { id } of [here, away]) await relays(sessions, id, 'c', [4, 5])
  await node.settled()
  await server.kill()
  await server.restart()
  await isBack(node)
  await node.look()
  await relays(sessions, here.id, 'c', [6, 7])
  await node.settled()
  expect(numbersOf(here.socket)).toEqual(upTo(7))
  expect(seqsOf(here.socket)).toEqual(upTo(7))
  // The next owner finds all of it.
  const other = await startNode()
  const back = await comeBack(other.sessions, away, 3)
  expect(back && numbersOf(back.socket)).toEqual([4, 5])
})

test('[RES2] a copy that is older than what its client saw is not taken for whole', async () => {
  const [one, two] = [await startNode(), await startNode()]
  const seen = await openReady(one.sessions)
  await relays(one.sessions, seen.id, 'c', upTo(3))
  await one.settled()
  const client = new Redis(server.url)
  await client.save()
  await relays(one.sessions, seen.id, 'c', [4, 5])
  await one.settled()
  await server.kill()
  // Its owner does not live to write it again.
  await one.close().catch(() => {})
  await server.restart()
  await isBack(two)
  client.disconnect()
  expect(await comeBack(two.sessions, seen, 3)).toBeUndefined()
}, 60_000)

test('[EXT3] [RES4] a store that is away, and comes back empty: who has a socket here is served, and nothing is lost', async () => {
  const node = await startNode()
  const { sessions } = node
  const [seen, away] = [await openReady(sessions), await openReady(sessions)]
  await stepsOf(sessions).hold(seen.id, 'c', true)
  await relays(sessions, seen.id, 'c', upTo(3))
  await sessions.detach(away.id, away.socket, false, 0)
  await server.kill()
  await sessions.append(seen.id, pushes.state('c', 2, 4))
  expect(await kindOf(() => node.save())).toMatch(/unavailable|unknown/)
  expect(await sessions.append(seen.id, pushes.relay('c', 5))).toBe('volatile')
  // Nobody hears it now, and it is not where it would be safe.
  expect(await kindOf(() => sessions.append(away.id, pushes.relay('c', 6)))).toBe('unavailable')
  await server.restart()
  await isBack(node)
  await node.look()
  expect(await sessions.append(seen.id, pushes.relay('c', 7))).toBe('sent')
  expect(await sessions.holdsAny(seen.id)).toBe(true)
  await sessions.detach(seen.id, seen.socket, false, 0)
  const other = await startNode()
  const back = await comeBack(other.sessions, seen, 1)
  await other.settled()
  expect(back && numbersOf(back.socket)).toEqual([2, 3, 4, 5, 7])
})

test('a store that does not answer: nothing waits for more than 5 s, and it goes on after', async () => {
  const node = await startNode()
  const seen = await openReady(node.sessions)
  process.kill(server.pid, 'SIGSTOP')
  const start = performance.now()
  await node.sessions.append(seen.id, pushes.relay('c', 1))
  expect(await kindOf(() => node.save())).toBe('unknown')
  expect(performance.now() - start).toBeLessThan(soon(5_000))
  process.kill(server.pid, 'SIGCONT')
  await isBack(node)
  expect(await node.sessions.append(seen.id, pushes.relay('c', 2))).toBe('sent')
  await node.settled()
  const other = await startNode()
  const back = await comeBack(other.sessions, seen, 0)
  await other.settled()
  expect(back && numbersOf(back.socket)).toEqual([1, 2])
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

test('[ORD2] what was sent while the connection of an inbox was lost is read from it', async () => {
  const [one, two] = [await startNode(), await startNode()]
  const seen = await openReady(one.sessions)
  const client = new Redis(server.url)
  const asked = relays(two.sessions, seen.id, 'c', upTo(20))
  for (const line of String(await client.call('CLIENT', 'LIST')).split('\n')) {
    const id = /cmd=xread/.test(line) ? /id=(\d+)/.exec(line)?.[1] : undefined
    if (id !== undefined) await client.call('CLIENT', 'KILL', 'ID', id)
  }
  client.disconnect()
  expect(new Set(await asked)).toEqual(new Set(['sent']))
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
    // As long as it looks alive and says nothing, nobody knows.
    if ((await outcomeOf(async () => (await two.sessions.sinkOf(seen.id))?.probe())) === false) return
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
  const [key = ''] = await client.keys(`rw:*:o:${identity.sessionId}`)
  await client.hset(key, { o: 'another', f: '2', k: '0' })
  client.disconnect()
  await sessions.ready(identity.sessionId)
  await sessions.append(identity.sessionId, pushes.relay('c', 1))
  await node.settled()
  expect(sessions.heldHere(identity.sessionId)).toBeUndefined()
  await until('its socket is closed', () => socket.closes.length > 0)
  expect(socket.closes).toEqual([1013])
})

test('[RES1] a connection that its client gives up while another socket is waited for does not get the session', async () => {
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
  // The next owner has all that came.
  expect(await one.sessions.append(seen.id, pushes.state('c', 2, 1))).toBe('kept')
  const next = await comeBack(three.sessions, seen, 0)
  await three.settled()
  expect(next && numbersOf(next.socket)).toEqual([1])
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
    // If it has waited for the older one it looks again, or comes back.
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
      if (open !== undefined) Object.assign(open.upstream, { handled: 7, final: 7 })
    }
    const late = await two.sessions.resume(resumeOf(seen, 0), seen.identity, createSocket(), 0, older)
    expect(retired).toBeGreaterThan(0)
    expect(late?.upstream.handled).toBe(7)
  })
}
