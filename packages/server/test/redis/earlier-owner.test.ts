import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Redis } from 'ioredis'
import { openReady, type Seen, stepsOf } from '../../src/ports/sessions.fixture.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import { comeBack, numbersOf, pushes, relays } from '../contracts/session-parts.ts'
import {
  holdUp,
  type OnScript,
  outcomeOf,
  type SessionNode,
  sendAll,
  startNodes,
  useSessionNodes,
  writeRow,
} from './session-nodes.ts'

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

/** A node with a session in a call, and another one that takes every other node for dead. */
async function startBoth() {
  const url = await server.database()
  const { started, client } = await startNodes(nodes, url, 1)
  const [one] = started as [SessionNode]
  const two = await nodes.start(url, () => true)
  const first = await openReady(one.sessions)
  await stepsOf(one.sessions).hold(first.id, 'c', true)
  return { one, two, first, client }
}

/** A node, and a later owner of its session, to whose log something else came under the same number. */
async function twoLogs() {
  const { one, two, first, client } = await startBoth()
  await one.settled()
  await writeRow(client, first.id, { o: 'dead' })
  const goOn = holdUp(one)
  await relays(one.sessions, first.id, 'c', [1])
  const later = (await comeBack(two.sessions, first, 0)) as Seen
  expect(await two.sessions.append(later.id, pushes.final('c', 3, 2))).toBe('sent')
  await two.settled()
  expect(numbersOf(later.socket)).toEqual([2])
  await two.close()
  await client.flushdb()
  goOn()
  await one.settled()
  client.disconnect()
  return { one, first, later }
}

/**
 * A session with the socket of its later owner, in a Redis that forgot that. Its earlier owner goes on with it meanwhile, and
 * does what `goesOn` says. Then the later owner finds what that one wrote.
 */
async function overtaken(goesOn: (one: SessionNode, id: string) => unknown, onFound: OnScript = sendAll) {
  const { one, two, first, client } = await startBoth()
  await relays(one.sessions, first.id, 'c', [1])
  await one.settled()
  await writeRow(client, first.id, { o: 'dead' })
  const later = (await comeBack(two.sessions, first, 1)) as Seen
  await two.settled()
  const goOn = holdUp(two)
  await client.flushdb()
  one.doubt(true)
  await until('the earlier owner has written it again', async () => (await ownerIn(client, first)) !== null)
  await goesOn(one, first.id)
  await one.settled()
  goOn()
  two.onScript = onFound
  two.doubt(true)
  await until('the later owner has it', async () => (await client.hget(rowKey(first.id), 'f')) === '2')
  // It waits for a store that is away where the reply was lost.
  await outcomeOf(() => two.settled())
  client.disconnect()
  return { one, two, later }
}

const acknowledged: Record<string, (one: SessionNode, id: string) => Promise<unknown>> = {
  'a relay': (one, id) => relays(one.sessions, id, 'c', [2]),
  'the end of a call': async (one, id) => one.sessions.append(id, pushes.final('c', 3, 2)),
  'a relay that waits for the accept': async (one, id) => one.sessions.keep(id, pushes.relay('d', 2)),
}
for (const [what, goesOn] of Object.entries(acknowledged)) {
  test(`[RES2] an earlier owner acknowledged ${what}, and the later one does not have it: its client begins again`, async () => {
    const { two, later } = await overtaken(goesOn)
    expect(later.socket.closes).toEqual([1013])
    expect(await comeBack(two.sessions, later, 1)).toBeUndefined()
  })
}

test('[RES2] so it is where the later owner loses the reply that shows it', async () => {
  let isLost = false
  const { two, later } = await overtaken(
    (one, id) => relays(one.sessions, id, 'c', [2]),
    async (name, _args, send) => {
      const reply = await send()
      if (name !== 'save' || isLost) return reply
      isLost = true
      throw new StoreError('unknown', 'the reply is lost')
    },
  )
  await until('it was shown again', () => later.socket.closes.length > 0)
  expect(await comeBack(two.sessions, later, 1)).toBeUndefined()
})

test('[RES4] an earlier owner wrote only what the later one has: its client notices nothing', async () => {
  const { two, later } = await overtaken(() => {})
  await relays(two.sessions, later.id, 'c', [2])
  await two.settled()
  expect(later.socket.closes).toEqual([])
  expect(numbersOf(later.socket)).toEqual([2])
  expect(await comeBack(two.sessions, later, 1)).toBeDefined()
})

test('[RES2] a client does not resume the log of an earlier owner, which has something else under the same number', async () => {
  const { one, later } = await twoLogs()
  expect(await comeBack(one.sessions, later, 1)).toBeUndefined()
})

// The later owner is dead, and with it goes what it took: see "Not mended" in docs/reliability.md.
test('[RES2] a client that never heard of the later owner goes on with the log of the earlier one', async () => {
  const { one, first } = await twoLogs()
  const back = await comeBack(one.sessions, first, 0)
  expect(back && numbersOf(back.socket)).toEqual([1])
})
