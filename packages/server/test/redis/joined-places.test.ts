import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openReady, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { numbersOf, pushes, resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'

/** Several nodes tell of one call: one of them may have begun with the session that has the place now. */
let server: RedisServer
let node: RedisSessions
beforeAll(async () => {
  server = await startRedis()
  node = createRedisSessions({
    ...{ url: server.url, node: 'one', windowMs, resumeWindowMs },

    onError: (error) => console.error(error),
  })
  await node.start()
})
afterAll(async () => {
  await node.close()
  await server.stop()
})

async function twoOfOne() {
  const participant = somebody()
  const { sessions } = node
  return {
    sessions,
    before: await openReady(sessions, { participant }),
    after: await openReady(sessions, { participant }),
  }
}

const relayFor = (n: number) => ({ ...pushes.relay('c', n), forPlace: true })

test('[PLACE2] what is held back at both goes on behind one gate, that of before in front', async () => {
  const { sessions, before, after } = await twoOfOne()
  for (const { id } of [before, after]) await stepsOf(sessions).hold(id, 'c', true, true)
  expect(await sessions.append(before.id, relayFor(1))).toBe('kept')
  expect(await sessions.append(after.id, relayFor(2))).toBe('kept')
  expect(await sessions.move('c', before.id, after.id, true)).toBe(true)
  await stepsOf(sessions).openGate(after.id, 'c', [])
  await node.settled()
  expect(numbersOf(after.socket)).toEqual([1, 2])
})

test('[PLACE2] what is held back goes on to where the gate was opened already', async () => {
  const { sessions, before, after } = await twoOfOne()
  for (const { id } of [before, after]) await stepsOf(sessions).hold(id, 'c', true, true)
  expect(await sessions.append(before.id, relayFor(1))).toBe('kept')
  await stepsOf(sessions).openGate(after.id, 'c', [])
  expect(await sessions.move('c', before.id, after.id, true)).toBe(true)
  expect(await sessions.append(after.id, relayFor(2))).toBe('sent')
  await node.settled()
  expect(numbersOf(after.socket)).toEqual([1, 2])
})

test('[REL2] what both keep until the accept is kept on', async () => {
  const { sessions, before, after } = await twoOfOne()
  await stepsOf(sessions).hold(before.id, 'c', true)
  expect(await sessions.keep(before.id, pushes.relay('c', 1))).toBe('kept')
  expect(await sessions.keep(after.id, pushes.relay('c', 2))).toBe('kept')
  expect(await sessions.move('c', before.id, after.id, true)).toBe(true)
  const kept = (await stepsOf(sessions).answer(after.id, 'c', true)) || []
  expect(kept.map(({ text }) => JSON.parse(text).data.n)).toEqual([1, 2])
})

test('[REL2] whoever was told of the end of a call keeps nothing more for it', async () => {
  const { id, socket } = await openReady(node.sessions)
  await node.sessions.append(id, pushes.ringing('c', 1, 1))
  expect(await node.sessions.keep(id, pushes.relay('c', 2))).toBe('kept')
  await node.sessions.append(id, pushes.final('c', 2, 3))
  expect(await node.sessions.keep(id, pushes.relay('c', 4))).toBe('closed')
  expect(numbersOf(socket)).toEqual([1, 3])
})

for (const hasSocket of [false, true]) {
  const when = hasSocket ? ', and whose socket goes after that' : ''
  test(`[PLACE2] told late, what was kept reaches nobody by way of a session that passed its place on${when}`, async () => {
    const { sessions, before, after } = await twoOfOne()
    const kept = [{ ...pushes.relay('c', 1), source: { sessionId: 'of-the-caller', n: 1 } }]
    const leave = () => sessions.detach(before.id, before.socket, false, 0)
    if (!hasSocket) await leave()
    await stepsOf(sessions).hold(before.id, 'c', true, true, 2)
    await stepsOf(sessions).openGate(before.id, 'c', kept)
    expect(await sessions.move('c', before.id, after.id, true, 4)).toBe(true)
    if (hasSocket) await leave()
    // Another node tells of the answer, and of the place, as it was and as it is.
    if (!(await stepsOf(sessions).hold(before.id, 'c', true, true, 2))) {
      await stepsOf(sessions).openDetached(before.identity, 0)
      expect(await stepsOf(sessions).hold(before.id, 'c', true, true, 2)).toBe(true)
    }
    await stepsOf(sessions).openGate(before.id, 'c', kept)
    expect(await sessions.move('c', before.id, after.id, true, 4)).toBe(true)
    await node.settled()
    expect(numbersOf(after.socket)).toEqual([1])
  })
}

const requestOf = (n: number) => ({ ...relayFor(n), source: { sessionId: 'of-the-peer', n } })

test('[EXT4] [ORD2] a request is taken once, and none that was refused after later ones, also by who takes the place', async () => {
  const { sessions, before, after } = await twoOfOne()
  await stepsOf(sessions).hold(before.id, 'c', true, true, 2)
  const results: string[] = []
  const send = async (to: string, ...ns: number[]) => {
    for (const n of ns) results.push(await sessions.append(to, requestOf(n)))
  }
  await send(before.id, 9)
  await stepsOf(sessions).openGate(before.id, 'c', [requestOf(2), requestOf(4)])
  await send(before.id, 7, 8, 7, 4, 2, 9)
  expect(results.splice(0)).toEqual(['kept', 'late', 'late', 'late', 'kept', 'kept', 'kept'])
  await sessions.prove(before.id, 3)
  // Somebody who knew sooner has sent to the next one.
  await stepsOf(sessions).hold(after.id, 'c', true, false, 3)
  await send(after.id, 12, 11)
  expect(await sessions.move('c', before.id, after.id, true, 3)).toBe(true)
  await send(after.id, 10, 12, 11, 9, 8, 4, 2, 3, 13, 13)
  expect(results.slice(0, 2)).toEqual(['sent', 'late'])
  expect(results.slice(2)).toEqual(['late', 'kept', 'late', 'kept', 'late', 'kept', 'kept', 'late', 'sent', 'kept'])
  await node.settled()
  expect(numbersOf(before.socket)).toEqual([2, 4, 9])
  expect(numbersOf(after.socket)).toEqual([12, 13])
})
