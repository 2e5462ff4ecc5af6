import { createHash } from 'node:crypto'
import { StoreError } from '../../ports/store-error.ts'
import { type OwnWakes, type Wakes, wakesKeptMs } from '../../ports/wakes.ts'
import type { Store } from './connection.ts'

export interface RedisWakesOptions {
  readonly store: Pick<Store, 'run'>
  /** What this node did itself: it counts alone while Redis is away, and still where Redis was emptied. */
  readonly own: OwnWakes
  readonly now: () => number
}

/** Of all nodes. */
export function createRedisWakes({ store, own, now }: RedisWakesOptions): Wakes {
  async function whereThere(call: string, args: readonly (string | number)[]): Promise<readonly string[] | undefined> {
    try {
      return (await store.run('wakes', [keyOf(call)], args)) as string[]
    } catch (error) {
      if (error instanceof StoreError) return undefined
      throw error
    }
  }

  return {
    async add(call, deviceIds, ringEnd) {
      const fresh = own.add(call, deviceIds, ringEnd)
      if (fresh.length === 0) return fresh
      const keptMs = Math.max(1, Math.ceil(ringEnd + wakesKeptMs - now()))
      return (await whereThere(call, ['add', keptMs, ...fresh])) ?? fresh
    },
    async remove(call, deviceId) {
      own.remove(call, deviceId)
      await whereThere(call, ['remove', 0, deviceId])
    },
    async of(call) {
      const all = (await whereThere(call, ['all', 0])) ?? []
      return [...new Set([...(own.of(call) ?? []), ...all])]
    },
  }
}

/** Neither calls nor products show in Redis. */
function keyOf(call: string): string {
  return `rw:wake:${createHash('sha256').update(call).digest('base64url').slice(0, 22)}`
}
