// What a load needs, out of what one of each thing costs: docs/scaling.md works an example with it.
import type { PartName } from './parts.ts'

/** CPU seconds of each part, and the number of requests to the stores. */
export interface Work {
  readonly cpu: Readonly<Record<PartName, number>>
  /** Scripts that Redis ran. */
  readonly scripts: number
  /** Transactions of PostgreSQL. */
  readonly transactions: number
}

/** The table that `npm run bench -- --only capacity` prints. */
export interface UnitCosts {
  /** Of one node and one second, without a client. */
  readonly node: Work
  /** Of one client that is connected, and one second. */
  readonly connected: Work
  /** Of one client that connects. */
  readonly connect: Work
  /** Of one call, from the invite to the end, between two nodes. */
  readonly call: Work
  readonly memory: {
    /** Of a node without a client, and of each client. */
    readonly node: number
    readonly nodeEach: number
    readonly redisEach: number
  }
  readonly stored: {
    readonly rowsPerCall: number
    readonly bytesPerCall: number
  }
}

export interface Load {
  readonly nodes: number
  readonly connected: number
  readonly connectsPerSecond: number
  readonly callsPerSecond: number
}

/** What a load takes in a second, so `cpu` is cores. */
export function workOf({ node, connected, connect, call }: UnitCosts, load: Load): Work {
  const total = (figure: (work: Work) => number) =>
    figure(node) * load.nodes +
    figure(connected) * load.connected +
    figure(connect) * load.connectsPerSecond +
    figure(call) * load.callsPerSecond
  const cpu = (part: PartName) => total((work) => work.cpu[part])
  return {
    cpu: {
      nodes: cpu('nodes'),
      redis: cpu('redis'),
      postgres: cpu('postgres'),
    },
    scripts: total(({ scripts }) => scripts),
    transactions: total(({ transactions }) => transactions),
  }
}

/** The number of nodes that one core and one memory each allow, with a share of both left for clients that come back. */
export function nodesFor(
  costs: UnitCosts,
  load: Omit<Load, 'nodes'>,
  { memory, share }: { readonly memory: number; readonly share: number },
): { readonly byCpu: number; readonly byMemory: number } {
  const others = workOf(costs, { ...load, nodes: 0 }).cpu.nodes
  return {
    byCpu: Math.ceil(others / (share - costs.node.cpu.nodes)),
    byMemory: Math.ceil((load.connected * costs.memory.nodeEach) / (share * memory - costs.memory.node)),
  }
}

/** How long it takes until the clients of a node that is gone are back: what they need, of the cores that are free. */
export function returnSeconds(costs: UnitCosts, load: Load, redisCores: number): Record<'nodes' | 'redis', number> {
  const coming = load.connected / load.nodes
  const { cpu } = workOf(costs, { ...load, nodes: load.nodes - 1 })
  return {
    nodes: (coming * costs.connect.cpu.nodes) / (load.nodes - 1 - cpu.nodes),
    redis: (coming * costs.connect.cpu.redis) / (redisCores - cpu.redis),
  }
}
