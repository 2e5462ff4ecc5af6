import { forgetOldest } from '../../oldest.ts'
import type { Store } from './connection.ts'
import { nameOf } from './held.ts'

/** How long it is known up to which version a call was told, in ms: longer than a call lasts, and after its end. */
const liveMs = 86_400_000
const overMs = 600_000
/** Calls of which that is known without asking. */
const mostTold = 20_000
/** What was committed so long before the store was emptied was told, by its node or by another one for a dead one. In ms. */
const handedOnMs = 15_000

export interface ToldOptions {
  readonly now: () => number
  /** For how long the store may have been away, in ms. */
  readonly awayMs: () => number
}

/** Up to which version each call was told, by any node: see `toldOf` and `setTold` of `Sessions`. */
export function createTold(store: Store, { now, awayMs }: ToldOptions) {
  /** Up to which version this node told of each call, or read that another did. */
  const told = new Map<string, number>()

  function note(call: string, version: number): void {
    told.delete(call)
    told.set(call, version)
    forgetOldest(told, mostTold)
  }

  async function since(otherwise: number): Promise<number> {
    const [at = 0] = await store.run('since', ['rw:since'], [Math.max(0, otherwise)])
    return Number(at)
  }

  return {
    /** From now on the store is asked again. */
    forget: () => told.clear(),
    async toldOf(call: string, enough: number): Promise<number> {
      const known = told.get(call) ?? 0
      if (known >= enough) return known
      const [version = 0] = await store.run('told', [keyOf(call)], ['', 0])
      return Number(version)
    },
    /** See `toldBefore` of `Sessions`: it is the first who misses something that says when that was. */
    async toldBefore(): Promise<number> {
      return since(Math.floor(now() - awayMs() - handedOnMs))
    },
    /** No node has served: nothing is known, and nothing was lost. */
    async begin(): Promise<void> {
      await since(0)
    },
    async setTold(call: string, version: number, isOver: boolean): Promise<void> {
      await store.run('told', [keyOf(call)], [version, isOver ? overMs : liveMs])
      if (isOver) told.delete(call)
      else note(call, version)
    },
  }
}

const keyOf = (call: string) => `rw:t:${nameOf({ call })}`
