import { createListeners } from '../listeners.ts'
import type { Playback, PlaybackState } from './types.ts'

/** What a browser takes for a gesture that allows sound. */
const gestures = ['click', 'keydown', 'touchend'] as const

export interface PlaybackPort {
  readonly stream: MediaStream
  failed(error: unknown): void
  changed(): void
  detached(): void
}

/** One element that plays what the peer sends. */
function createPlayback(element: HTMLMediaElement, { stream, failed, changed, detached }: PlaybackPort) {
  const listeners = createListeners<{ state: PlaybackState }>({
    rejected(cause) {
      failed(cause)
      return true
    },
  })
  let state: PlaybackState = 'playing'
  let ended = false

  function become(next: PlaybackState): void {
    if (ended || state === next) return
    state = next
    for (const gesture of gestures) {
      if (next === 'blocked') element.ownerDocument.addEventListener(gesture, retry, true)
      else element.ownerDocument.removeEventListener(gesture, retry, true)
    }
    changed()
    listeners.emit('state', next)
  }

  async function resume(): Promise<void> {
    if (ended) return
    try {
      await element.play()
      become('playing')
    } catch (error) {
      const name = (error as Error | undefined)?.name
      if (name === 'NotAllowedError') become('blocked')
      // What plays was changed in the meantime: the next attempt is on its way.
      else if (name !== 'AbortError') throw error
    }
  }

  /** By itself, so nobody waits for it. */
  function retry(): void {
    resume().catch(failed)
  }

  element.srcObject = stream
  // The first picture or sound may come long after the element is there.
  element.addEventListener('loadedmetadata', retry)
  element.addEventListener('playing', played)
  retry()

  /** Somebody else may have started it: a control of the element, or a script. */
  function played(): void {
    become('playing')
  }

  return {
    retry,
    playback: {
      get state() {
        return state
      },
      on: listeners.on,
      resume,
      detach(): void {
        if (ended) return
        become('playing')
        ended = true
        element.removeEventListener('loadedmetadata', retry)
        element.removeEventListener('playing', played)
        if (element.srcObject === stream) element.srcObject = null
        detached()
      },
    } satisfies Playback,
  }
}

/** The elements of one call. One that is attached again keeps its playback. */
export function createPlaybacks(stream: MediaStream, options: { failed(error: unknown): void; updated(): void }) {
  const all = new Map<HTMLMediaElement, ReturnType<typeof createPlayback>>()

  return {
    attach(element: HTMLMediaElement): Playback {
      const known = all.get(element)
      if (known) return known.playback
      const made = createPlayback(element, {
        ...{ stream, failed: options.failed, changed: options.updated },
        detached: () => void all.delete(element),
      })
      all.set(element, made)
      return made.playback
    },
    state: (): PlaybackState =>
      [...all.values()].some(({ playback }) => playback.state === 'blocked') ? 'blocked' : 'playing',
    /** There is something else to play, or a reason why it may be allowed now. */
    retry(): void {
      for (const { retry } of all.values()) retry()
    },
    resume: async (): Promise<void> => {
      await Promise.all([...all.values()].map(({ playback }) => playback.resume()))
    },
    close(): void {
      for (const { playback } of [...all.values()]) playback.detach()
    },
  }
}
