import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { newSessionId } from '../../src/ports/session-id.ts'
import { stepsOf } from '../../src/ports/sessions.fixture.ts'
import { pushes } from '../contracts/session-parts.ts'
import { dumpRedis } from '../fixtures/dump.ts'
import { loadRedis, readFixture, recordings } from '../fixtures/load.ts'
import { createRecorder, type RecordedRedis, type RecordedSession, recordRedis } from '../fixtures/record-redis.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'

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

    test('[RES2] a session of that version is not resumed, and its client goes on as a new one', async () => {
      await loadRedis(client, recorded.keys)
      for (const session of [callee, caller]) {
        expect((await resume(session, session.told.length)).open).toBeUndefined()
        const sessionId = newSessionId(session.identity.participant)
        const socket = createRecorder()
        await redis.sessions.open({ ...session.identity, sessionId }, socket, at)
        await redis.sessions.ready(sessionId)
        expect(await redis.sessions.liveOf(session.identity.participant)).toEqual([sessionId])
        expect(await redis.sessions.append(sessionId, pushes.relay(calls.talking, 9))).toBe('sent')
      }
    })

    test('nothing of it is known, nor in the way of who comes back to its calls', async () => {
      await loadRedis(client, recorded.keys)
      const { sessionId } = base.identity
      expect(await redis.sessions.append(sessionId, pushes.final(calls.over, 3, 3))).toBe('gone')
      await stepsOf(redis.sessions).openDetached(callee.identity, at)
      expect(await stepsOf(redis.sessions).hold(callee.identity.sessionId, calls.talking, true)).toBe(true)
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
