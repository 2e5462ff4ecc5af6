import type { CallRef, Side } from '../call/call.ts'
import type { TimelineRow } from '../call/observed.ts'

/** Of what is relayed, what is looked at: never kept. */
export interface RelayedData {
  readonly candidate?: unknown
  readonly sdp?: unknown
}

export interface TrafficOptions {
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
  isChanged: boolean
  usedAt: number
}

interface SideCounts {
  id: string
  at: number
  until: number
  readonly kinds: Record<string, number>
  readonly candidates: Record<string, number>
}

/** So many calls are counted at once; of others nothing is. */
const mostCalls = 50_000
/** A call of which nothing was passed on for so long begins a new count, in ms. */
const idleMs = 60_000

export function createTraffic({ now, nextId, write }: TrafficOptions): Traffic {
  const calls = new Map<string, Counted>()
  const noCounts = (): SideCounts => ({ id: '', at: 0, until: 0, kinds: {}, candidates: {} })

  function begin(key: string, ref: CallRef): Counted | undefined {
    if (calls.size >= mostCalls) return undefined
    const call: Counted = { ref, caller: noCounts(), callee: noCounts(), isChanged: false, usedAt: 0 }
    calls.set(key, call)
    return call
  }

  function writeSide({ product, callUuid }: CallRef, side: Side, counts: SideCounts): void {
    if (counts.id === '') return
    const { id, at, until, kinds, candidates } = counts
    const detail = { ...kinds, candidate_types: { ...candidates }, until: new Date(until).toISOString() }
    write({ product, callUuid, id, at, what: 'relays', side, detail })
  }

  function writeAll(): void {
    for (const call of calls.values()) {
      if (!call.isChanged) continue
      call.isChanged = false
      writeSide(call.ref, 'caller', call.caller)
      writeSide(call.ref, 'callee', call.callee)
    }
  }

  return {
    count(key, refOf, side, event, data) {
      const call = calls.get(key) ?? begin(key, refOf(key))
      if (call === undefined) return
      const counts = call[side]
      const at = now()
      if (counts.id === '') Object.assign(counts, { id: nextId(), at })
      counts.until = at
      call.usedAt = at
      call.isChanged = true
      const kind = kindOf(event)
      counts.kinds[kind] = (counts.kinds[kind] ?? 0) + 1
      noteCandidates(counts.candidates, data)
    },
    write: writeAll,
    sweep() {
      writeAll()
      const idle = now() - idleMs
      for (const [key, { usedAt }] of calls) if (usedAt < idle) calls.delete(key)
    },
  }
}

function kindOf(event: string): string {
  if (event === 'webrtc.offer') return 'offers'
  if (event === 'webrtc.answer') return 'answers'
  return event === 'webrtc.ice_candidate' ? 'candidates' : 'media'
}

const inCandidate = / typ (host|srflx|prflx|relay)\b/
const inSdp = /^a=candidate:.* typ (host|srflx|prflx|relay)\b/gm

/** The types of candidates that a message names; their addresses are nobody's business. */
function noteCandidates(types: Record<string, number>, { candidate, sdp }: RelayedData): void {
  const line = textIn(candidate, 'candidate')
  const found = line === undefined ? undefined : inCandidate.exec(line)?.[1]
  if (found !== undefined) types[found] = (types[found] ?? 0) + 1
  const text = textIn(sdp, 'sdp')
  if (text === undefined || !text.includes('a=candidate:')) return
  for (const [, type = ''] of text.matchAll(inSdp)) types[type] = (types[type] ?? 0) + 1
}

function textIn(value: unknown, name: string): string | undefined {
  const text = (value as Record<string, unknown> | null | undefined)?.[name]
  return typeof text === 'string' ? text : undefined
}
