import type { Timers } from '../../src/ports/clock.ts'
import type { FaultRecord } from '../chaos/recording.ts'
import type { Random } from '../fuzz/random.ts'
import type { Cluster } from './cluster.ts'

export interface FaultsOptions {
  readonly cluster: Cluster
  readonly count: number
  readonly random: Random
  readonly timers: Timers
  readonly at: () => number
  /** Those that are left out, by when they would have been drawn: 0 is the first. */
  readonly without?: readonly number[]
}

/** Something that goes wrong, and comes right again. */
interface Fault {
  readonly kind: string
  readonly target: string
  readonly holdMs: number
  begin(): void
  end(): Promise<void> | void
}

/** Time with nothing wrong between two faults, in ms: from this to twice this. */
const quietMs = 1_500
const doubleChance = 0.2

/** One fault every few seconds, now and then two; which, where and how long the seed says. */
export function createFaults({ cluster, count, random, timers, at, without = [] }: FaultsOptions) {
  const records: FaultRecord[] = []
  const broken = new Set<string>()
  let drawn = 0

  function ofNode(index: number): Fault[] {
    const target = `node-${index}`
    const run = () => cluster.runs[index]
    const cut = (kind: string, link: 'redisLink' | 'databaseLink'): Fault => ({
      ...{ kind, target, holdMs: 200 + random.int(6_000) },
      begin() {
        const node = run()
        if (node === undefined) return
        node[link].isUp = false
        for (const way of node.ways) if (way.link === node[link]) way.cut()
      },
      end() {
        const node = run()
        if (node !== undefined) node[link].isUp = true
      },
    })
    return [
      {
        ...{ kind: 'node killed', target, holdMs: random.int(3_000) },
        begin: () => run()?.host.kill(),
        end: () => cluster.start(index),
      },
      {
        ...{ kind: 'node terminated', target, holdMs: 600 + random.int(2_000) },
        begin: () => void run()?.terminate(),
        async end() {
          const node = run()
          while (node?.host.isAlive === true) await timers.sleep(50)
          await cluster.start(index)
        },
      },
      {
        ...{ kind: 'node stopped', target, holdMs: 200 + random.int(8_000) },
        begin: () => run()?.host.stop(),
        end: () => run()?.host.goOn(),
      },
      cut('node cut from Redis', 'redisLink'),
      cut('node cut from PostgreSQL', 'databaseLink'),
    ]
  }

  function ofStore(kind: string, link: 'redisLink' | 'databaseLink', store: { isUp: boolean }, die = () => {}): Fault {
    return {
      ...{ kind, target: kind.split(' ')[0] ?? '', holdMs: 200 + random.int(4_000) },
      begin() {
        store.isUp = false
        for (const { ways, [link]: its } of cluster.runs) for (const way of ways) if (way.link === its) way.cut()
        die()
      },
      end() {
        store.isUp = true
      },
    }
  }

  function ofStores(): Fault[] {
    const { redis, database } = cluster
    return [
      ofStore('Redis killed', 'redisLink', redis, () => redis.restart()),
      ofStore('Redis stopped', 'redisLink', redis),
      { ...{ kind: 'Redis emptied', target: 'Redis', holdMs: 0 }, begin: () => redis.flush(), end() {} },
      ofStore('PostgreSQL killed', 'databaseLink', database),
    ]
  }

  async function one(): Promise<void> {
    const index = random.int(count)
    const fault = random.pick(random.chance(0.7) ? ofNode(index) : ofStores())
    if (without.includes(drawn++) || broken.has(fault.target)) return
    broken.add(fault.target)
    const from = at()
    fault.begin()
    await timers.sleep(fault.holdMs)
    await fault.end()
    broken.delete(fault.target)
    records.push({ kind: fault.kind, target: fault.target, from, until: at() })
  }

  return {
    records,
    /** How many faults were drawn, those that were left out among them. */
    drawn: () => drawn,
    /** Breaks things for so long; resolves when everything is whole. */
    async run(ms: number): Promise<void> {
      const until = timers.monotonic() + ms
      const under = new Set<Promise<void>>()
      while (timers.monotonic() < until) {
        const mine = one().finally(() => under.delete(mine))
        under.add(mine)
        if (!random.chance(doubleChance)) await mine
        await timers.sleep(quietMs + random.int(quietMs))
      }
      await Promise.all(under)
    },
  }
}
