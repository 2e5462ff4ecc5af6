import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { createSaves } from '../../src/cluster/saves.ts'
import { createSocket, identityOf, openReady, resumeOf, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import type { Sink } from '../../src/ports/sessions.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import type { Session } from '../../src/session/session.ts'
import { createSessionTable } from '../../src/session/table.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisCopies } from '../../src/stores/redis/copies.ts'
import { logKey, rowKey } from '../../src/stores/redis/keys.ts'
import { createSystemTimers } from '../../src/time/timers.ts'
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
import { outcomeOf, type SessionNode, sendAll, startNodes, useSessionNodes, writeRow } from './session-nodes.ts'

/** Sessions on their way from one node to another. */
const { nodes, server, start } = await useSessionNodes()

test('[RES1] a session that was given away is not taken back before the other node could take it over', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(seen.id, 'c', true)
  await one.sessions.detach(seen.id, seen.socket, false, 0)
  await one.settled()
  const given = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  two.onScript = async (name, _args, send) => {
    if (name !== 'claim') return send()
    given.resolve()
    await goOn.promise
    return send()
  }
  const there = comeBack(two.sessions, seen, 0)
  await given.promise
  const from = one.ran.length
  const here = comeBack(one.sessions, seen, 0)
  await until('the other node is asked for it', () => one.ran.slice(from).includes('post'))
  expect(one.ran.slice(from)).not.toContain('claim')
  goOn.resolve()
  await outcomeOf(() => there)
  const back = await here
  await two.sessions.append(seen.id, pushes.relay('c', 1))
  await one.settled()
  expect(back && numbersOf(back.socket)).toEqual([1])
  client.disconnect()
})

/** A session that the first node has given to the second, which could not take it over. */
async function givenOnly(
  one: SessionNode,
  two: SessionNode,
  prepare: (id: string) => unknown = (id) => stepsOf(one.sessions).hold(id, 'c', true),
): Promise<Seen> {
  const seen = await openReady(one.sessions)
  await prepare(seen.id)
  // It knows from before where the session is.
  await two.sessions.seen(seen.identity.participant)
  await one.sessions.detach(seen.id, seen.socket, false, 0)
  await one.settled()
  two.onScript = (name, _args, send) =>
    name === 'claim' ? Promise.reject(new StoreError('unavailable', 'just now')) : send()
  expect(await outcomeOf(() => comeBack(two.sessions, seen, 0))).toBe('unavailable')
  two.onScript = sendAll
  return seen
}

test('[RES1] a session that was given away, and not taken over, is there for whoever comes back next', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  for (const next of [two, three, one]) {
    const seen = await givenOnly(one, two)
    const back = await comeBack(next.sessions, seen, 0)
    await three.sessions.append(seen.id, pushes.relay('c', 1))
    await next.settled()
    expect(back && numbersOf(back.socket)).toEqual([1])
  }
  client.disconnect()
})

test('[RES1] [RING1] it is there, too, where nobody heard that it was given away', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  const called = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(called.id, 'c', true)
  const rung = await openReady(one.sessions)
  await stepsOf(one.sessions).ring(rung.id, 'd')
  for (const { id, socket, identity } of [called, rung]) {
    await one.sessions.detach(id, socket, false, 0)
    await two.sessions.seen(identity.participant)
  }
  await one.settled()
  const owner = await client.hget(rowKey(called.id), 'o')
  // Its answers are lost.
  one.onScript = (name, _args, send) => (name === 'post' ? new Promise(() => {}) : send())
  const waiting = [called, rung].map((seen) => outcomeOf(() => comeBack(two.sessions, seen, 0)))
  for (const { id } of [called, rung])
    await until('it is given away', async () => (await client.hget(rowKey(id), 'o')) !== owner)
  one.onScript = sendAll
  await three.sessions.appendRung(rung.identity.participant, pushes.stop('d', 2, 2), [])
  for (const seen of [called, rung]) expect(await comeBack(three.sessions, seen, 0)).toBeDefined()
  await Promise.all(waiting)
  client.disconnect()
})

test('[RING1] [EXT3] what comes for a session that was given away, and not taken over, waits in it', async () => {
  const { started, client } = await start(3)
  const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
  for (const from of [one, two, three]) {
    const called = await givenOnly(one, two)
    expect(await from.sessions.append(called.id, pushes.relay('c', 1))).toBe('kept')
    const rung = await givenOnly(one, two, (id) => stepsOf(one.sessions).ring(id, 'd'))
    await from.sessions.appendRung(rung.identity.participant, pushes.stop('d', 2, 2), [])
    for (const seen of [called, rung]) {
      const back = await comeBack(three.sessions, seen, 0)
      expect(back && seqsOf(back.socket)).toEqual([1])
    }
  }
  client.disconnect()
})

const waysBack: Record<string, readonly number[]> = { 'from another node': [2, 0], 'to the same node': [0] }
for (const [way, path] of Object.entries(waysBack)) {
  test(`[RES1] a question of before takes a session from nobody who has come back since: ${way}`, async () => {
    const { started, client } = await start(3)
    const [one, two, three] = started as [SessionNode, SessionNode, SessionNode]
    const seen = await openReady(one.sessions)
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    // As one that is read when its node goes on after a standstill, or finds Redis again.
    two.onScript = async (name, _args, send) => {
      if (name !== 'post') return send()
      asked.resolve()
      await goOn.promise
      return send()
    }
    let isClosed = false
    const late: Sink = {
      ...createSocket(),
      get isClosed() {
        return isClosed
      },
    }
    const comesLate = outcomeOf(() => two.sessions.sinkToReplace(seen.id, seen.identity, late, 0))
    await asked.promise
    let back: Seen | undefined
    for (const at of path) {
      const socket = createSocket()
      const { sessions } = started[at] as SessionNode
      const old = await sessions.sinkToReplace(seen.id, seen.identity, socket, 0)
      await old?.retire()
      expect(await sessions.resume(resumeOf(seen, 0), seen.identity, socket, 0, old)).toBeDefined()
      sessions.ready(seen.id, socket)
      back = { ...seen, socket }
    }
    isClosed = true
    goOn.resolve()
    expect(await comesLate).toBe('unavailable')
    await relays(three.sessions, seen.id, 'c', [1])
    expect([back?.socket.retirements, back?.socket.closes]).toEqual([0, []])
    expect(back && numbersOf(back.socket)).toEqual([1])
    client.disconnect()
  })
}

