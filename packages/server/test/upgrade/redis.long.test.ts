import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { createRedisSessions, type RedisSessions } from '../../src/adapters/redis/sessions.ts'
import { newSessionId } from '../../src/session/session-id.ts'
import { pushes } from '../contracts/session-parts.ts'
import { dumpRedis } from '../fixtures/dump.ts'
import { loadRedis, readFixture, recordings } from '../fixtures/load.ts'
import { createRecorder, type RecordedRedis, type RecordedSession, recordRedis } from '../fixtures/record-redis.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

/** Sessions that nodes of earlier versions left in Redis, as they were recorded then, byte by byte. */
let server: RedisServer
let client: Redis
let redis: RedisSessions
let errors: unknown[]
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.url)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

for (const version of recordings.redis) {
  describe(`redis of ${version}`, () => {
    const recorded = JSON.parse(readFixture(version, 'redis.json')) as RecordedRedis
    const { callee, caller, base, calls, recordedAt, windowMs, resumeWindowMs } = recorded
    const at = recordedAt + 1000

    beforeEach(async () => {
      await client.flushall()
      errors = []
      redis = createRedisSessions({
        url: server.url,
        node: crypto.randomUUID(),
        windowMs,
        resumeWindowMs,
        onLogLost: () => {},
        onError: (error) => void errors.push(error),
      })
      await redis.start()
      await redis.sessions.sweep(at)
    })
    afterEach(async () => {
      await redis.close()
      expect(errors).toEqual([])
    })

    async function resume({ identity, epoch, upstream }: RecordedSession, seq: number) {
      const socket = createRecorder()
      const request = { sessionId: identity.sessionId, epoch, seq, replied: upstream.handled }
      const open = await redis.sessions.resume(request, identity, socket, at)
      if (open !== undefined) await redis.sessions.ready(identity.sessionId)
      return { socket, open }
    }

    test('a session is resumed: what its client has not seen is delivered as it was written then', async () => {
      await loadRedis(client, recorded.keys)
      expect(callee.told.length).toBeGreaterThan(4)
      const { socket, open } = await resume(callee, 2)
      expect(open).toEqual({ epoch: callee.epoch, upstream: callee.upstream, rings: [] })
      expect(socket.texts).toEqual([...callee.told.slice(2)])
    })

    test('its places and rings are known, and its log goes on where it was', async () => {
      await loadRedis(client, recorded.keys)
      const { sessions } = redis
      const { sessionId } = callee.identity
      const { socket } = await resume(callee, callee.told.length)
      expect(socket.texts).toEqual([])
      expect(await sessions.holdsAny(sessionId)).toBe(true)
      expect(await sessions.inCall(sessionId)).toBe(true)
      expect(await sessions.toldOf(calls.talking, 99)).toBe(3)
      // A version that it has, and a request that was taken, are no news.
      expect(await sessions.append(sessionId, pushes.state(calls.talking, 3, 10))).toBe('dropped')
      const source = { sessionId: caller.identity.sessionId, n: 3 }
      await sessions.append(sessionId, { ...pushes.relay(calls.talking, 11), source })
      await sessions.append(sessionId, { ...pushes.relay(calls.talking, 12), source: { ...source, n: 4 } })
      await sessions.append(sessionId, pushes.final(calls.rings, 2, 13))
      await sessions.append(sessionId, pushes.final(calls.talking, 4, 14))
      await redis.settled()
      const news = socket.texts.map((text) => JSON.parse(text))
      expect(news.map(({ seq, data }) => [seq, data.n])).toEqual(
        [12, 13, 14].map((n, i) => [callee.told.length + 1 + i, n]),
      )
      await sessions.release(sessionId, calls.talking)
      expect(await sessions.inCall(sessionId)).toBe(false)
    })

    test('relays that wait for the accept are all there, and those behind a gate come after them', async () => {
      await loadRedis(client, recorded.keys)
      const { sessionId } = caller.identity
      const { socket } = await resume(caller, 0)
      const kept = await redis.sessions.takeKept(sessionId, calls.outgoing)
      expect(kept.map(({ text }) => text)).toEqual([...recorded.kept])
      await redis.sessions.openGate(sessionId, calls.gated, [pushes.relay(calls.gated, 77)])
      await redis.settled()
      expect(socket.texts.map((text) => JSON.parse(text).data.n)).toEqual([77, 1])
    })

    test('a final notice that a dead socket had not proven goes to the next one of its device', async () => {
      await loadRedis(client, recorded.keys)
      const identity = { ...base.identity, sessionId: newSessionId(base.identity.participant) }
      const socket = createRecorder()
      await redis.sessions.open(identity, socket, 0)
      await redis.sessions.collectFinals(identity)
      await redis.sessions.ready(identity.sessionId)
      await redis.settled()
      expect(socket.texts).toEqual([base.told.at(-1) as string])
    })

    test('[RES2] under another history of writes the log counts as lost: nothing is resumed', async () => {
      await loadRedis(client, recorded.keys, 'f'.repeat(40))
      expect((await resume(callee, 2)).open).toBeUndefined()
    })
  })
}

test('the recording of this build can be loaded: the same keys are there again', async () => {
  await client.flushall()
  const { keys } = await recordRedis()
  const run = keys.flatMap((key) => (key.type === 'hash' ? (key.fields.run ?? []) : []))[0]
  await loadRedis(client, keys, run)
  expect(await dumpRedis(client)).toEqual([...keys])
})
