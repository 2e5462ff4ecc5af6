/** What a browser takes for a sign that the user wants to hear this page. */
const gestures = ['click', 'keydown'] as const

/**
 * Plays the stream in the element. A browser refuses to play sound on a page that nobody has clicked yet, as after a
 * reload. Then the picture goes on without sound, `blocked(true)` says so, and any click or key plays the sound.
 */
export function playStream(
  element: HTMLVideoElement,
  stream: MediaStream,
  blocked: (isBlocked: boolean) => void,
): { retry(): void; stop(): void } {
  const over = new AbortController()
  const { signal } = over
  let isBlocked = false

  function tell(now: boolean): void {
    if (isBlocked !== now && !signal.aborted) blocked(now)
    isBlocked = now
  }

  async function play(): Promise<void> {
    try {
      element.muted = false
      await element.play()
      tell(false)
    } catch (error) {
      if (signal.aborted || (error as DOMException).name !== 'NotAllowedError') return
      tell(true)
      element.muted = true
      await element.play().catch(() => undefined)
    }
  }

  element.srcObject = stream
  element.addEventListener('loadedmetadata', () => void play(), { signal })
  for (const gesture of gestures) {
    window.addEventListener(gesture, () => void (isBlocked && play()), { signal, capture: true })
  }
  void play()
  return {
    /** A page that may use the microphone may be heard in some browsers. */
    retry: () => void (isBlocked && play()),
    stop() {
      tell(false)
      over.abort()
      element.srcObject = null
    },
  }
}
