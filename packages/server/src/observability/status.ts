import type { MaybePromise } from '../ports/maybe.ts'
import type { Family } from './families.ts'
import type { HealthReport } from './health.ts'

/** What operators are told: of one process, or of a machine with several [ADM1]. */
export interface Status {
  families(): MaybePromise<readonly Family[]>
  live(): MaybePromise<HealthReport>
  ready(): Promise<HealthReport>
}
