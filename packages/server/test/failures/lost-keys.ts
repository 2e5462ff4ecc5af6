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
  for (let tries = 0; tries < mostTries; tries++) {
    for (const { port } of servers) {
      const client = new Redis(port)
      try {
        await client.del(key)
        return
      } catch (error) {
        // It is another one's, or this one has yet to find that the others are there.
        if (!/^(MOVED|CLUSTERDOWN)/.test(String((error as Error).message))) throw error
      } finally {
        client.disconnect()
      }
    }
    await Bun.sleep(againMs)
  }
  throw new Error(`no master has the slot of ${key}`)
}

/** A master that begins again is left out by the others for some seconds. */
const mostTries = 50
const againMs = 200

/** How many keys a session has. */
export async function keysOf({ url }: RedisServer, sessionId: string): Promise<number> {
  const client = new Redis(url)
  const keys = await client.keys(`rw:*:*${sessionId}*`)
  client.disconnect()
  return keys.length
}
