import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { newSessionId } from '../../src/ports/session-id.ts'
import { openReady, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { comeBack, numbersOf, pushes, upTo } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, type SessionNode, sendAll } from './session-nodes.ts'

/** Calls that pass a session by, thousands of them, and answers and ends that are delivered more than once. */
const nodes = createSessionNodes()
let server: RedisServer
let admin: Redis
let node: SessionNode
let other: SessionNode
beforeAll(async () => {
  server = await startRedis()
  admin = new Redis(server.url)
  node = await nodes.start(server.url)
  other = await nodes.start(server.url)
})
afterAll(async () => {
  await nodes.closeAll()
  admin.disconnect()
  await server.stop()
})

/** A session remembers 256 calls with which it has nothing to do any more. A copy of the session has 64 of them. */
const mostRemembered = 256
const mostCopied = 64

/** Calls that ring there and are answered elsewhere, one after the other. */
async function passBy({ sessions }: SessionNode, id: string, calls: readonly string[]): Promise<void> {
  for (const call of calls) {
    await Promise.all([sessions.append(id, pushes.ringing(call, 1, 1)), sessions.append(id, pushes.stop(call, 2, 2))])
  }
}

test('[RES1] of calls that were answered elsewhere a session remembers a few, wherever they were told from', async () => {
  for (const teller of [node, other]) {
    const seen = await openReady(node.sessions)
    // As long as it has not looked for earlier notices, it remembers its pushes.
    await node.sessions.collectFinals(seen.identity)
    await passBy(
      teller,
      seen.id,
      upTo(100).map((n) => `c${n}`),
    )
    const ring = (n: number) => teller.sessions.append(seen.id, pushes.ringing(`c${n}`, 1, 3))
    const last = async () => new Set(await Promise.all(upTo(100, 100 - mostCopied + 1).map(ring)))
    expect(await last()).toEqual(new Set(['dropped']))
    await node.settled()
    await admin.flushall()
    await node.look()
    expect(await last()).toEqual(new Set(['dropped']))
    // Another node that goes on with it knows as many.
    await node.sessions.detach(seen.id, seen.socket, false, 0)
    expect(await comeBack(other.sessions, seen, 200)).toBeDefined()
    expect(await last()).toEqual(new Set(['dropped']))
    expect(await ring(100 - mostCopied)).toBe('sent')
  }
})

test('[ORD3] one that was answered elsewhere a moment ago does not ring again', async () => {
  const seen = await openReady(node.sessions)
  await passBy(node, seen.id, upTo(40).map(String))
  for (const call of ['9', '20', '40']) {
    expect(await node.sessions.append(seen.id, pushes.ringing(call, 1, 3))).toBe('dropped')
  }
  expect(await node.sessions.inCall(seen.id)).toBe(false)
})

test('[PLACE2] a call in which it took a place after all is remembered, however many pass it by', async () => {
  const seen = await openReady(node.sessions)
  const { sessions } = node
  await passBy(node, seen.id, ['mine'])
  await stepsOf(sessions).hold(seen.id, 'mine', true)
  expect(await sessions.append(seen.id, pushes.state('mine', 3, 3))).toBe('sent')
  await passBy(node, seen.id, upTo(100).map(String))
  expect(await sessions.append(seen.id, pushes.state('mine', 3, 3))).toBe('dropped')
  expect(await sessions.append(seen.id, pushes.final('mine', 4, 4))).toBe('sent')
})

test('[RES1] a session where thousands of calls rang comes back, and its head can be asked for', async () => {
  const participant = somebody()
  const seen = await openReady(node.sessions, { participant })
  const calls = upTo(4_100).map((n) => `c${n}`)
  // In parts: requests at the same time have 4 s each from then on.
  for (let i = 0; i < calls.length; i += 100) {
    const part = calls.slice(i, i + 100)
    const told = await Promise.all(part.map((call) => node.sessions.append(seen.id, pushes.ringing(call, 1, 1))))
    expect(new Set(told)).toEqual(new Set(['sent']))
  }
  await node.look()
  await node.sessions.detach(seen.id, seen.socket, false, 0)
  const back = await comeBack(other.sessions, seen, calls.length)
  expect(back?.epoch).toBe(seen.epoch)
  expect(await other.sessions.inCall(seen.id)).toBe(true)
  await other.sessions.appendRung(participant, pushes.final('c4100', 2, 2), [])
  await other.settled()
  expect(back && numbersOf(back.socket)).toEqual([2])
})

