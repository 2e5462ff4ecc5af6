import type { MaybePromise } from '../ports/maybe.ts'
import type { PeerNode } from '../ports/nodes.ts'
import type { Absent } from './absences.ts'
import type { Family } from './families.ts'
import type { HealthReport } from './health.ts'

/** The data for operators: of one process, or of a machine with several [ADM1, ADM2]. */
export interface Status {
  families(): MaybePromise<readonly Family[]>
  live(): MaybePromise<HealthReport>
  ready(): Promise<HealthReport>
  /** What each process of this machine has now. */
  present(): MaybePromise<readonly ProcessPresent[]>
  /** Answers what the operator's page asks of the stores, or wants to be done. */
  operate(asked: OperatorAsk): Promise<Response>
}

/** A request of an operator, as one process hands it to another. */
export interface OperatorAsk {
  readonly method: string
  /** Below /admin/api/. */
  readonly path: string
  readonly query: string
  readonly body: string
  /** What the operator calls itself; empty where it says nothing. */
  readonly operator: string
  readonly address: string | undefined
}

/** The answer, as it goes from process to process. */
export interface OperatorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
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
  readonly absent: Absent
}
