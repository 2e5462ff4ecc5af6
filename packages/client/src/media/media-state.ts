import { createListeners } from '../listeners.ts'
import type { CallMediaEvents, CallMediaState } from './types.ts'

/** The streams stay the same for the whole call. */
const contentOf = (state: CallMediaState): string => JSON.stringify({ ...state, local: 0, remote: 0 })

/** The application's view: snapshots and events. There are no events after the end. */
export function createMediaState(local: MediaStream, remote: MediaStream) {
  const listeners = createListeners<CallMediaEvents>({
    rejected(cause) {
      if (!listeners.has('error')) return false
      listeners.emit('error', cause as Error)
      return true
    },
  })
  // The first change brings the devices that were captured.
  let state = {
    name: 'idle',
    local,
    remote,
    receiving: { audio: false, video: false },
    quality: 'unknown',
    playback: 'playing',
    securityCode: undefined,
  } as CallMediaState

  return {
    on: listeners.on,
    get: (): CallMediaState => state,
    isClosed: () => state.name === 'closed',
    change(part: Partial<CallMediaState>): void {
      const next = { ...state, ...part }
      const { name, quality, securityCode } = state
      if (name === 'closed' || contentOf(state) === contentOf(next)) return
      state = next
      listeners.emit('state', next)
      if (next.quality !== quality && next.quality !== 'unknown') listeners.emit('quality', next.quality)
      if (next.securityCode !== securityCode) listeners.emit('securityCode', next.securityCode)
    },
    emit<E extends 'remote' | 'stats' | 'devices' | 'error'>(event: E, payload: CallMediaEvents[E]): void {
      if (state.name !== 'closed') listeners.emit(event, payload)
    },
  }
}

export type MediaShown = ReturnType<typeof createMediaState>
