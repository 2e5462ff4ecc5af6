import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { callKey } from '../../src/call/call.ts'
import { type Notice, ringingData, type Step } from '../../src/call/effects.ts'
import { createDelivery } from '../../src/services/delivery.ts'
import { created, held, ringing } from '../contracts/calls.ts'
import { openReady, pushes, upTo } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, type SessionNode, until } from './session-nodes.ts'

/** How far calls were told, and who knows it. */
const nodes = createSessionNodes()
let server: RedisServer
let admin: Redis
let node: SessionNode
beforeEach(async () => {
  server = await startRedis(['--enable-debug-command', 'yes'])
  admin = new Redis(server.url)
  node = await nodes.start(server.url)
})
afterEach(async () => {
  await nodes.closeAll()
  admin.disconnect()
  await server.stop()
})

test('[RES4] what a node told it tells a store that was emptied, and nothing to one that knows something', async () => {
  const { sessions } = node
  await sessions.setTold('emptied', 3, false)
  await sessions.setTold('over', 4, true)
  await admin.flushall()
  await until('it is known again', async () => (await admin.keys('rw:t:*')).length === 2, 4_000)
  const other = await nodes.start(server.url)
  expect(await other.sessions.toldOf('emptied', 3)).toBe(3)
  expect(await other.sessions.toldOf('over', 4)).toBe(4)
  // A store that forgot the nodes, and has heard of less.
  await admin.set((await admin.keys('rw:t:emptied'))[0] ?? '', '1')
  await admin.del('rw:alive', 'rw:w:0', ...(await admin.keys('rw:t:over')))
  await until('it is told what it does not know', async () => (await admin.keys('rw:t:over')).length === 1, 4_000)
  expect(await other.sessions.toldOf('emptied', 3)).toBe(1)
})

test('[RES4] of several nodes that told a call the store that was emptied knows the last, in whatever order they say so', async () => {
  const both = [node, await nodes.start(server.url)]
  const others = [both, both.toReversed()]
  for (const [n, [first, second]] of others.entries()) {
    await first!.sessions.setTold(`c${n}`, 3, false)
    await second!.sessions.setTold(`c${n}`, 4, false)
  }
  const asker = await nodes.start(server.url)
  await asker.sessions.sweep(Date.now())
  for (const call of ['c0', 'c1']) expect((await asker.sessions.toldExactly(call)).before).toBe(0)
  await admin.flushall()
  for (const call of ['c0', 'c1']) {
    await until('both have said so', async () => (await asker.sessions.toldOf(call, 4)) === 4, 4_000)
    // One that is gone may have told more.
    expect((await asker.sessions.toldExactly(call)).before).toBeGreaterThan(0)
    await asker.sessions.setTold(call, 5, false)
    expect((await asker.sessions.toldExactly(call)).before).toBe(0)
  }
})

test('[ORD3] of what was committed before the store was emptied, only the last is told again', async () => {
  const at = Date.now()
  await node.sessions.sweep(at)
  // Where nobody served, nothing was lost.
  await node.sessions.tellAll()
  expect((await node.sessions.toldExactly('c')).before).toBe(0)
  await admin.flushall()
  // One that starts just now knows nobody yet.
  await nodes.start(server.url)
  const before = (await node.sessions.toldExactly('c')).before
  expect(before).toBeWithin(at - 18_000, at - 14_000)
  await node.sessions.sweep(at + 60_000)
  expect((await node.sessions.toldExactly('c')).before).toBe(before)
})

test('[ORD3] a process that stood still asks what others told meanwhile', async () => {
  const other = await nodes.start(server.url)
  const seen = await openReady(node.sessions)
  const caller = await openReady(other.sessions)
  const call = ringing(caller.identity.participant, seen.identity.participant, { callerPlace: held(caller.id) })
  const notice = { to: { place: 'rung', except: [] }, event: 'call.ringing', data: ringingData(call, 0) } as Notice
  const invited = created(call)
  const step: Step = { ...invited, event: { ...invited.event, notices: [notice] } }
  const handOn = async ({ sessions }: SessionNode, at: number) => {
    const delivery = createDelivery({
      sessions,
      now: () => at,
      stepsAfter: () => [step],
      isHeldElsewhere: () => false,
      tell() {},
      onApplied() {},
      onError(error) {
        throw error
      },
    })
    expect(await delivery.apply(step)).toBe(true)
    await node.settled()
  }
  await handOn(other, step.event.at)
  // Longer than it is known to the session that it rang and is over.
  await other.sessions.append(seen.id, pushes.final(callKey(call), 2, 1))
  for (const n of upTo(64)) await other.sessions.append(seen.id, pushes.final(`c${n}`, 2, n))
  await handOn(node, step.event.at + 20_000)
  expect(seen.socket.told.filter(({ event }) => event === 'call.ringing')).toHaveLength(1)
})
