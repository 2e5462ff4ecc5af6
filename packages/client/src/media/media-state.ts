import { createListeners } from '../listeners.ts'
import type { CallMediaEvents, CallMediaState } from './types.ts'

function isSame(one: CallMediaState, other: CallMediaState): boolean {
  const flags = ({ muted, receiving }: CallMediaState) => [muted.audio, muted.video, receiving.audio, receiving.video]
  return one.name === other.name && one.sharing === other.sharing && `${flags(one)}` === `${flags(other)}`
}

/** What the application sees: snapshots and events. Nothing is told after the end. */
export function createMediaState(local: MediaStream, remote: MediaStream) {
  const listeners = createListeners<CallMediaEvents>()
  const none = { audio: false, video: false }
  let state: CallMediaState = { name: 'idle', local, remote, muted: none, sharing: false, receiving: none }

  return {
    on: listeners.on,
    get: (): CallMediaState => state,
    isClosed: () => state.name === 'closed',
    change(part: Partial<CallMediaState>): void {
      const next = { ...state, ...part }
      if (state.name === 'closed' || isSame(state, next)) return
      state = next
      listeners.emit('state', state)
    },
    emit<E extends 'remote' | 'stats' | 'devices' | 'error'>(event: E, payload: CallMediaEvents[E]): void {
      if (state.name !== 'closed') listeners.emit(event, payload)
    },
  }
}
