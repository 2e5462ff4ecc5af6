import type { CallRef, Side } from '../call/call.ts'
import type { TimelineRow } from '../call/observed.ts'

/** Of what is relayed, what is looked at: never kept. */
export interface RelayedData {
  readonly candidate?: unknown
  readonly sdp?: unknown
}

export interface TrafficOptions {
  /** The first message of its kind went from a side to the other. */
  readonly onFirst?: ((ref: CallRef, side: Side, event: string) => void) | undefined
  readonly now: () => number
  readonly nextId: () => string
  /** Takes the counts of one side of a call: the first ones, or those that replace them. */
  readonly write: (row: TimelineRow) => void
}

/** Messages that were passed on, counted by call and direction [TRACE1]. */
export interface Traffic {
  count(key: string, refOf: (key: string) => CallRef, side: Side, event: string, data: RelayedData): void
  /** Writes what has changed. */
  write(): void
  /** The same, and forgets calls of which nothing was passed on for a while. */
  sweep(): void
}

interface Counted {
  readonly ref: CallRef
  readonly caller: SideCounts
  readonly callee: SideCounts
  /** When it was found to have been used. */
  usedAt: number
}

/** A relay that is passed on pays for this: fields that are there from the start, and no clock. */
interface SideCounts {
  id: string
  at: number
  readonly kinds: { offers: number; answers: number; candidates: number; media: number }
  readonly types: Record<CandidateType, number>
  isChanged: boolean
}

/** RFC 8839 section 5.1. */
type CandidateType = 'host' | 'srflx' | 'prflx' | 'relay'

/** The most calls that are counted at once; others have no counts. */
const mostCalls = 50_000
/** A call without relays for this time begins a new count, in ms. */
const idleMs = 60_000

export function createTraffic({ now, nextId, write, onFirst }: TrafficOptions): Traffic {
  const calls = new Map<string, Counted>()
  const noCounts = (): SideCounts => ({
    id: '',
    at: 0,
    kinds: { offers: 0, answers: 0, candidates: 0, media: 0 },
    types: { host: 0, srflx: 0, prflx: 0, relay: 0 },
    isChanged: false,
  })

  function begin(key: string, ref: CallRef): Counted | undefined {
    if (calls.size >= mostCalls) return undefined
    const call: Counted = { ref, caller: noCounts(), callee: noCounts(), usedAt: 0 }
    calls.set(key, call)
    return call
  }

  function writeSide({ product, callUuid }: CallRef, side: Side, counts: SideCounts, until: number): void {
    const { id, at, kinds, types } = counts
    counts.isChanged = false
    const detail = { ...counted(kinds), candidate_types: counted(types), until: new Date(until).toISOString() }
    write({ product, callUuid, id, at, what: 'relays', side, detail })
  }

  function writeAll(): void {
    const at = now()
    for (const call of calls.values()) {
      if (call.caller.isChanged || call.callee.isChanged) call.usedAt = at
      if (call.caller.isChanged) writeSide(call.ref, 'caller', call.caller, at)
      if (call.callee.isChanged) writeSide(call.ref, 'callee', call.callee, at)
    }
  }

  return {
    count(key, refOf, side, event, data) {
      const call = calls.get(key) ?? begin(key, refOf(key))
      if (call === undefined) return
      const counts = side === 'caller' ? call.caller : call.callee
      if (counts.id === '') {
        counts.id = nextId()
        counts.at = now()
      }
      counts.isChanged = true
      const { kinds } = counts
      const kind = kindOf(event)
      if (kinds[kind]++ === 0 && kind !== 'media') onFirst?.(call.ref, side, event)
      noteCandidates(counts.types, data)
    },
    write: writeAll,
    sweep() {
      writeAll()
      const idle = now() - idleMs
      for (const [key, { usedAt }] of calls) if (usedAt < idle) calls.delete(key)
    },
  }
}

function kindOf(event: string): keyof SideCounts['kinds'] {
  if (event === 'webrtc.ice_candidate') return 'candidates'
  if (event === 'webrtc.offer') return 'offers'
  return event === 'webrtc.answer' ? 'answers' : 'media'
}

/** The counts that are not zero. */
function counted(counts: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}

const inSdp = /^a=candidate:.* typ (host|srflx|prflx|relay)\b/gm

/** The types of candidates that a message names; their addresses are nobody's business. */
function noteCandidates(types: SideCounts['types'], { candidate, sdp }: RelayedData): void {
  const line = textIn(candidate, 'candidate')
  const found = line === undefined ? undefined : typeIn(line)
  if (found !== undefined) types[found]++
  const text = sdp === undefined ? undefined : textIn(sdp, 'sdp')
  if (text === undefined || !text.includes('a=candidate:')) return
  for (const [, type] of text.matchAll(inSdp)) types[type as CandidateType]++
}

const candidateTypes = ['host', 'srflx', 'prflx', 'relay'] as const satisfies CandidateType[]

/** Without a regular expression, which costs as much as all of the rest. */
function typeIn(candidate: string): CandidateType | undefined {
  const at = candidate.indexOf(' typ ')
  if (at < 0) return undefined
  const end = candidate.indexOf(' ', at + 5)
  const word = candidate.slice(at + 5, end < 0 ? undefined : end)
  return candidateTypes.find((type) => type === word)
}

function textIn(value: unknown, name: string): string | undefined {
  const text = (value as Record<string, unknown> | null | undefined)?.[name]
  return typeof text === 'string' ? text : undefined
}
