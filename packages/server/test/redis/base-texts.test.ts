import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { createRedisSessions, type RedisSessions } from '../../src/adapters/redis/sessions.ts'
import { openReady, resumeWindowMs, somebody, windowMs } from '../contracts/session-parts.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

/** In a rolling upgrade a node of before hands over what it finds in Redis, as it is. */
let server: RedisServer
let client: Redis
let nodes: RedisSessions[] = []
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.url)
  nodes = ['one', 'two'].map((node) =>
    createRedisSessions({
      ...{ url: server.url, node, windowMs, resumeWindowMs },
      onLogLost() {},
      onError: (error) => console.error(error),
    }),
  )
  await Promise.all(nodes.map((node) => node.start()))
})
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.close()))
  client.disconnect()
  await server.stop()
})

/** What Redis has of a session's log, and what it says of it to the node of the socket. */
async function heardOf(id: string, say: () => Promise<unknown>): Promise<string> {
  const subscriber = client.duplicate()
  const messages: string[] = []
  try {
    const heard = Promise.withResolvers<void>()
    subscriber.on('message', (_, message: string) => {
      messages.push(message)
      heard.resolve()
    })
    await subscriber.subscribe('rw:n:one')
    await say()
    await heard.promise
  } finally {
    subscriber.disconnect()
  }
  const [key = ''] = (await client.keys(`*l:${id}`)) ?? []
  return JSON.stringify([messages, await client.xrange(key, '-', '+')])
}

for (const extended of [false, true]) {
  test(`[EXT5] the name of who answered is ${extended ? 'there for an extended caller' : 'nowhere in Redis for a base one'}`, async () => {
    const [one, two] = nodes as [RedisSessions, RedisSessions]
    const { id, socket } = await openReady(one.sessions, { participant: somebody(), extended })
    const name = 'Zoë "},"display_name":"x'
    const known = { call_uuid: 'c', status: 'accepted' }
    const text = JSON.stringify({ event: 'call.accepted', data: { ...known, display_name: name } })
    const found = await heardOf(id, async () => two.sessions.append(id, { kind: 'state', call: 'c', version: 2, text }))
    expect(found).toContain('call.accepted')
    expect(found.includes('Zoë')).toBe(extended)
    await one.settled()
    expect(socket.told.map(({ data }) => data)).toEqual([extended ? { ...known, display_name: name } : known] as never)
  })
}
