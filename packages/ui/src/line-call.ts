import { type CallMedia, type CallMediaOptions, createCallMedia } from '@ringwire/client/media'
import type { Call, CallClient } from '@ringwire/client/types'
import { idle, type LineStates, noCall, phaseOf } from './line-state.ts'

/** The user has to answer it. */
export const rings = (call: Call): boolean => phaseOf(call) === 'incoming'

/** The call that the page is in, from the moment when it takes it to its end, and its media. */
export function createLineCall(
  client: CallClient,
  { get, change }: LineStates,
  open: (media: CallMedia, withCamera: boolean) => Promise<void>,
  mediaOptions: () => CallMediaOptions | undefined,
) {
  function closeMedia(): void {
    get().media?.close()
    change({ media: undefined })
  }

  function hold(call: Call): void {
    call.on('state', (now) => {
      if (get().call !== call) return
      if (now.name !== 'over') {
        change({})
        // Accept was refused: the dialog is back, and nothing may be open behind it.
        if (get().phase === 'incoming') closeMedia()
        return
      }
      const { since } = get()
      change({ ...noCall, phase: 'over', ended: { call, state: now, since, endedAt: Date.now() } })
      const next = client.calls.find(rings)
      if (next) ring(next)
    })
    change({ ...idle, call })
  }

  function ring(call: Call): void {
    hold(call)
    void call.alerting()
  }

  /** Media closes itself when the call is over. `answer`: whether the user who accepts wants the camera. */
  function join(call: Call, answer?: boolean): void {
    const media = createCallMedia(call, mediaOptions())
    media.on('state', ({ name }) => {
      // A peer without devices sends nothing. The call is live as soon as both sides are connected.
      const isConnected = name === 'flowing' || name === 'silent'
      if (get().media === media && isConnected && get().since === undefined) change({ since: Date.now() })
    })
    change({ media })
    const isVideo = call.callType === 'video'
    if (isVideo && answer !== undefined) void media.setMuted('video', !answer)
    // A camera that was off before the page was loaded again stays closed.
    void open(media, isVideo && !media.state.muted.video)
  }

  return {
    ring,
    join,
    /** It is the page's own, or was answered before. */
    take(call: Call): void {
      hold(call)
      join(call)
    },
  }
}
