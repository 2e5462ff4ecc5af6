import type { Timers } from '../../src/ports/clock.ts'
import type { Random } from '../fuzz/random.ts'
import { cutWays, endLink } from './backend.ts'
import type { Cluster } from './cluster.ts'
import type { Family } from './mixes.ts'
import type { SimulatedNode } from './node.ts'
import type { Part } from './way.ts'

/** Something that goes wrong, and comes right again. Its kind is the one that the checker of chaos knows. */
export interface Fault {
  readonly kind: string
  readonly target: string
  readonly holdMs: number
  begin(): void
  end(): Promise<void> | void
}

export interface FaultKindsOptions {
  readonly cluster: Cluster
  /** Of nodes. */
  readonly count: number
  readonly random: Random
  readonly timers: Timers
}

/** The target of what is wrong with all nodes at once. */
export const allNodes = 'nodes'

const links = { Redis: 'redisLink', PostgreSQL: 'databaseLink' } as const
export type Store = keyof typeof links
export const stores = Object.keys(links) as Store[]

/** How long a fault lasts, in ms. */
export const holdIn = (random: Random, longest: number) => 200 + random.int(longest)

/** What may go wrong with one node. */
export function createNodeFaults({ cluster, random, timers }: FaultKindsOptions) {
  const run = (index: number) => cluster.runs[index]
  const targetOf = (index: number) => `node-${index}`

  /** What is wrong with the links of a node to a store: two cuts, and two poor links. */
  function ofLink(index: number, store: Store): [cut: Fault, silent: Fault, loses: Fault, slow: Fault] {
    const link = (node: SimulatedNode) => node.backend[links[store]]
    const fault = (kind: string, longest: number, begin: (node: SimulatedNode) => void): Fault => {
      const mended = run(index)
      return {
        ...{ kind, target: targetOf(index), holdMs: holdIn(random, longest), begin: () => mended && begin(mended) },
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

  const killed = (index: number): Fault => ({
    ...{ kind: 'node killed', target: targetOf(index), holdMs: random.int(3_000) },
    begin: () => run(index)?.host.kill(),
    end: () => cluster.start(index),
  })

  const terminated = (index: number): Fault => ({
    ...{ kind: 'node terminated', target: targetOf(index), holdMs: 600 + random.int(2_000) },
    begin: () => void run(index)?.terminate(),
    async end() {
      const node = run(index)
      while (node?.host.isAlive === true) await timers.sleep(50)
      await cluster.start(index)
    },
  })

  const stopped = (index: number): Fault => ({
    ...{ kind: 'node stopped', target: targetOf(index), holdMs: holdIn(random, 8_000) },
    begin: () => run(index)?.host.stop(),
    end: () => run(index)?.host.goOn(),
  })

  return {
    ofLink,
    killed,
    terminated,
    stopped,
    ofNode: (index: number): Fault[] => [
      killed(index),
      terminated(index),
      stopped(index),
      ...stores.map((store) => random.pick(ofLink(index, store))),
    ],
  }
}

/** What may go wrong with all nodes at once. */
export function ofNodes({ cluster, count, random }: FaultKindsOptions): Fault {
  const runs = () => Array.from({ length: count }, (_, index) => cluster.runs[index]).filter((run) => run !== undefined)
  return {
    ...{ kind: 'all nodes stopped', target: allNodes, holdMs: holdIn(random, 12_000) },
    begin: () => runs().forEach(({ host }) => void host.stop()),
    end: () => runs().forEach(({ host }) => void host.goOn()),
  }
}

/** What may go wrong with the stores: first what is wrong with Redis. */
export function ofStores({ cluster, random }: FaultKindsOptions): Fault[] {
  const { redis, database } = cluster
  const away = (store: Part, name: Store) => {
    store.end()
    for (const { backend } of cluster.runs) cutWays(backend, backend[links[name]])
  }
  const ofStore = (kind: string, target: Store, longest: number, begin: () => void): Fault => {
    const end = () => (target === 'Redis' ? redis : database).goOn()
    return { kind, target, holdMs: holdIn(random, longest), begin, end }
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

/** Draws one fault of a family, at a node if it is a node's. */
export function createFamilies(options: FaultKindsOptions): Readonly<Record<Family, (index: number) => Fault>> {
  const { random } = options
  const nodes = createNodeFaults(options)
  const cut = (index: number, store: Store) => random.pick(nodes.ofLink(index, store).slice(0, 2))
  const ofStore = (store: Store) => random.pick(ofStores(options).filter(({ target }) => target === store))
  return {
    'node killed': nodes.killed,
    'node terminated': nodes.terminated,
    'node stopped': nodes.stopped,
    'node cut from Redis': (index) => cut(index, 'Redis'),
    'node cut from PostgreSQL': (index) => cut(index, 'PostgreSQL'),
    'poor link': (index) => random.pick(nodes.ofLink(index, random.pick(stores)).slice(2)),
    'Redis away': () => ofStore('Redis'),
    'PostgreSQL away': () => ofStore('PostgreSQL'),
    'all nodes stopped': () => ofNodes(options),
  }
}
