import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { createSocket, identityOf, openReady, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { comeBack, numbersOf, pushes, relays, seqsOf, upTo } from '../contracts/session-parts.ts'
import { loseFirstReply, outcomeOf, type SessionNode, sendAll, useSessionNodes } from './session-nodes.ts'

/** At most one node owns a session, whatever fails on the way. */
const { start } = await useSessionNodes()

test('[ORD2] a save whose reply was lost is written again, and nothing of it is there twice', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await relays(one.sessions, seen.id, 'c', [1, 2])
  await one.settled()
  loseFirstReply(one, 'save')
  await relays(one.sessions, seen.id, 'c', [3, 4])
  expect(await outcomeOf(async () => one.save())).toBe('unknown')
  await until('it is written again', async () => (await outcomeOf(async () => one.save())) === undefined)
  await relays(one.sessions, seen.id, 'c', [5])
  const back = await comeBack(two.sessions, seen, 0)
  await two.settled()
  expect(back && numbersOf(back.socket)).toEqual(upTo(5))
  expect(back && seqsOf(back.socket)).toEqual(upTo(5))
  client.disconnect()
})

test('[EXT3] [HEALTH1] what is just being tried again is not saved yet', async () => {
  const { started, client } = await start(1)
  const [one] = started as [SessionNode]
  const seen = await openReady(one.sessions)
  await one.settled()
  const tried = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  let saves = 0
  one.onScript = async (name, _args, send) => {
    if (name !== 'save') return send()
    if (++saves === 1) throw new StoreError('unavailable', 'just now')
    tried.resolve()
    await goOn.promise
    return send()
  }
  await relays(one.sessions, seen.id, 'c', [1])
  expect(await outcomeOf(async () => one.save())).toBe('unavailable')
  await tried.promise
  expect(await outcomeOf(async () => one.save())).toBe('unavailable')
  // Nor does it say that it is ready: a client that came now would have to come later [HEALTH1].
  expect(one.canSave()).toBe(false)
  goOn.resolve()
  await until('it is saved', async () => (await outcomeOf(async () => one.save())) === undefined)
  expect(one.canSave()).toBe(true)
  client.disconnect()
})

test('[REL2] what is kept already, or is too much, is not saved once more', async () => {
  const { started, client } = await start(1)
  const [one] = started as [SessionNode]
  const seen = await openReady(one.sessions)
  const keep = (n: number) => one.sessions.keep(seen.id, { ...pushes.relay('c', n), source: { sessionId: 's', n } })
  await one.settled()
  await keep(1)
  expect(one.save()).toBeDefined()
  await one.settled()
  await keep(1)
  expect(one.save()).toBeUndefined()
  client.disconnect()
})

test('[WS4] an end that a dead base socket asked for goes to its device at another node, though that request waits for it', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const dead = await openReady(one.sessions, { extended: false })
  await stepsOf(one.sessions).hold(dead.id, 'c', true, false, 1)
  await one.settled()
  // Its request from before it died is not over, and reports the end.
  const asked = Promise.withResolvers<void>()
  dead.socket.isBusy = true
  dead.socket.retire = () => asked.promise
  await one.sessions.detach(dead.id, dead.socket, false, 0)
  const back = await openReady(two.sessions, { ...dead.identity, extended: false })
  await two.sessions.collectFinals(back.identity)
  await two.settled()
  // Else that rejects: nobody answers in time.
  await one.sessions.append(dead.id, pushes.final('c', 4, 4))
  asked.resolve()
  await until('it is told', () => back.socket.told.length > 0)
  expect(numbersOf(back.socket)).toEqual([4])
  client.disconnect()
})

test('[EXT3] an answer that could not be posted is posted again: nobody who asked waits in vain', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await one.settled()
  expect(await two.sessions.append(seen.id, pushes.relay('c', 1))).toBe('sent')
  let failures = 0
  one.onScript = (name, _args, send) => {
    if (name !== 'post' || ++failures > 3) return send()
    return Promise.reject(new StoreError('unavailable', 'just now'))
  }
  expect(await two.sessions.append(seen.id, pushes.relay('c', 2))).toBe('sent')
  expect(failures).toBeGreaterThan(3)
  loseFirstReply(one, 'post')
  expect(await two.sessions.append(seen.id, pushes.relay('c', 3))).toBe('sent')
  await one.settled()
  expect(numbersOf(seen.socket)).toEqual([1, 2, 3])
  client.disconnect()
})

test('[ORD3] a session that comes to the deliverer while it looks for others is told, too', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const participant = somebody()
  const [moving, staying] = [
    await openReady(one.sessions, { participant }),
    await openReady(one.sessions, { participant }),
  ]
  for (const { id } of [moving, staying]) await one.sessions.append(id, pushes.ringing('c', 1, 1))
  await one.settled()
  const { promise: isThere, resolve: come } = Promise.withResolvers<void>()
  two.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name === 'rows') await isThere
    return reply
  }
  const telling = two.sessions.appendRung(participant, pushes.final('c', 2, 2), [])
  const back = await comeBack(two.sessions, moving, 1)
  come()
  await telling
  await Promise.all([one.settled(), two.settled()])
  expect(back && numbersOf(back.socket)).toEqual([2])
  expect(numbersOf(staying.socket)).toEqual([1, 2])
  client.disconnect()
})

