import type { Header } from './recording.ts'

/** What goes wrong in every run. */
const always = ['node killed', 'node terminated', 'node stopped'] as const
const ofPostgres = ['PostgreSQL killed', 'PostgreSQL stopped'] as const
/** Where several nodes share a Redis. */
const shared = [
  'node cut from PostgreSQL',
  'node cut from Redis',
  'Redis killed',
  'Redis stopped',
  'Redis emptied',
  'keys evicted',
] as const
/** Where there are webhook endpoints. */
export const ofEndpoints = ['endpoint fails', 'node killed before delivery'] as const
/** What is done in several ways is recorded with how it was done. */
export type FaultKind = (typeof always | typeof ofPostgres | typeof shared | typeof ofEndpoints)[number]

type Composition = Pick<Header, 'nodes' | 'store'>

/** One node with PostgreSQL has none: what waits for the claim of a node that was killed is too long for a short run. */
export function hasEndpoints({ nodes, store }: Composition): boolean {
  return nodes > 1 || store === 'sqlite'
}

export function faultKindsOf(composition: Composition): readonly FaultKind[] {
  const { nodes, store } = composition
  return [
    ...always,
    ...(store === 'postgresql' ? ofPostgres : []),
    ...(nodes > 1 ? shared : []),
    ...(hasEndpoints(composition) ? ofEndpoints : []),
  ]
}
