import type { Kind } from '../check/findings.ts'
import type { Draft } from './draft.ts'
import { plantsInCalls } from './plants-calls.ts'
import { plantsInStreams } from './plants-streams.ts'

/** Something wrong that is put into a recording in which nothing is. */
export interface Plant {
  readonly name: string
  /** How it has to be reported, whatever else it causes. */
  readonly kind: Kind
  /** Answers which call, or who, it has to be reported of. */
  plant(draft: Draft): { readonly call?: string; readonly user?: string }
}

export const plants: readonly Plant[] = [...plantsInStreams, ...plantsInCalls]
