import { type Capability, readCapabilities } from '@ringwire/protocol/capabilities'
import { extendedQuery } from '@ringwire/protocol/extended'
import type { ResumeRequest } from '../ports/sessions.ts'

/** What the query of an extended connection asks for [EXT1, EXT6, RES1]. */
export interface ExtendedRequest {
  readonly resume: ResumeRequest | undefined
  /** The n of the last request whose reply the client has seen. */
  readonly replied: number
  /** Capabilities of the client; absent if it lists none that is known here [EXT6]. */
  readonly can?: readonly Capability[]
}

/** Undefined for a base session. A resume with an unreadable seq is one that cannot be proven [RES2]. */
export function readExtendedQuery(query: URLSearchParams): ExtendedRequest | undefined {
  if (query.get(extendedQuery.extended) !== '1') return undefined
  const listed = readCapabilities(query.get(extendedQuery.can) ?? '')
  const can = listed.length > 0 ? { can: listed } : {}
  const sessionId = query.get(extendedQuery.resume)
  if (sessionId === null) return { resume: undefined, replied: 0, ...can }
  const epoch = query.get(extendedQuery.epoch) ?? ''
  const seq = readCount(query.get(extendedQuery.seq)) ?? Number.NaN
  const replied = readCount(query.get(extendedQuery.replied)) ?? 0
  return { resume: { sessionId, epoch, seq, replied }, replied, ...can }
}

function readCount(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
