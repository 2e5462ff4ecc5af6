import { afterEach, beforeEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { openReady, type Seen } from '../../src/ports/sessions.fixture.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { comeBack, numbersOf, pushes } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, holdUp, outcomeOf, type SessionNode } from './session-nodes.ts'

/** A store that is emptied while one of the owners cannot write: what nobody finds there is not gone. */
const nodes = createSessionNodes()
let server: RedisServer
let admin: Redis
beforeEach(async () => {
  server = await startRedis()
  admin = new Redis(server.url)
})
afterEach(async () => {
  await nodes.closeAll()
  admin.disconnect()
  await server.stop()
})

async function startTwo(): Promise<[SessionNode, SessionNode, Seen]> {
  const [silent, other] = [await nodes.start(server.url), await nodes.start(server.url)]
  const seen = await openReady(silent.sessions)
  expect(await other.sessions.append(seen.id, pushes.ringing('c', 1, 1))).toBe('sent')
  return [silent, other, seen]
}

const end = pushes.final('c', 2, 2)

test('[ORD3] what an owner has yet to write again is waited for, and hears what is told', async () => {
  const [silent, other, seen] = await startTwo()
  const goOn = holdUp(silent)
  await admin.flushall()
  const { participant } = seen.identity
  expect(await outcomeOf(() => other.sessions.appendRung(participant, end, []))).toBe('unavailable')
  goOn()
  await until(
    'it is told',
    async () => (await outcomeOf(() => other.sessions.appendRung(participant, end, []))) === undefined,
  )
  await silent.settled()
  expect(numbersOf(seen.socket)).toEqual([1, 2])
  expect(seen.socket.closes).toEqual([])
}, 60_000)

test('[ORD3] what was read before an owner wrote again is read again, though all have written since', async () => {
  const [silent, other, seen] = await startTwo()
  const goOn = holdUp(silent)
  await admin.flushall()
  let reads = 0
  other.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name !== 'rows') return reply
    reads++
    // The first list is known to be incomplete. Of the second one the reply is late, and Redis is complete before it comes.
    if (reads === 2) {
      goOn()
      await silent.settled()
      await silent.look()
      await other.look()
      await other.look()
    }
    return reply
  }
  expect(await outcomeOf(() => other.sessions.appendRung(seen.identity.participant, end, []))).toBeUndefined()
  expect(reads).toBeGreaterThan(2)
  await silent.settled()
  expect(numbersOf(seen.socket)).toEqual([1, 2])
}, 60_000)

test('[EXT3] a list of nodes that was emptied is no silence: whoever was asked is waited for', async () => {
  const [asked, other, seen] = await startTwo()
  const goOn = holdUp(asked)
  const answer = other.sessions.append(seen.id, pushes.ringing('d', 1, 2))
  await admin.del('rw:alive')
  await other.look()
  // Longer than it takes to see who is silent.
  await Promise.race([answer, Bun.sleep(300)])
  goOn()
  expect(await answer).toBe('sent')
}, 60_000)

test('[RING1] who is found hears at once that a call rings, and the others when their owner has written again', async () => {
  const [silent, other, seen] = await startTwo()
  const { participant } = seen.identity
  const near = await openReady(other.sessions, { participant })
  const goOn = holdUp(silent)
  await admin.flushall()
  const ringing = pushes.ringing('d', 1, 3)
  expect(await outcomeOf(() => other.sessions.appendLive(participant, ringing))).toBe('unavailable')
  expect(numbersOf(near.socket)).toEqual([3])
  goOn()
  await until('it rings', async () => (await outcomeOf(() => other.sessions.appendLive(participant, ringing))) === 2)
  await silent.settled()
  expect(numbersOf(seen.socket)).toEqual([1, 3])
  expect(numbersOf(near.socket)).toEqual([3])
}, 60_000)

test('[RES2] [CLOSE] who was dead for the others by then is told that its sessions are over', async () => {
  const [silent, other, seen] = await startTwo()
  const goOn = holdUp(silent)
  await admin.flushall()
  const { participant } = seen.identity
  await until(
    'it is given up',
    async () => (await outcomeOf(() => other.sessions.appendRung(participant, end, []))) === undefined,
    20_000,
  )
  goOn()
  await until('its socket is closed', () => seen.socket.closes.length > 0)
  expect(seen.socket.closes).toEqual([1013])
  expect(silent.sessions.heldHere(seen.id)).toBeUndefined()
  await silent.settled()
  expect(await comeBack(other.sessions, seen, 1)).toBeUndefined()
  expect(await comeBack(silent.sessions, seen, 1)).toBeUndefined()
}, 60_000)

test('[ORD3] where all have written again what they own, nothing is waited for', async () => {
  const [one, other, seen] = await startTwo()
  await admin.flushall()
  await other.sessions.appendRung(seen.identity.participant, end, [])
  await one.settled()
  expect(numbersOf(seen.socket)).toEqual([1, 2])
}, 60_000)

test('[ORD3] a session of which there is no record is found where its call has it, and from then on', async () => {
  const [one, other] = await startTwo()
  const seen = await openReady(one.sessions)
  await one.settled()
  const at = String(await admin.hget(rowKey(seen.id), 'o'))
  await admin.del(rowKey(seen.id))
  expect(await other.sessions.append(seen.id, pushes.relay('c', 1))).toBe('gone')
  expect(await other.sessions.findAt(crypto.randomUUID(), at)).toBe(false)
  expect(await other.sessions.findAt(seen.id, at)).toBe(true)
  expect(await other.sessions.append(seen.id, pushes.relay('c', 2))).toBe('sent')
  expect(numbersOf(seen.socket)).toEqual([2])
})
