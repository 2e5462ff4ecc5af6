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

/** Takes what says up to which version a call was told. */
export async function evictTold({ url }: RedisServer, call: string): Promise<void> {
  const client = new Redis(url)
  const keys = await client.keys(`rw:t:${call}*`)
  if (keys.length > 0) await client.del(...keys)
  client.disconnect()
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

/** Whether relays to a session are held back now, for what has to be told before them [REL2]. */
export async function isHeldBack({ url }: RedisServer, sessionId: string): Promise<boolean> {
  const client = new Redis(url)
  const [key] = await client.keys(`rw:*:s:${sessionId}`)
  const fields = key === undefined ? {} : await client.hgetall(key)
  client.disconnect()
  return Object.entries(fields).some(([field, value]) => field.startsWith('G') && value === '1')
}
