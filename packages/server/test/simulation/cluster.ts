import { beginAfter, newNodeName, runsOf } from '../../src/ports/node-name.ts'
import type { Random } from '../fuzz/random.ts'
import { Database } from './database.ts'
import type { DecidingBackend } from './deciding-backend.ts'
import { SimulatedNode } from './node.ts'
import { RedisWorld } from './redis.ts'
import type { Scheduler } from './scheduler.ts'

/** When a world begins, in ms since the epoch. */
export const startedAt = Date.UTC(2026, 0, 1)

/** In ms since the world began. */
export interface Span {
  readonly from: number
  readonly until: number
}

/** The nodes of a world, each with the run of it that lives now. */
export class Cluster {
  readonly runs: SimulatedNode[] = []
  readonly redis: RedisWorld
  readonly database: Database
  readonly bugs: { node: number; at: number; line: string }[] = []
  /** When each node began to start, and when it served. */
  readonly starts: Span[] = []
  private readonly scheduler: Scheduler
  private readonly random: Random
  private readonly hook: DecidingBackend | undefined
  private count = 0

  /** `hook`: of the backend that decides on invites. */
  constructor(scheduler: Scheduler, random: Random, users: readonly string[] = [], hook?: DecidingBackend) {
    this.hook = hook
    this.scheduler = scheduler
    this.random = random
    this.redis = new RedisWorld(scheduler)
    this.database = new Database(scheduler, startedAt, users)
  }

  /** Starts a node, or starts it again: it tries until its stores are there. */
  async start(index: number): Promise<void> {
    for (;;) {
      const id = `node-${index}`
      const at = beginAfter(this.database.lastRun(runsOf(id)), this.database.now)
      const node = new SimulatedNode({
        name: newNodeName(id, at, String(this.count++).padStart(8, '0')),
        scheduler: this.scheduler,
        random: this.random.fork(),
        redis: this.redis,
        database: this.database,
        hook: this.hook,
        onError: (error) => this.onError(index, error),
      })
      this.runs[index] = node
      const from = this.scheduler.now
      try {
        await node.start()
        this.starts.push({ from, until: this.scheduler.now })
        return
      } catch {
        node.host.kill()
        await new Promise<void>((resolve) => void this.scheduler.after(500, resolve))
      }
    }
  }

  private onError(node: number, error: unknown): void {
    const isStores = error instanceof Error && error.name === 'StoreError'
    if (!isStores) this.bugs.push({ node, at: this.scheduler.now, line: String(error) })
  }
}
