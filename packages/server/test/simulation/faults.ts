import type { Timers } from '../../src/ports/clock.ts'
import type { FaultRecord } from '../chaos/recording.ts'
import type { Random } from '../fuzz/random.ts'
import { cutWays, endLink } from './backend.ts'
import type { Cluster } from './cluster.ts'
import type { SimulatedNode } from './node.ts'
import type { Part } from './way.ts'

export interface FaultsOptions {
  readonly cluster: Cluster
  readonly count: number
  readonly random: Random
  readonly timers: Timers
  readonly at: () => number
  /** Those that are left out, by when they would have been drawn: 0 is the first. */
  readonly without?: readonly number[]
}

/** Something that goes wrong, and comes right again. Its kind is the one that the checker of chaos knows. */
interface Fault {
  readonly kind: string
  readonly target: string
  readonly holdMs: number
  begin(): void
  end(): Promise<void> | void
}

/** Time with nothing wrong between two faults, in ms: from this to twice this. */
const quietMs = 1_500
/** How often something else goes wrong meanwhile, and how often that is at the same node. */
const doubleChance = 0.2
const sameChance = 0.5
/** About how far a replica is behind, in ms. */
const lagMs = 2_000
const allNodes = 'nodes'

const links = { Redis: 'redisLink', PostgreSQL: 'databaseLink' } as const
type Store = keyof typeof links
const stores = Object.keys(links) as Store[]

/** One fault every few seconds, now and then two; which, where and how long the seed says. */
export function createFaults({ cluster, count, random, timers, at, without = [] }: FaultsOptions) {
  const records: FaultRecord[] = []
  let drawn = 0
  /** Of each target, the kinds of faults under way. */
  const under = new Map<string, string[]>()
  const hold = (longest: number) => 200 + random.int(longest)
  const nodes = () => Array.from({ length: count }, (_, index) => index)

  /** What is wrong with the links of a node to a store. */
  function ofLink(index: number, store: Store): Fault[] {
    const target = `node-${index}`
    const run = () => cluster.runs[index]
    const link = (node: SimulatedNode) => node.backend[links[store]]
    const fault = (kind: string, longest: number, begin: (node: SimulatedNode) => void): Fault => {
      const mended = run()
      return {
        ...{ kind, target, holdMs: hold(longest), begin: () => mended && begin(mended) },
        end() {
          if (mended === undefined) return
          Object.assign(link(mended), { lossPerMille: 0, latencyMs: store === 'Redis' ? 2 : 4 })
          link(mended).goOn()
        },
      }
    }
    return [
      fault(`node cut from ${store}`, 9_000, (node) => endLink(node.backend, link(node))),
      fault(`node cut from ${store} (silent)`, 9_000, (node) => link(node).stop()),
      fault(`node loses answers of ${store}`, 6_000, (node) => {
        link(node).lossPerMille = 20 + random.int(200)
      }),
      fault(`node is slow to reach ${store}`, 6_000, (node) => {
        link(node).latencyMs = 50 + random.int(700)
      }),
    ]
  }

  function ofNode(index: number): Fault[] {
    const target = `node-${index}`
    const run = () => cluster.runs[index]
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
        ...{ kind: 'node stopped', target, holdMs: hold(8_000) },
        begin: () => run()?.host.stop(),
        end: () => run()?.host.goOn(),
      },
      ...stores.flatMap((store) => random.pick(ofLink(index, store))),
    ]
  }

  function ofNodes(): Fault[] {
    const runs = () => nodes().flatMap((index) => cluster.runs[index] ?? [])
    return [
      {
        ...{ kind: 'all nodes stopped', target: allNodes, holdMs: hold(12_000) },
        begin: () => runs().forEach(({ host }) => void host.stop()),
        end: () => runs().forEach(({ host }) => void host.goOn()),
      },
    ]
  }

  function ofStores(): Fault[] {
    const { redis, database } = cluster
    const away = (store: Part, name: Store) => {
      store.end()
      for (const { backend } of cluster.runs) cutWays(backend, backend[links[name]])
    }
    const ofStore = (kind: string, target: Store, longest: number, begin: () => void): Fault => {
      return { kind, target, holdMs: hold(longest), begin, end: () => (target === 'Redis' ? redis : database).goOn() }
    }
    return [
      ofStore('Redis killed', 'Redis', 4_000, () => {
        away(redis, 'Redis')
        redis.restart()
      }),
      // As with a restart, what the replica lacks is written again [RES2].
      ofStore('Redis killed', 'Redis', 1_000, () => {
        away(redis, 'Redis')
        redis.promote()
      }),
      ofStore('Redis stopped', 'Redis', 6_000, () => redis.stop()),
      { ...{ kind: 'Redis emptied', target: 'Redis', holdMs: 0 }, begin: () => redis.flush(), end() {} },
      ofStore('PostgreSQL killed', 'PostgreSQL', 4_000, () => away(database, 'PostgreSQL')),
      ofStore('PostgreSQL stopped', 'PostgreSQL', 6_000, () => database.stop()),
    ]
  }

  /** Whether something is wrong already that does not go with it. */
  function isTaken({ kind, target }: Fault): boolean {
    const isOfNodes = target === allNodes || target.startsWith('node-')
    if (isOfNodes && under.has(allNodes)) return true
    if (target === allNodes) return [...under.keys()].some((other) => other.startsWith('node-'))
    const others = under.get(target) ?? []
    // Of one node a link fails beside something else, and nothing twice.
    const isOfLink = (name: string) => stores.some((store) => name.includes(store))
    return others.some((other) => !isOfNodes || isOfLink(other) === isOfLink(kind))
  }

  async function happen(fault: Fault): Promise<void> {
    const { kind, target, holdMs } = fault
    under.set(target, [...(under.get(target) ?? []), kind])
    const from = at()
    fault.begin()
    await timers.sleep(holdMs)
    await fault.end()
    const left = (under.get(target) ?? []).filter((each) => each !== kind)
    if (left.length > 0) under.set(target, left)
    else under.delete(target)
    records.push({ kind, target, from, until: at() })
  }

  function deal(where?: number): Fault {
    if (where !== undefined) return random.pick(ofNode(where))
    if (random.chance(0.7)) return random.pick(ofNode(random.int(count)))
    return random.pick(random.chance(0.1) ? ofNodes() : ofStores())
  }

  return {
    records,
    /** How many faults were drawn, those that were left out among them. */
    drawn: () => drawn,
    /** Breaks things for `ms`, and resolves when everything is whole. */
    async run(ms: number): Promise<void> {
      const until = timers.monotonic() + ms
      const open = new Set<Promise<void>>()
      const stopReplica = timers.every(lagMs / 4, () => random.chance(0.5) && cluster.redis.replicate())
      let where: number | undefined
      while (timers.monotonic() < until) {
        const fault = deal(where)
        const isDouble = random.chance(doubleChance)
        const index = Number(/^node-(\d+)$/.exec(fault.target)?.[1] ?? Number.NaN)
        where = isDouble && !Number.isNaN(index) && random.chance(sameChance) ? index : undefined
        if (!without.includes(drawn++) && !isTaken(fault)) {
          const mine = happen(fault).finally(() => open.delete(mine))
          open.add(mine)
          if (!isDouble) await mine
        }
        await timers.sleep(isDouble ? random.int(quietMs) : quietMs + random.int(quietMs))
      }
      stopReplica()
      await Promise.all(open)
    },
  }
}
