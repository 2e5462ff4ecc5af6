import type { MediaStats } from '@ringwire/client/media/types'

/** What comes from the peer: all that may, only its sound, or nothing at all. */
export type Reception = 'all' | 'sound' | 'nothing'

/** A shorter gap proves nothing: a picture in which nothing moves may be sent once a second. */
const gapMs = 1500

/** Takes the statistics one after the other, and gives what they come to. */
export function createReception(): (stats: Pick<MediaStats, 'inbound' | 'intervalMs'>) => Reception {
  const silentMs = { audio: 0, video: 0 }
  return ({ inbound, intervalMs }) => {
    for (const kind of ['audio', 'video'] as const) {
      silentMs[kind] = inbound[kind].packets > 0 ? 0 : silentMs[kind] + intervalMs
    }
    if (silentMs.video < gapMs) return 'all'
    return silentMs.audio < gapMs ? 'sound' : 'nothing'
  }
}
