import type { MaybePromise } from '../ports/maybe.ts'
import type { PeerNode } from '../ports/nodes.ts'
import type { Family } from './families.ts'
import type { HealthReport } from './health.ts'

/** What operators are told: of one process, or of a machine with several [ADM1, ADM2]. */
export interface Status {
  families(): MaybePromise<readonly Family[]>
  live(): MaybePromise<HealthReport>
  ready(): Promise<HealthReport>
  /** What each process of this machine has now. */
  present(): MaybePromise<readonly ProcessPresent[]>
}

/** Upper ends of the ages of live calls that are counted together, in seconds; the last group has none. */
export const ageBounds = [10, 60, 600, 3_600] as const

/** Live calls by status, and how many of each are of which age. */
export type CallAges = Readonly<Record<'ringing' | 'accepted' | 'connected', readonly number[]>>

export interface ProcessPresent {
  readonly node: string
  readonly sockets: number
  /** Of several nodes each tells of the calls whose caller it holds. */
  readonly calls: CallAges
  /** The nodes that serve with it. */
  readonly others: readonly PeerNode[]
}
