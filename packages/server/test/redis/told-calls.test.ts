import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { callKey } from '../../src/call/call.ts'
import { type Notice, ringingData, type Step } from '../../src/call/effects.ts'
import { createDelivery } from '../../src/services/delivery.ts'
import { created, held, ringing } from '../contracts/calls.ts'
import { comeBack, numbersOf, openReady, pushes, somebody, upTo } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, type SessionNode, until } from './session-nodes.ts'

/** What is remembered of calls that a session was told of. */
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

async function fieldsOf(sessionId: string, letter: string): Promise<number> {
  const [key = ''] = await admin.keys(`rw:*:s:${sessionId}`)
  return (await admin.hkeys(key)).filter((field) => field.startsWith(letter)).length
}

test('[PLACE1] of calls that a session declined, or was busy for, only the last are remembered', async () => {
  const { sessions } = node
  const seen = await openReady(sessions)
  const { participant } = seen.identity
  for (const n of upTo(100)) {
    await sessions.append(seen.id, pushes.ringing(`declined-${n}`, 1, n))
    await sessions.appendRung(participant, pushes.final(`declined-${n}`, 2, 1_000 + n), [seen.id])
    await sessions.append(seen.id, pushes.ringing(`busy-${n}`, 1, 100 + n))
    await sessions.appendRung(participant, pushes.stop(`busy-${n}`, 2, 2_000 + n), [seen.id])
  }
  expect(await sessions.inCall(seen.id)).toBe(false)
  expect(await fieldsOf(seen.id, 'V')).toBe(32)
  expect(await fieldsOf(seen.id, 'F')).toBe(64)
  for (const call of ['declined-100', 'busy-100']) {
    expect(await sessions.append(seen.id, pushes.ringing(call, 1, 3_000))).toBe('dropped')
  }
  // What its holder remembers goes into a log that begins again.
  await admin.flushall()
  await node.look()
  await until('the loss is told', () => numbersOf(seen.socket).includes(0))
  expect(await fieldsOf(seen.id, 'V')).toBe(32)
  expect(await fieldsOf(seen.id, 'F')).toBe(64)
})

test('[RES4] of calls that are over the last are remembered, wherever a session comes back and whatever is lost', async () => {
  const other = await nodes.start(server.url)
  let seen = await openReady(node.sessions)
  const { append } = node.sessions
  let n = 0
  const over = async (count: number) => {
    for (const end = n + count; n < end; ) await append(seen.id, pushes.final(`c${++n}`, 2, n))
    await until('all are told', () => numbersOf(seen.socket).includes(n))
  }
  const lose = async (holder: SessionNode) => {
    await admin.flushall()
    await holder.look()
    await until('the loss is told', () => numbersOf(seen.socket).at(-1) === 0)
  }
  await over(50)
  await lose(node)
  await node.sessions.detach(seen.id, seen.socket, false, 0)
  const back = await comeBack(other.sessions, { ...seen, epoch: node.lost.at(-1)?.epoch ?? '' }, 1)
  if (back === undefined) throw new Error('it cannot be resumed')
  seen = back
  await over(20)
  await lose(other)
  await over(4)
  for (const last of upTo(64).map((i) => n + 1 - i)) {
    expect(await append(seen.id, pushes.final(`c${last}`, 2, 9_000 + last))).toBe('dropped')
  }
})

test('[RES4] of calls that are over the first are forgotten first, also where the store knows only the last of them', async () => {
  const { sessions } = node
  const seen = await openReady(sessions)
  for (const n of upTo(64)) await sessions.append(seen.id, pushes.final(`c${n}`, 2, n))
  await until('all are told', () => numbersOf(seen.socket).includes(64))
  const [key = ''] = await admin.keys(`rw:*:s:${seen.id}`)
  const names = ((await admin.hget(key, 'fc')) ?? '').split(' ')
  // The last of them, and one of which its holder has not heard.
  await admin.hdel(key, ...upTo(54).map((n) => `Fc${n}`))
  await admin.hset(key, { fc: [...names.slice(54), '1:unheard'].join(' '), Funheard: '1' })
  await admin.call('DEBUG', 'CHANGE-REPL-ID')
  await node.look()
  await until('the loss is told', () => numbersOf(seen.socket).includes(0))
  const known = ((await admin.hget(key, 'fc')) ?? '').split(' ').map((entry) => entry.split(':')[1])
  expect(known).toEqual([...upTo(64, 2).map((n) => `c${n}`), 'unheard'])
  expect(await fieldsOf(seen.id, 'F')).toBe(64)
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
  await admin.del('rw:nodes', ...(await admin.keys('rw:t:over')))
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

test('[RES4] after a loss the store is asked how far a call was told: it may be one that has heard of less', async () => {
  const { sessions } = node
  const seen = await openReady(sessions)
  await sessions.setTold('c', 2, false)
  const [key = ''] = await admin.keys('rw:t:*')
  await admin.set(key, '1')
  expect(await sessions.toldOf('c', 2)).toBe(2)
  await admin.call('DEBUG', 'CHANGE-REPL-ID')
  await node.look()
  await until('the loss is told', () => numbersOf(seen.socket).includes(0))
  expect(await sessions.toldOf('c', 2)).toBe(1)
})

test('[PLACE2] of places that passed on, so many are remembered, for a minute', async () => {
  const owner = { participant: somebody() }
  const [from, to] = [await openReady(node.sessions, owner), await openReady(node.sessions, owner)]
  const passOn = async (call: string) => {
    await node.sessions.hold(from.id, call, true, false, 2)
    await node.sessions.move(call, from.id, to.id, true, 3)
    await node.sessions.release(to.id, call)
  }
  for (const n of upTo(70)) await passOn(`c${n}`)
  expect(await fieldsOf(from.id, 'Q')).toBe(64)
  // Told late, that it has the place is old news.
  await node.sessions.hold(from.id, 'c70', true, false, 2)
  expect(await node.sessions.holdsAny(from.id)).toBe(false)
  await node.sessions.sweep(60_001)
  await passOn('last')
  expect(await fieldsOf(from.id, 'Q')).toBe(1)
  await node.sessions.sweep(120_002)
  await node.look()
  expect([await fieldsOf(from.id, 'Q'), await fieldsOf(from.id, 'qc')]).toEqual([0, 0])
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
