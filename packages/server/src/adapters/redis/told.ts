import { StoreError } from '../../ports/store-error.ts'
import { forgetOldest } from '../oldest.ts'
import type { Store } from './connection.ts'

/** How long it is known up to which version a call was told, in ms: longer than a call lasts, and after its end. */
const liveMs = 86_400_000
const overMs = 600_000
/** Calls of which that is known without asking, or doubtful. */
const mostTold = 20_000
/** What was committed so long before the store was emptied was told, by its node or by another one for a dead one. In ms. */
const handedOnMs = 15_000

/** What this node told of a call. */
interface Telling {
  readonly version: number
  readonly isOver: boolean
  readonly at: number
}

export interface ToldOptions {
  readonly now: () => number
  /** For how long the store may have been away, in ms. */
  readonly awayMs: () => number
}

/** Up to which version each call was told, by any node: see `toldOf` and `setTold` of `Sessions`. */
export function createTold(store: Store, { now, awayMs }: ToldOptions) {
  const told = new Map<string, Telling>()
  /** Calls of which something was told to a session that another node had by then. */
  const doubted = new Map<string, true>()

  function note(call: string, version: number, isOver: boolean): void {
    told.delete(call)
    told.set(call, { version, isOver, at: now() })
    forgetOldest(told, mostTold)
  }

  async function since(otherwise: number): Promise<number> {
    const [at = 0] = await store.run('since', ['rw:since'], [Math.max(0, otherwise)])
    return Number(at)
  }

  return {
    /** Whoever is just telling of these calls tells once more: a session has another owner by now. */
    doubt(calls: Iterable<string>): void {
      for (const call of calls) doubted.set(call, true)
      forgetOldest(doubted, mostTold)
    },
    /** The store was emptied, perhaps: it is told again what it does not know, of what may still be asked for. */
    async restore(): Promise<void> {
      const from = now() - awayMs() - 2 * handedOnMs
      const recent = [...told].filter(([, { at }]) => at >= from)
      await Promise.all(
        recent.map(([call, { version, isOver }]) =>
          store.run('told', [keyOf(call)], [version, isOver ? overMs : liveMs, '1']),
        ),
      )
    },
    async toldOf(call: string, enough: number): Promise<number> {
      const known = told.get(call)
      if (known !== undefined && known.version >= enough) return known.version
      const [version = 0] = await store.run('told', [keyOf(call)], ['', 0, '0'])
      return Number(version)
    },
    /** See `toldExactly` of `Sessions`: it is the first who misses something that says since when the store knows less. */
    async toldExactly(call: string): Promise<{ version: number; before: number }> {
      const [version = 0, isSure] = await store.run('told', [keyOf(call)], ['', 0, '0'])
      const before = isSure === 1 ? 0 : await since(Math.floor(now() - awayMs() - handedOnMs))
      return { version: Number(version), before }
    },
    async tellAll(): Promise<void> {
      await since(0)
    },
    /** Throws where that is so, once. */
    confirm(call: string): void {
      if (doubted.delete(call)) throw new StoreError('unknown', 'a session of the call has another owner by now')
    },
    async setTold(call: string, version: number, isOver: boolean): Promise<void> {
      await store.run('told', [keyOf(call)], [version, isOver ? overMs : liveMs, '0'])
      note(call, version, isOver)
    },
  }
}

const keyOf = (call: string) => `rw:t:${encodeURIComponent(call)}`
