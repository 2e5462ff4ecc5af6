import type { Playback, PlaybackState } from './types.ts'

export interface PlaybackPort {
  readonly stream: MediaStream
  failed(error: unknown): void
  /** Its state is another one, or it is detached. */
  changed(): void
  detached(): void
}

/** One element that plays what the peer sends. */
function createPlayback(element: HTMLMediaElement, { stream, failed, changed, detached }: PlaybackPort) {
  const listening = new AbortController()
  const { signal } = listening
  let state: PlaybackState = 'playing'

  function become(next: PlaybackState): void {
    if (signal.aborted || state === next) return
    state = next
    changed()
  }

  async function resume(): Promise<void> {
    if (signal.aborted) return
    // A refusal comes at once; the promise of what is allowed waits for the first sound or picture.
    const timer = setTimeout(() => element.paused || become('playing'))
    try {
      await element.play()
      become('playing')
    } catch (error) {
      const { name } = error as Error
      if (name === 'NotAllowedError') become('blocked')
      // The source was changed in the meantime: the next attempt is on its way.
      else if (name !== 'AbortError') throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** By itself, so nobody waits for it. */
  function retry(): void {
    resume().catch(failed)
  }

  function listen(target: EventTarget, event: string, run: () => void): void {
    target.addEventListener(event, run, { capture: true, signal })
  }

  element.srcObject = stream
  // The first picture or sound may come long after the element is there.
  listen(element, 'loadedmetadata', retry)
  // Somebody else may have started it: a control of the element, or a script.
  listen(element, 'playing', () => become('playing'))
  // A browser allows sound after a gesture.
  for (const gesture of ['click', 'keydown'])
    listen(element.ownerDocument, gesture, () => state === 'blocked' && retry())
  retry()

  return {
    retry,
    playback: {
      get state() {
        return state
      },
      resume,
      detach(): void {
        become('playing')
        listening.abort()
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
        stream,
        failed: options.failed,
        changed: options.updated,
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
      for (const { playback } of all.values()) playback.detach()
    },
  }
}

export type Playbacks = ReturnType<typeof createPlaybacks>
