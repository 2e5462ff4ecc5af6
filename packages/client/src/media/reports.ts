import type { CallStats } from '../types.ts'
import { flowsOf } from './stats.ts'
import type { MediaStats } from './types.ts'

/** The first one comes soon, for most calls are short; the service takes one every 30 s. In ms. */
const firstAfterMs = 5_000
const everyMs = 30_000
const candidateTypes = ['host', 'srflx', 'prflx', 'relay']

export interface ReportsOptions {
  readonly send: (stats: CallStats) => void
  /** Monotonic, ms. */
  readonly now: () => number
}

/** Tells the service how the media is: the mean, or the worst, of what was seen since the last report [STAT1]. */
export function createReports({ send, now }: ReportsOptions) {
  let seen: MediaStats[] = []
  let since: number | undefined
  let dueMs = firstAfterMs

  function report(): void {
    if (seen.length > 0) send(summed(seen))
    seen = []
  }

  return {
    looked(stats: MediaStats): void {
      const at = now()
      since ??= at
      seen.push(stats)
      if (at - since < dueMs) return
      report()
      since = at
      dueMs = everyMs
    },
    /** The call is over: what was seen since the last report is worth one more. */
    end: report,
  }
}

const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

function summed(seen: readonly MediaStats[]): CallStats {
  const ms = total(seen.map(({ intervalMs }) => intervalMs))
  const last = seen.at(-1)
  const flows = seen.flatMap(flowsOf)
  const bits = seen.map(
    ({ inbound, intervalMs }) => (inbound.audio.bitsPerSecond + inbound.video.bitsPerSecond) * intervalMs,
  )
  const dropped = seen.flatMap(({ framesDropped }) => framesDropped ?? [])
  const pair = last?.candidateTypes
  const isKnown = pair !== undefined && [pair.local, pair.remote].every((type) => candidateTypes.includes(type))
  const codec = last?.codec
  return {
    ...meanOf(seen, 'roundTripMs', 'rtt_ms'),
    ...meanOf(seen, 'jitterMs', 'jitter_ms'),
    ...lossOf(flows),
    ...(ms > 0 && { bitrate: Math.round(total(bits) / ms) }),
    ...(dropped.length > 0 && { frames_dropped: total(dropped) }),
    ...(isKnown && { candidate_pair: pair }),
    ...(codec !== undefined && /^[A-Za-z0-9./_-]{1,32}$/.test(codec) && { codec }),
  }
}

/** Of the packets that are known to have arrived or not; a flow that lost more weighs by its packets. */
function lossOf(flows: readonly MediaStats['inbound']['audio'][]): { loss?: number } {
  const known = flows.filter(({ loss }) => loss !== undefined)
  const packets = total(known.map((flow) => flow.packets))
  if (packets === 0) return {}
  const lost = total(known.map((flow) => (flow.loss ?? 0) * flow.packets))
  return { loss: Math.round((lost / packets) * 10_000) / 10_000 }
}

function meanOf(
  seen: readonly MediaStats[],
  of: 'roundTripMs' | 'jitterMs',
  name: 'rtt_ms' | 'jitter_ms',
): Partial<CallStats> {
  const values = seen.flatMap((stats) => stats[of] ?? [])
  return values.length === 0 ? {} : { [name]: Math.min(60_000, Math.round(total(values) / values.length)) }
}

export type Reports = ReturnType<typeof createReports>
