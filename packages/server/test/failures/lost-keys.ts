import { Redis } from 'ioredis'
import type { RedisServer } from '../support/redis.ts'

/** Takes all keys of a session, as an eviction does one by one; answers how many there were. */
export async function evict({ url }: RedisServer, sessionId: string): Promise<number> {
  const client = new Redis(url)
  const keys = await client.keys(`rw:*:*${sessionId}*`)
  const deleted = keys.length === 0 ? 0 : await client.del(...keys)
  client.disconnect()
  return deleted
}

export async function flush({ url }: RedisServer): Promise<void> {
  const client = new Redis(url)
  await client.flushall()
  client.disconnect()
}

/** Takes one key, whatever it is, from whichever master of a cluster has it. */
export async function evictKey(servers: readonly RedisServer[], key: string): Promise<void> {
  const [{ port } = { port: 0 }] = servers
  const client = servers.length === 1 ? new Redis(port) : new Redis.Cluster(servers.map(({ port }) => ({ port })))
  await client.del(key)
  client.disconnect()
}

/** How many keys there are of a session. */
export async function keysOf({ url }: RedisServer, sessionId: string): Promise<number> {
  const client = new Redis(url)
  const keys = await client.keys(`rw:*:*${sessionId}*`)
  client.disconnect()
  return keys.length
}
