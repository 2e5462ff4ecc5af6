// Which groups of scenarios run on which compositions, and when: `test` with every change, `all` only in the long run.

export const compositionNames = ['embedded', 'nodes', 'postgres', 'cluster'] as const
export type CompositionName = (typeof compositionNames)[number]

export const groups = [
  'flows',
  'states',
  'backend',
  'invites',
  'connecting',
  'groups',
  'turns',
  'history',
  'mixed',
  'restart',
  'time',
  'arrival',
  'authentication',
  'closing',
  'envelopes',
  'limits',
  'losses',
  'places',
  'secrecy',
  'cutting',
  'devices',
  'peers',
  'resume',
  'sessions',
  'signs',
  'upstream',
  'timelines',
  'waking',
] as const
export type Group = (typeof groups)[number]

/** `npm test`, or `npm run test:all`, which includes it. */
export type Run = 'test' | 'all'

type Row = Readonly<Partial<Record<CompositionName, Run>>>

/** Nodes share every store that there is: what only PostgreSQL could break shows there, too. */
const always: Row = { embedded: 'test', nodes: 'test', postgres: 'all' }
/** What one node answers from what it has, or from one read. */
const ofOneNode: Row = { ...always, nodes: 'all' }
/** The parts of it that nodes share are in the groups that run on nodes with every change. */
const nodesLater: Row = { ...always, nodes: 'all' }
const table: Readonly<Record<Group, Row>> = {
  flows: { ...always, cluster: 'all' },
  // Decisions are the same in every composition. The flows show that they reach every node.
  states: { ...nodesLater, cluster: 'all' },
  backend: { ...nodesLater, cluster: 'all' },
  invites: nodesLater,
  connecting: always,
  groups: always,
  turns: always,
  history: ofOneNode,
  mixed: nodesLater,
  // A pair of nodes is started 56 times.
  restart: nodesLater,
  time: nodesLater,
  arrival: always,
  authentication: ofOneNode,
  closing: always,
  envelopes: ofOneNode,
  limits: nodesLater,
  losses: nodesLater,
  places: always,
  secrecy: ofOneNode,
  cutting: { embedded: 'test', nodes: 'all' },
  devices: { ...always, cluster: 'all' },
  peers: always,
  resume: nodesLater,
  sessions: { ...always, cluster: 'all' },
  // A socket is pinged by the node that has it.
  signs: ofOneNode,
  upstream: always,
  // A phone that nobody answers rings for 5 s at the least.
  timelines: { embedded: 'all', nodes: 'all', postgres: 'all' },
  waking: always,
}

/** What `run` runs. */
export function scenarioRuns(run: Run): readonly { composition: CompositionName; group: Group }[] {
  return compositionNames.flatMap((composition) =>
    groups
      .filter((group) => table[group][composition] === 'test' || (run === 'all' && table[group][composition] === 'all'))
      .map((group) => ({ composition, group })),
  )
}
