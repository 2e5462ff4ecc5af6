import type { FaultRecord } from '../chaos/recording.ts'
import {
  allNodes,
  createFamilies,
  createNodeFaults,
  type Fault,
  type FaultKindsOptions,
  ofNodes,
  ofStores,
  stores,
} from './fault-kinds.ts'
import { drawFamily, type Mix } from './mixes.ts'

export interface FaultsOptions extends FaultKindsOptions {
  readonly mix: Mix
  readonly at: () => number
  /** Those that are left out, by when they would have been drawn: 0 is the first. */
  readonly without?: readonly number[]
}

/** About how far a replica is behind, in ms. */
const lagMs = 2_000

/** One fault every few seconds, now and then two; which, where and how long the seed says. */
export function createFaults(options: FaultsOptions) {
  const { cluster, random, timers, at, mix, without = [] } = options
  const { quietMs, doubleChance, sameChance } = mix
  const records: FaultRecord[] = []
  let drawn = 0
  /** Of each target, the kinds of faults under way. */
  const under = new Map<string, string[]>()
  const deal = createDealer(options)

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
        if (!without.includes(drawn++) && !isTaken(fault, under)) {
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

/** Draws the next fault; of the node `where`, where that is given. */
function createDealer(options: FaultsOptions): (where: number | undefined) => Fault {
  const { count, random, mix } = options
  const { ofNode } = createNodeFaults(options)
  const ofFamily = createFamilies(options)
  return (where) => {
    if (where !== undefined) return random.pick(ofNode(where))
    if (mix.weights !== undefined) return ofFamily[drawFamily(mix.weights, random)](random.int(count))
    if (random.chance(0.7)) return random.pick(ofNode(random.int(count)))
    return random.pick(random.chance(0.1) ? [ofNodes(options)] : ofStores(options))
  }
}

/** Whether something is wrong already that does not go with it. */
function isTaken({ kind, target }: Fault, under: ReadonlyMap<string, readonly string[]>): boolean {
  const isOfNodes = target === allNodes || target.startsWith('node-')
  if (isOfNodes && under.has(allNodes)) return true
  if (target === allNodes) return [...under.keys()].some((other) => other.startsWith('node-'))
  const others = under.get(target) ?? []
  // Of one node a link fails beside something else, and nothing twice.
  const isOfLink = (name: string) => stores.some((store) => name.includes(store))
  return others.some((other) => !isOfNodes || isOfLink(other) === isOfLink(kind))
}
