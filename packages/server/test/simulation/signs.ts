import type { Ephemerals, Holding, Look } from '../../src/cluster/ephemerals.port.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import type { Random } from '../fuzz/random.ts'
import type { Host, Scheduler } from './scheduler.ts'
import type { Way } from './way.ts'

/** The signs that a store has, each of the connections that hold it. */
export class Holders {
  private readonly holders = new Map<string, Set<object>>()

  take(node: string, connection: object): void {
    this.holders.set(node, (this.holders.get(node) ?? new Set()).add(connection))
  }

  drop(node: string, connection: object): void {
    const holders = this.holders.get(node)
    holders?.delete(connection)
    if (holders?.size === 0) this.holders.delete(node)
  }

  /** The server ends, and all connections with it. */
  clear(): void {
    this.holders.clear()
  }

  of(nodes: readonly string[]): Set<string> {
    return new Set(nodes.filter((node) => this.holders.has(node)))
  }
}

/** So soon, and so late, a store notices that a connection has ended, in ms. */
const [soonestMs, latestMs] = [9, 120]
/** A connection that broke is made again after this, and after that where it cannot be, in ms. */
const [firstAgainMs, againMs] = [20, 500]

export interface EphemeralsOptions {
  readonly signs: Holders
  readonly origin: () => string
  readonly scheduler: Scheduler
  readonly host: Host
  readonly random: Random
  /** The connection that holds the sign. */
  readonly way: Way
  /** The one that looks. */
  readonly looking: Way
}

/** What one node has of the signs of a store. */
export function createEphemerals(options: EphemeralsOptions): Ephemerals {
  const { signs, origin, scheduler, host, random, way, looking } = options
  let connection: object | undefined
  let isClosed = false
  let release = () => {}

  async function keep(node: string, holding: Holding): Promise<void> {
    for (let pauseMs = firstAgainMs; !isClosed; pauseMs = Math.min(againMs, pauseMs * 2)) {
      const mine = {}
      const isOver = Promise.withResolvers<void>()
      const dropLater = () => {
        isOver.resolve()
        scheduler.after(soonestMs + random.int(latestMs - soonestMs), () => signs.drop(node, mine))
      }
      release = () => {
        isOver.resolve()
        signs.drop(node, mine)
      }
      way.onCut = dropLater
      host.onDeath(dropLater)
      try {
        await way.send(() => {
          if (way.onCut === dropLater && host.isAlive) signs.take(node, mine)
        })
        if (isClosed) return
        connection = mine
        holding.onHeld()
        pauseMs = firstAgainMs
        await isOver.promise
        connection = undefined
        // The process may stand still.
        await host.timers.sleep(0)
        if (!isClosed) holding.onLost()
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        // It is given up, whatever became of it.
        dropLater()
      }
      await host.timers.sleep(pauseMs)
    }
  }

  return {
    hold: (node, holding) => void keep(node, holding),
    async look(nodes): Promise<Look> {
      // On one connection, who looks has its own sign.
      if (looking === way && connection === undefined) throw new StoreError('unavailable', 'the store is not connected')
      return looking.send(() => ({ origin: origin(), held: signs.of(nodes) }))
    },
    async close() {
      isClosed = true
      release()
    },
  }
}