test('[RES1] a session that was given away is not taken back where Redis has forgotten that', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await one.settled()
  const before = await client.hgetall(rowKey(seen.id))
  const there = await comeBack(two.sessions, seen, 0)
  await stepsOf(two.sessions).hold(seen.id, 'c', true)
  await relays(two.sessions, seen.id, 'c', [1])
  await two.settled()
  // A replica that was behind.
  await writeRow(client, seen.id, before)
  const back = there && (await comeBack(one.sessions, there, 0))
  expect(back && numbersOf(back.socket)).toEqual([1])
  expect(await one.sessions.holdsAny(seen.id)).toBe(true)
  client.disconnect()
})

test('[WS4] [RES2] a session that nobody can resume is given away whatever its last socket still waits for', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  Object.assign(seen.socket, { isBusy: true, retire: () => new Promise(() => {}) })
  await stepsOf(one.sessions).ring(seen.id, 'c')
  await one.sessions.detach(seen.id, seen.socket, true, 0)
  await one.settled()
  const other = await openReady(two.sessions, {
    participant: seen.identity.participant,
    deviceId: seen.identity.deviceId,
  })
  await two.sessions.collectFinals(other.identity)
  await one.sessions.appendRung(seen.identity.participant, pushes.stop('c', 2, 1), [])
  await two.settled()
  expect(numbersOf(other.socket)).toEqual([1])
  client.disconnect()
})

test('[WS4] a device that answered at another node is not told by its session of before that another one did', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const about = { deviceId: 'phone', extended: false }
  const before = await openReady(one.sessions, about)
  await one.sessions.append(before.id, pushes.ringing('c', 1, 1))
  await one.sessions.detach(before.id, before.socket, false, 0)
  await one.settled()
  const { participant } = before.identity
  const answers = await openReady(two.sessions, { ...about, participant })
  await two.sessions.collectFinals(answers.identity)
  await two.sessions.append(answers.id, pushes.ringing('c', 1, 1))
  await two.sessions.appendRung(participant, pushes.stop('c', 2, 2), [answers.id])
  await two.sessions.detach(answers.id, answers.socket, true, 0)
  await two.settled()
  for (const at of [two, one]) {
    const next = await openReady(at.sessions, { ...about, participant })
    await at.sessions.collectFinals(next.identity)
    await at.settled()
    expect(numbersOf(next.socket)).toEqual([])
  }
  client.disconnect()
})

test('[RES1] what comes to a session of a node that stops goes along with it', async () => {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(seen.id, 'c', true)
  await relays(one.sessions, seen.id, 'c', upTo(512))
  await one.sessions.detach(seen.id, seen.socket, false, 0)
  await one.settled()
  // It comes while the last save is under way.
  let results: unknown[] = []
  one.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name === 'save') {
      one.onScript = sendAll
      results = [one.sessions.append(seen.id, pushes.relay('c', 513))]
    }
    return reply
  }
  await one.close()
  expect(results).toEqual(['kept'])
  const back = await comeBack(two.sessions, seen, 1)
  expect(back && numbersOf(back.socket)).toEqual(upTo(513).slice(1))
  client.disconnect()
})

test('[EXT3] a session is given away with all that came meanwhile, whoever waits for the save of it', async () => {
  const url = await server.database()
  const { client } = await startNodes(nodes, url, 0)
  const store = createStore(url, () => {})
  await store.ready()
  const gates: PromiseWithResolvers<void>[] = []
  const run = async (...how: Parameters<typeof store.run>) => {
    const reply = await store.run(...how)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    await gate.promise
    return reply
  }
  const table = createSessionTable({ windowMs, resumeWindowMs, newEpoch: () => 'epoch', isShared: true })
  const refused: Session[] = []
  const saves = createSaves({
    ...{ table, longestMs: resumeWindowMs },
    copies: createRedisCopies({ ...store, run }, 'one'),
    onRefused: (session) => refused.push(session),
    onDiverged: () => {},
    onError: () => {},
    timers: createSystemTimers(),
  })
  const identity = identityOf()
  const id = identity.sessionId
  stepsOf(table).openDetached(identity, 0)
  let isGiven = false
  const given = saves.give(table.get(id) as Session, 'two').then(() => {
    isGiven = true
  })
  for (let n = 1; n <= 3; n++) {
    await until('a save is under way', () => gates.length === n)
    expect(await client.hget(rowKey(id), 'o')).toBe('two')
    expect(await client.llen(logKey(id))).toBe(n - 1)
    table.append(id, pushes.relay('c', n))
    // Somebody else's.
    const save = saves.save()
    gates[n - 1]?.resolve()
    await until('the next one is under way', () => gates.length === n + 1)
    save?.catch(() => {})
  }
  expect(isGiven).toBe(false)
  gates[3]?.resolve()
  await given
  expect(await client.llen(logKey(id))).toBe(3)
  expect(refused).toEqual([])
  store.close()
  client.disconnect()
})
