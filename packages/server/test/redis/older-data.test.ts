import { afterEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { openReady, type Seen } from '../../src/ports/sessions.fixture.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { comeBack, numbersOf, pushes } from '../contracts/session-parts.ts'
import { holdUp, outcomeOf, useSessionNodes, writeRow } from './session-nodes.ts'

/** Before the nodes are closed: one that stands still could not be. */
let goOn = () => {}
afterEach(() => goOn())
const { nodes, server } = await useSessionNodes()

/** A server that is promoted keeps what it has, and gets a name of its own. */
async function promote(client: Redis): Promise<void> {
  await client.replicaof('127.0.0.1', 1)
  await client.replicaof('NO', 'ONE')
}

/** A session whose last owner stands still, in a Redis that only knows of an earlier owner, which is dead. */
async function ownedByLater() {
  const url = await server.database()
  const dead = new Set<string>()
  const start = () => nodes.start(url, (node) => dead.has(node))
  const [earlier, last, other] = [await start(), await start(), await start()]
  const client = new Redis(url)
  const ownerIn = async ({ id }: Seen) => String(await client.hget(rowKey(id), 'o'))
  let seen = await openReady(last.sessions)
  seen = (await comeBack(earlier.sessions, seen, 0)) as Seen
  dead.add(await ownerIn(seen))
  const row = { o: await ownerIn(seen), f: '1', k: '0' }
  seen = (await comeBack(last.sessions, seen, 0)) as Seen
  await last.settled()
  await earlier.close()
  await other.look()
  const owner = await ownerIn(seen)
  goOn = holdUp(last)
  await promote(client)
  await writeRow(client, seen.id, row)
  return { last, other, start, seen, owner, dead, client }
}

const end = pushes.final('c', 2, 1)

test('[RES4] [ORD3] a session is not taken from an owner of before while the last one may only stand still', async () => {
  const { last, other, seen, client } = await ownedByLater()
  expect(await outcomeOf(() => other.sessions.append(seen.id, end))).toBe('unavailable')
  expect(await client.hget(rowKey(seen.id), 'f')).toBe('1')
  goOn()
  await until('it is told', async () => (await outcomeOf(() => other.sessions.append(seen.id, end))) === 'sent')
  await last.settled()
  expect(numbersOf(seen.socket)).toEqual([1])
  expect(seen.socket.closes).toEqual([])
  client.disconnect()
}, 60_000)

test('[RES4] [RES2] once the last owner counts as dead it is taken, and that owner cannot write over what came since', async () => {
  const { last, other, seen, owner, dead, client } = await ownedByLater()
  await other.sessions.sweep(Date.now())
  dead.add(owner)
  await until('it is told', async () => (await outcomeOf(() => other.sessions.append(seen.id, end))) === 'kept', 20_000)
  goOn()
  await until('its client has to come back', () => seen.socket.closes.length > 0)
  await last.settled()
  expect(last.sessions.heldHere(seen.id)).toBeUndefined()
  expect(await client.hget(rowKey(seen.id), 'o')).not.toBe(owner)
  expect(other.sessions.knowsEnd(seen.id, 'c')).toBe(true)
  client.disconnect()
}, 60_000)

test('[RES4] [ORD3] a session that has to wait for its last owner keeps no other session of the person waiting', async () => {
  const { other, start, seen, client } = await ownedByLater()
  const third = await start()
  const { participant } = seen.identity
  const near = await openReady(third.sessions, { participant })
  expect(await third.sessions.append(near.id, pushes.ringing('c', 1, 1))).toBe('sent')
  const cancelled = pushes.final('c', 2, 2)
  expect(await outcomeOf(() => other.sessions.appendRung(participant, cancelled, []))).toBe('unavailable')
  await third.settled()
  expect(numbersOf(near.socket)).toEqual([1, 2])
  client.disconnect()
}, 60_000)
