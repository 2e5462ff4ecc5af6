import type { Call, RingwireErrorShape } from '../types.ts'
import type { MediaShown } from './media-state.ts'
import { createQuality } from './quality.ts'
import type { CallMediaState, MediaStats } from './types.ts'

/** A shorter gap proves nothing: sound that is left out while nobody speaks comes every 400 ms (RFC 7587 section 3.1.3). */
const silentAfterMs = 2000
/** Codes of signals that were lost on the way. */
export const passing = new Set<string>(['CALL_OVER', 'UNKNOWN_OUTCOME', 'CONNECTION_CLOSED', 'TIMEOUT'])

/** Media arrives on the connection, or could at any time. */
export const isConnected = (name: CallMediaState['name']) => name === 'flowing' || name === 'silent'

/**
 * The media that arrive, or no longer do, and the quality of their path. The client reports the first arrival to the
 * service.
 */
export function createReception(call: Pick<Call, 'connected'>, shown: MediaShown, failed: (error: unknown) => void) {
  let reported = false
  let quietMs = 0
  let quality = createQuality()

  /**
   * The service takes it twice as once, but once is enough. A report that did not get through is repeated while media
   * flows.
   */
  function report(): void {
    if (reported) return
    reported = true
    call.connected().catch((error: RingwireErrorShape) => {
      reported = !passing.has(error.code) && !error.retryable
      if (reported) failed(error)
    })
  }

  return {
    /** The connection is lost, or another takes its place. */
    interrupted(): void {
      quietMs = 0
      quality = createQuality()
      const { name } = shown.get()
      if (!isConnected(name)) return
      shown.change({ name: 'interrupted', receiving: { audio: false, video: false }, quality: 'unknown' })
    },
    /** While it is connected. */
    looked(stats: MediaStats): void {
      const { audio, video } = stats.inbound
      const receiving = { audio: audio.packets > 0, video: video.packets > 0 }
      const arrives = receiving.audio || receiving.video
      quietMs = arrives ? 0 : quietMs + stats.intervalMs
      let { name } = shown.get()
      if (arrives) name = 'flowing'
      else if (quietMs >= silentAfterMs) name = 'silent'
      if (!isConnected(name)) return
      shown.change({ name, receiving, quality: name === 'silent' ? 'unknown' : quality(stats) })
      if (arrives) report()
      shown.emit('stats', stats)
    },
  }
}

export type Reception = ReturnType<typeof createReception>
