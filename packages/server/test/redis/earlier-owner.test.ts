import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Redis } from 'ioredis'
import { openReady, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { comeBack, numbersOf, pushes, relays } from '../contracts/session-parts.ts'
import { type SessionNode, sendAll, startNodes, useSessionNodes, writeRow } from './session-nodes.ts'

/** Redis was emptied, fences included, and an earlier owner of a session was the first to write it again. */
const { nodes, server, start } = await useSessionNodes()

/** A session with the socket of its second owner, in a Redis that only has what its first owner wrote. */
async function writtenByEarlier() {
  const { started, client } = await start(2)
  const [one, two] = started as [SessionNode, SessionNode]
  const seen = (await comeBack(two.sessions, await openReady(one.sessions), 0)) as Seen
  await two.settled()
  const owner = String(await client.hget(rowKey(seen.id), 'o'))
  await writeRow(client, seen.id, { o: 'earlier', f: '1', k: '0' })
  return { two, seen, owner, client }
}

const ownerIn = (client: Redis, { id }: Seen) => client.hget(rowKey(id), 'o')

test('[RES4] who finds what an earlier owner wrote writes its own again, and its client hears nothing of it', async () => {
  const { two, seen, owner, client } = await writtenByEarlier()
  two.doubt(true)
  await until('it is written again', async () => (await ownerIn(client, seen)) === owner)
  expect(await client.hget(rowKey(seen.id), 'f')).toBe('2')
  expect(seen.socket.closes).toEqual([])
  expect(two.sessions.heldHere(seen.id)).toBeDefined()
  client.disconnect()
})

test('[RES4] [ORD1] a session is not lost to a node that owned it earlier', async () => {
  const { two, seen, client } = await writtenByEarlier()
  expect(await two.sessions.hasMoved(seen.id, seen.socket)).toBe(false)
  expect(seen.socket.closes).toEqual([])
  client.disconnect()
})

/** A node, and a later owner of its session, to whose log something else came under the same number. */
async function twoLogs() {
  const url = await server.database()
  const { started, client } = await startNodes(nodes, url, 1)
  const [one] = started as [SessionNode]
  const two = await nodes.start(url, () => true)
  const first = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(first.id, 'c', true)
  await one.settled()
  await writeRow(client, first.id, { o: 'dead' })
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>()
  one.onScript = (_name, _args, send) => goesOn.then(send)
  await relays(one.sessions, first.id, 'c', [1])
  const later = (await comeBack(two.sessions, first, 0)) as Seen
  expect(await two.sessions.append(later.id, pushes.final('c', 3, 2))).toBe('sent')
  await two.settled()
  expect(numbersOf(later.socket)).toEqual([2])
  await two.close()
  await client.flushdb()
  one.onScript = sendAll
  goOn()
  await one.settled()
  client.disconnect()
  return { one, first, later }
}

test('[RES2] a client does not resume the log of an earlier owner, which has something else under the same number', async () => {
  const { one, later } = await twoLogs()
  expect(await comeBack(one.sessions, later, 1)).toBeUndefined()
})

test('[RES2] a client that never heard of the later owner goes on with the log of the earlier one', async () => {
  const { one, first } = await twoLogs()
  const back = await comeBack(one.sessions, first, 0)
  expect(back && numbersOf(back.socket)).toEqual([1])
})
