/** What goes wrong in every run, and where several nodes share a Redis. A cut is recorded with how it was done. */
const always = ['node killed', 'node terminated', 'node stopped', 'PostgreSQL killed', 'PostgreSQL stopped'] as const
const shared = [
  'node cut from PostgreSQL',
  'node cut from Redis',
  'Redis killed',
  'Redis stopped',
  'Redis emptied',
  'keys evicted',
] as const
export type FaultKind = (typeof always)[number] | (typeof shared)[number]

export function faultKindsOf(nodes: number): readonly FaultKind[] {
  return nodes === 1 ? always : [...always, ...shared]
}
