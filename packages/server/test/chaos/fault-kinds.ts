import type { Header } from './recording.ts'

/** What goes wrong in every run. */
const always = ['node killed', 'node terminated', 'node stopped'] as const
const ofPostgres = ['PostgreSQL killed', 'PostgreSQL stopped'] as const
/** Faults if several nodes share a Redis; of a cluster it is one master each time. */
const shared = [
  'node cut from PostgreSQL',
  'node cut from Redis',
  'Redis killed',
  'Redis stopped',
  'Redis emptied',
  'keys evicted',
] as const
/** Faults if there are webhook endpoints. */
export const ofEndpoints = ['endpoint fails', 'node killed before delivery'] as const
/** A node's people go on elsewhere meanwhile; those of all nodes cannot. */
const lasting = ['node stopped for a minute', 'all nodes stopped'] as const
/** In s. */
const lastingFromS = 600
/** A fault that happens in several ways is recorded with the way. */
export type FaultKind = (
  | typeof always
  | typeof ofPostgres
  | typeof shared
  | typeof ofEndpoints
  | typeof lasting
)[number]

type Composition = Pick<Header, 'nodes' | 'store' | 'redis'>

/** What happens once each in a long run, and in no short one. */
export function lastingKindsOf({ durationS }: Pick<Header, 'durationS'>): readonly FaultKind[] {
  return durationS < lastingFromS ? [] : lasting
}

/** One node with PostgreSQL has none: what waits for the claim of a node that was killed is too long for a short run. */
export function hasEndpoints({ nodes, store }: Omit<Composition, 'redis'>): boolean {
  return nodes > 1 || store === 'sqlite'
}

export function faultKindsOf(composition: Composition): readonly FaultKind[] {
  const { nodes, store, redis } = composition
  return [
    ...always,
    ...(store === 'postgresql' ? ofPostgres : []),
    // A client of a cluster goes to the addresses that the cluster names: nothing is between.
    ...(nodes > 1 ? shared.filter((kind) => redis !== 'cluster' || kind !== 'node cut from Redis') : []),
    ...(hasEndpoints(composition) ? ofEndpoints : []),
  ]
}
