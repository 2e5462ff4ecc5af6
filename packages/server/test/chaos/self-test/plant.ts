import type { Kind } from '../check/findings.ts'
import type { Draft } from './draft.ts'

/** What was recorded: one node on PostgreSQL, three of them, and one with SQLite and two endpoints. */
export type RecordingName = 'one' | 'several' | 'embedded'

/** Something wrong that is put into a recording in which nothing is. */
export interface Plant {
  readonly name: string
  /** How it has to be reported, whatever else it causes. */
  readonly kind: Kind
  /** Which recording it is put into; undefined: the one of one node. */
  readonly recording?: RecordingName
  /** Answers which call, or who, it has to be reported of, and when where that matters. */
  plant(draft: Draft): { readonly call?: string; readonly user?: string; readonly at?: number }
}