test('[REL2] a gate that was opened is not closed again by who tells of the same answer late', async () => {
  for (const holder of [node, other]) {
    const seen = await openReady(holder.sessions)
    const { sessions } = node
    await stepsOf(sessions).hold(seen.id, 'c', true, true, 2)
    await sessions.append(seen.id, pushes.relay('c', 2))
    await stepsOf(sessions).openGate(seen.id, 'c', [pushes.relay('c', 1)])
    await stepsOf(other.sessions).hold(seen.id, 'c', true, true, 2)
    expect(await sessions.append(seen.id, pushes.relay('c', 3))).toBe('sent')
    // Nor is what came first handed over again.
    await stepsOf(other.sessions).openGate(seen.id, 'c', [pushes.relay('c', 1)])
    await holder.settled()
    expect(numbersOf(seen.socket)).toEqual([1, 2, 3])
  }
})

test('[REL2] a gate that was opened is open for who takes the place, and a closed one is closed', async () => {
  for (const isOpened of [true, false]) {
    const participant = somebody()
    const [from, to] = [
      await openReady(node.sessions, { participant }),
      await openReady(node.sessions, { participant }),
    ]
    const { sessions } = node
    await stepsOf(sessions).hold(from.id, 'c', true, true, 2)
    if (isOpened) await stepsOf(sessions).openGate(from.id, 'c', [])
    await sessions.detach(from.id, from.socket, false, 0)
    await sessions.move('c', from.id, to.id, true, 3)
    expect(await sessions.append(to.id, pushes.relay('c', 1))).toBe(isOpened ? 'sent' : 'kept')
    if (!isOpened) await stepsOf(sessions).openGate(to.id, 'c', [])
    await node.settled()
    expect(numbersOf(to.socket)).toEqual([1])
  }
})

test('[PLACE2] [WS4] what a session without a socket is told at once waits in it, however long the store takes to save it', async () => {
  const participant = somebody()
  const left = { sessionId: newSessionId(participant), participant, deviceId: null, extended: false }
  const at = Date.now()
  const { promise: mayBeSaved, resolve: save } = Promise.withResolvers<void>()
  const before = node.ran.length
  node.onScript = (name, _args, send) => (name === 'save' ? mayBeSaved.then(send) : send())
  const { sessions } = node
  const step = { call: 'c', pushes: [pushes.stop('c', 2, 1)], orOpen: { identity: left, at } }
  const told = sessions.apply(left.sessionId, step)
  await until('it is being saved', () => node.ran.slice(before).includes('save'))
  sessions.sweep(at + 1)
  save()
  node.onScript = sendAll
  expect(await told).toEqual([])
  await node.settled()
  const back = await openReady(other.sessions, { participant, deviceId: null }, at + 2)
  await other.sessions.collectFinals(back.identity)
  expect(numbersOf(back.socket)).toEqual([1])
})

test(`[ORD3] that one of the last ${mostCopied} calls is over is told once, whichever node comes late, also where the store was emptied`, async () => {
  for (const teller of [node, other]) {
    const seen = await openReady(node.sessions)
    const calls = upTo(mostCopied).map((n) => `c${n}`)
    const tellEnds = async () => {
      const results = []
      for (const call of calls) results.push(await teller.sessions.append(seen.id, pushes.final(call, 2, 1)))
      return new Set(results)
    }
    expect(await tellEnds()).toEqual(new Set(['sent']))
    expect(await tellEnds()).toEqual(new Set(['dropped']))
    await node.settled()
    expect(numbersOf(seen.socket)).toEqual(calls.map(() => 1))
    await admin.flushall()
    await node.look()
    expect(await tellEnds()).toEqual(new Set(['dropped']))
  }
})

test('[ORD3] of more ends the oldest are forgotten first', async () => {
  const seen = await openReady(node.sessions)
  await node.sessions.collectFinals(seen.identity)
  const end = (n: number) => node.sessions.append(seen.id, pushes.final(`c${n}`, 2, 1))
  for (const n of upTo(mostRemembered + 3)) expect(await end(n)).toBe('sent')
  for (const n of upTo(mostRemembered + 3, 4)) expect(await end(n)).toBe('dropped')
  for (const n of [1, 2, 3]) expect(await end(n)).toBe('sent')
})
