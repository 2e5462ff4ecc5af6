import { type Call, isLive, type Party } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import {
  type CallRow,
  endColumns,
  headColumns,
  identityColumns,
  movingColumns,
  pushEnd,
  pushHead,
  pushMoving,
} from '../sql/rows.ts'
import type { SqlValue } from './connection.ts'

/** A row, with its key. */
export type StoredRow = CallRow & { id: number }

/** A call, and its key in the database. */
export interface StoredCall<C extends Call = Call> {
  readonly id: number
  readonly call: C
}

export const callColumns = ['id', ...identityColumns, ...headColumns, ...movingColumns, ...endColumns]

/**
 * The four ways to write a call's row. An update names only the columns that change: SQLite rewrites every index that
 * has a named column, and a live call's transitions touch none.
 */
export const writes = {
  create: { code: 0, columns: [...identityColumns, ...headColumns, ...movingColumns, ...endColumns] },
  live: { code: 1, columns: movingColumns },
  over: { code: 2, columns: [...movingColumns, ...endColumns] },
  whole: { code: 3, columns: [...headColumns, ...movingColumns, ...endColumns] },
} as const

export type Write = keyof typeof writes

/** Which way a step goes, given what is stored now. */
export function writeOf(step: Step, stored: Call | undefined): Write {
  if (step.call.version === 1) return 'create'
  if (stored === undefined || !sameHead(stored, step.call)) return 'whole'
  if (!isLive(step.call)) return 'over'
  return isLive(stored) ? 'live' : 'whole'
}

/** Whether the columns of `headColumns` are the same; a transition hands the parts on, so the very same objects are there. */
function sameHead(a: Call, b: Call): boolean {
  return (
    sameParty(a.caller, b.caller) &&
    a.caller.displayName === b.caller.displayName &&
    sameParty(a.callee, b.callee) &&
    a.contextType === b.contextType &&
    a.contextId === b.contextId &&
    a.callType === b.callType &&
    a.metadata === b.metadata &&
    a.startedAt === b.startedAt &&
    a.ringTimeoutMs === b.ringTimeoutMs
  )
}

function sameParty(a: Party, b: Party): boolean {
  return a === b || (a.userId === b.userId && a.role === b.role)
}

/** The values of a call in the order of the write's columns. */
export function pushCall(out: SqlValue[], write: Write, call: Call): void {
  if (write === 'create') out.push(call.product, call.callUuid)
  if (write === 'create' || write === 'whole') pushHead(out, call)
  pushMoving(out, call)
  if (write !== 'live') pushEnd(out, call)
}
