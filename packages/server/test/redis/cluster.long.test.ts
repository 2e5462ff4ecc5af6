import { afterAll, beforeAll, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { Redis } from 'ioredis'
import { openReady, somebody, stepsOf } from '../../src/ports/sessions.fixture.ts'
import {
  comeBack,
  numbersOf,
  pushes,
  relays,
  resumeWindowMs,
  type SessionsHarness,
  upTo,
  windowMs,
} from '../contracts/session-parts.ts'
import { registerSessionsContract } from '../contracts/sessions.ts'
import { registerEmptiedRules } from '../contracts/sessions-emptied.ts'
import { startCluster } from '../support/redis.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'

/** Three masters: a script that touched two slots would fail here. */
let cluster: Awaited<ReturnType<typeof startCluster>>
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

async function startNode(): Promise<RedisSessions> {
  const node: RedisSessions = createRedisSessions({
    url: cluster.url,
    node: crypto.randomUUID(),
    windowMs,
    resumeWindowMs,
    onError: (error) => console.error(error),
  })
  await node.start()
  return node
}

const openOnCluster = async (): Promise<SessionsHarness> => {
  const node = await startNode()
  const emptyStore = async () => {
    for (const { url } of cluster.servers) {
      const client = new Redis(url)
      await client.flushall()
      client.disconnect()
    }
    await node.look()
  }
  const { sessions } = node
  return { sessions, isShared: true, emptyStore, settled: () => node.settled(), close: () => node.close() }
}

registerSessionsContract('redis cluster', openOnCluster)
registerEmptiedRules('redis cluster', openOnCluster)

test('[RES1] sessions of many participants, on both of two nodes', async () => {
  const [one, two] = [await startNode(), await startNode()]
  try {
    for (let i = 0; i < 30; i++) {
      const participant = somebody()
      const here = await openReady(one.sessions, { participant })
      await stepsOf(two.sessions).hold(here.id, 'c', true)
      expect(await relays(two.sessions, here.id, 'c', upTo(5))).toEqual(upTo(5).map(() => 'sent' as const))
      expect(await two.sessions.append(here.id, pushes.state('c', 2, 6))).toBe('sent')
      await two.sessions.appendRung(participant, pushes.final('c', 3, 9), [])
      const arrived = async () => {
        await one.look()
        await one.settled()
      }
      await arrived()
      expect(numbersOf(here.socket)).toEqual(upTo(6))
      await one.sessions.detach(here.id, here.socket, false, 0)
      const older = await two.sessions.sinkToReplace(here.id, here.identity)
      await older?.retire()
      const back = await comeBack(two.sessions, here, 3)
      expect(back && numbersOf(back.socket)).toEqual([4, 5, 6])
    }
  } finally {
    await one.close()
    await two.close()
  }
})

test('[ORD3] one master that was emptied is written again at once, and what was lost there is not taken for gone', async () => {
  const [one, two] = [await startNode(), await startNode()]
  const clients = cluster.servers.map(({ url }) => new Redis(url))
  try {
    for (const client of clients) {
      const all = await Promise.all(upTo(12).map(() => openReady(one.sessions)))
      for (const { id } of all) await two.sessions.append(id, pushes.ringing('c', 1, 1))
      await client.flushall()
      await Promise.all(
        all.map(({ identity }) => two.sessions.appendRung(identity.participant, pushes.final('c', 2, 2), [])),
      )
      await one.settled()
      for (const { socket } of all) expect(numbersOf(socket)).toEqual([1, 2])
      // Nobody asks for anything.
      await client.flushall()
      await until(
        'its sessions are there again',
        async () => {
          const rows = await Promise.all(clients.map((each) => each.keys('rw:*:o:*')))
          return all.every(({ id }) => rows.flat().some((key) => key.endsWith(id)))
        },
        4_000,
      )
    }
  } finally {
    for (const client of clients) client.disconnect()
    await one.close()
    await two.close()
  }
}, 60_000)
