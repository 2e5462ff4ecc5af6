import type { Call } from '../../call/call.ts'
import { type CallRow, callColumns as columns } from '../sql/rows.ts'

/** A row, with its key. */
export type StoredRow = CallRow & { id: number }

/** A call, and its key in the database. */
export interface StoredCall<C extends Call = Call> {
  readonly id: number
  readonly call: C
}

export const callColumns = ['id', ...columns]
