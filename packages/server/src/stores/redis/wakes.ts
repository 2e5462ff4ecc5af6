import { createHash } from 'node:crypto'
import { StoreError } from '../../ports/store-error.ts'
import { type OwnWakes, type Wakes, wakesKeptMs } from '../../push/wakes.port.ts'
import type { Store } from './connection.ts'

export interface RedisWakesOptions {
  readonly store: Pick<Store, 'run'>
  /** This run of this node. */
  readonly node: string
  /** Whether a node is known for sure not to serve any more. */
  readonly isDead: (node: string) => boolean
  /** The pushes of this node. Only they count while Redis is away, and they still count after Redis was emptied. */
  readonly own: OwnWakes
  readonly now: () => number
}

/** The script's answer for a device that no node has to wake any more. */
const settled = '+'

/** Of all nodes. */
export function createRedisWakes({ store, node, isDead, own, now }: RedisWakesOptions): Wakes {
  async function run(what: string, call: string, keptMs: number, args: readonly string[]): Promise<readonly string[]> {
    return (await store.run('wakes', [keyOf(call)], [what, node, keptMs, ...args])) as string[]
  }

  /** Answers the devices that this node has got: nobody had them, or a node that is dead. */
  async function take(call: string, deviceIds: readonly string[], keptMs: number): Promise<readonly string[]> {
    const holders = await run(
      'add',
      call,
      keptMs,
      deviceIds.flatMap((deviceId) => [deviceId, '']),
    )
    const isLeft = (holder: string) => holder !== '' && holder !== settled && isDead(holder)
    const left = deviceIds.flatMap((deviceId, i) => (isLeft(holders[i] ?? '') ? [[deviceId, holders[i] ?? '']] : []))
    const later = left.length === 0 ? [] : await run('add', call, keptMs, left.flat())
    const taken = left.flatMap(([deviceId = ''], i) => (later[i] === '' ? [deviceId] : []))
    return [...deviceIds.filter((_, i) => holders[i] === ''), ...taken]
  }

  return {
    async add(call, deviceIds, ringEnd) {
      const known = own.of(call)
      const others = deviceIds.filter((deviceId) => !known?.includes(deviceId))
      if (known !== undefined && others.length === 0) return []
      const keptMs = Math.max(1, Math.ceil(ringEnd + wakesKeptMs - now()))
      return own.add(call, (await ifThere(take(call, others, keptMs))) ?? others, ringEnd)
    },
    async settle(call, deviceIds) {
      if (deviceIds.length > 0) await ifThere(run('settle', call, 0, deviceIds))
    },
    async remove(call, deviceId) {
      own.remove(call, deviceId)
      await ifThere(run('remove', call, 0, [deviceId]))
    },
    async of(call) {
      const known = own.of(call)
      const fields = (await ifThere(run('all', call, 0, []))) ?? []
      if (known === undefined && fields.length === 0) return undefined
      return [...new Set([...(known ?? []), ...fields])].filter((deviceId) => deviceId !== '')
    },
  }
}

/** Undefined while Redis is away. */
async function ifThere<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}

/** Neither calls nor products show in Redis. */
function keyOf(call: string): string {
  return `rw:wake:${createHash('sha256').update(call).digest('base64url').slice(0, 22)}`
}
