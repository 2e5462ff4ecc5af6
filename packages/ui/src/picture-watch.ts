import type { MediaStats } from '@ringwire/client/media/types'

/** A shorter gap proves nothing: a picture in which nothing moves may be sent once a second. */
const gapMs = 1500

/** Takes the statistics one after the other, and tells whether a picture comes. */
export function createPictureWatch(): (stats: Pick<MediaStats, 'inbound' | 'intervalMs'>) => boolean {
  let gap = 0
  return ({ inbound, intervalMs }) => {
    gap = inbound.video.packets > 0 ? 0 : gap + intervalMs
    return gap < gapMs
  }
}
