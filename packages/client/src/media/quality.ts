import { flowsOf } from './stats.ts'
import type { CallMediaState, MediaStats } from './types.ts'

/** Loss is reported in lumps, of sound every 5 s (RFC 3550 section 6.2): what one look says is smoothed over this time. */
const smoothingMs = 4000
const knownAfterMs = 2000
/** Poor above the one, good again below the other: between them it stays as it was. */
const loss = { poor: 0.08, good: 0.04 }
const roundTripMs = { poor: 500, good: 350 }

/** How the way of the media is, from the statistics of one connection. */
export function createQuality() {
  let quality: CallMediaState['quality'] = 'unknown'
  let seenMs = 0
  let lost = 0
  let roundTrip = 0

  return (stats: MediaStats): CallMediaState['quality'] => {
    const { intervalMs } = stats
    const weight = 1 - Math.exp(-intervalMs / smoothingMs)
    seenMs += intervalMs
    lost += weight * (Math.max(...flowsOf(stats).map((flow) => flow.loss ?? 0)) - lost)
    roundTrip += weight * ((stats.roundTripMs ?? roundTrip) - roundTrip)
    if (lost > loss.poor || roundTrip > roundTripMs.poor) quality = 'poor'
    else if (seenMs >= knownAfterMs && lost < loss.good && roundTrip < roundTripMs.good) quality = 'good'
    return quality
  }
}