test('[ORD3] a deliverer takes over no session that this node is just giving away', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await one.sessions.append(seen.id, pushes.ringing('c', 1, 1))
  await one.settled()
  // What it saves to give it away takes a while.
  const { promise: isTold, resolve: go } = Promise.withResolvers<void>()
  let isHeldUp = false
  one.onScript = async (name, _args, send) => {
    if (name === 'save' && !isHeldUp) {
      isHeldUp = true
      await isTold
    }
    return send()
  }
  const coming = comeBack(two.sessions, seen, 1)
  await until('it is given away', () => isHeldUp)
  const telling = one.sessions.appendRung(seen.identity.participant, pushes.final('c', 2, 2), [])
  await until('others are looked for', () => one.ran.includes('rows'))
  await Bun.sleep(0)
  go()
  await telling
  const back = await coming
  await two.settled()
  expect(back && numbersOf(back.socket)).toEqual([2])
  // Given away once.
  expect(await client.hget(rowKey(seen.id), 'f')).toBe('2')
  client.disconnect()
})

for (const how of ['append', 'appendRung', 'apply', 'apply anew'] as const) {
  for (const teller of [0, 1]) {
    test(`[WS4] an end (${how}, told by node ${teller}) is heard on another node by who came back and has looked, once`, async () => {
      const { started, client } = await start(2)
      const [one, two] = started as [SessionNode, SessionNode]
      const identity = identityOf({ extended: false })
      const { sessionId, participant, deviceId } = identity
      if (how !== 'apply anew') {
        const socket = createSocket()
        await one.sessions.open(identity, socket, 0)
        await one.sessions.append(sessionId, pushes.ringing('c', 1, 1))
        await one.sessions.detach(sessionId, socket, false, 0)
      }
      const open = (device: typeof deviceId) =>
        openReady(two.sessions, { participant, extended: false, deviceId: device }, 1)
      const [other, back, next] = [await open('another'), await open(deviceId), await open(deviceId)]
      for (const { identity } of [other, back, next]) await two.sessions.collectFinals(identity)
      const end = pushes.final('c', 2, 2)
      const anew = how === 'apply anew' && { orOpen: { identity, at: 0 } }
      const { sessions } = started[teller]!
      if (how === 'append') await sessions.append(sessionId, end)
      else if (how === 'appendRung') await sessions.appendRung(participant, end, [])
      else await sessions.apply(sessionId, { call: 'c', pushes: [end], isOver: true, ...anew })
      await Promise.all([one.settled(), two.settled()])
      const heard = [other, back, next].map(({ socket }) => numbersOf(socket).length)
      expect([heard[0], heard[1]! + heard[2]!]).toEqual([0, 1])
      client.disconnect()
    })
  }
}

test('[EXT3] nothing is saved of what did not change, and all of a turn in one write', async () => {
  const { started, client } = await start(1)
  const [one] = started as [SessionNode]
  const all = await Promise.all(Array.from({ length: 50 }, () => openReady(one.sessions)))
  await one.settled()
  const before = one.ran.length
  for (const { id } of all) for (const n of [1, 2, 3]) void one.sessions.append(id, pushes.relay('c', n))
  await one.save()
  expect(one.ran.slice(before).filter((name) => name === 'save')).toHaveLength(1)
  expect(one.save()).toBeUndefined()
  client.disconnect()
})

test('[EXT3] what is asked of another node is done once, also where it had to be sent again after something later', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const [first, second] = [await openReady(two.sessions), await openReady(two.sessions)]
  const { promise: isSent, resolve: go } = Promise.withResolvers<void>()
  let isOnItsWay = false
  one.onScript = async (name, _args, send) => {
    if (name !== 'post') return send()
    one.onScript = sendAll
    isOnItsWay = true
    await isSent
    return send()
  }
  const late = one.sessions.append(first.id, pushes.relay('c', 1))
  await until('it is on its way', () => isOnItsWay)
  expect(await one.sessions.append(second.id, pushes.relay('d', 2))).toBe('sent')
  go()
  expect(await late).toBe('sent')
  // Existing batches are read from the beginning, and done no second time.
  await client.del('rw:w:0')
  await two.look()
  await two.settled()
  expect([first, second].map(({ socket }) => numbersOf(socket))).toEqual([[1], [2]])
  client.disconnect()
})

test('[ID2] a session that is not there is looked for, and none comes of it', async () => {
  const { started, client } = await start(2)
  const [one] = started as [SessionNode]
  const identity = identityOf()
  expect(await one.sessions.append(identity.sessionId, pushes.relay('c', 1))).toBe('gone')
  expect(await one.sessions.sinkToReplace(identity.sessionId, identity, createSocket())).toBeUndefined()
  expect(await client.keys('rw:*:o:*')).toEqual([])
  client.disconnect()
})

test('[PEER1] where another node that serves has a socket of it a session is back, and nowhere else', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await one.settled()
  const nodeOf = async () => String(await client.hget(rowKey(seen.id), 'o'))
  const first = await nodeOf()
  const isBack = async (node: string, asked = three) => (await asked.sessions.awaitedMs(seen.id, node)) === 'back'
  expect(await isBack(first)).toBe(false)
  await one.sessions.detach(seen.id, seen.socket, false, 0, { awaitedMs: 1_100 })
  expect(await three.sessions.awaitedMs(seen.id, first)).toBe(1_100)
  const back = await comeBack(two.sessions, seen, 0)
  const second = await nodeOf()
  expect([await isBack(first), await isBack(first, one), await isBack(second)]).toEqual([true, true, false])
  await two.sessions.detach(seen.id, back!.socket, false, 0)
  expect(await isBack(first)).toBe(false)
  await client.hset(rowKey(seen.id), { o: 'dead', k: '1' })
  await until('that node is known to be dead', async () => !(await isBack(first)))
  client.disconnect()
}, 60_000)
