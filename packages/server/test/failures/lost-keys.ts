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

/** Takes one key, whatever it is. */
export async function evictKey({ url }: RedisServer, key: string): Promise<void> {
  const client = new Redis(url)
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
