import type { FaultRecord, Header } from '../recording.ts'

/** The header of a recording of three nodes and two people with these faults, for tests. */
export const headerOf = (...faults: readonly FaultRecord[]): Header => ({
  seed: 1,
  nodes: 3,
  store: 'postgresql',
  users: 2,
  durationS: 100,
  startedAt: 0,
  resumeWindowMs: 120_000,
  faults: [...faults],
  crashes: [],
  stuck: [],
})
