import { expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { createRedisSessions } from '../../src/adapters/redis/sessions.ts'
import { openReady, pushes, resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { startRedis } from '../support/redis.ts'

test('[EXT4] a relay is one write into the log and one into its session, also where requests before it were missed', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  const node = createRedisSessions({
    ...{ url: server.url, node: 'one', windowMs, resumeWindowMs },
    onLogLost() {},
    onError: (error) => console.error(error),
  })
  await node.start()
  try {
    const [caller, callee] = [await openReady(node.sessions), await openReady(node.sessions)]
    await node.sessions.hold(callee.id, 'call', true)
    const writesOf = async (...ns: number[]) => {
      await client.config('RESETSTAT')
      for (const n of ns) {
        const source = { sessionId: caller.id, n }
        expect(await node.sessions.append(callee.id, { ...pushes.relay('call', n), source })).toBe('sent')
      }
      const stats = await client.info('commandstats')
      const count = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
      return ['hset', 'hdel', 'xadd'].map(count)
    }
    // The first request of the caller was none of this call's: 1 stays a range that was not taken.
    expect(await writesOf(2, 3, 4)).toEqual([3, 0, 3])
    // It comes after all: then nothing is missed, and once it is said so.
    expect(await writesOf(1)).toEqual([1, 1, 1])
    expect(await writesOf(5, 6, 7)).toEqual([3, 0, 3])
    const [key = ''] = await client.keys(`*s:${callee.id}`)
    expect(await client.hmget(key, 'Ncall', 'Ucall', 'q')).toEqual([`${caller.id} 7`, null, '7'])
  } finally {
    await node.close()
    client.disconnect()
    await server.stop()
  }
})
