import { useEffect } from 'react'
import { hasNoPictureYet } from './camera.ts'
import type { LineState } from './line-state.ts'
import { useContextOfCall } from './provider.tsx'

const ignore = () => {}

/** A user who types, or holds a key that means something to the browser, means no call. */
function isMeantElsewhere(event: KeyboardEvent): boolean {
  const { target } = event
  const isTyping =
    target instanceof HTMLElement && (target.isContentEditable || target.closest('input, textarea, select'))
  return event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey || Boolean(isTyping)
}

/** A key that is hit by chance shall not add a picture to an audio call: the button does that. */
function hasPicture({ call, media }: LineState): boolean {
  return call !== undefined && media !== undefined && !hasNoPictureYet(call, media.state)
}

/** M, V and Escape, anywhere on the page. */
export function useCallKeys(on: boolean): void {
  const { line } = useContextOfCall()
  useEffect(() => {
    if (!on) return
    const pressed = (event: KeyboardEvent) => {
      if (isMeantElsewhere(event)) return
      const key = event.key.toLowerCase()
      if (key === 'm') void line.toggleMicrophone().catch(ignore)
      else if (key === 'v' && hasPicture(line.get())) void line.toggleCamera().catch(ignore)
      else if (key === 'escape' && line.get().phase === 'calling') line.hangUp()
    }
    window.addEventListener('keydown', pressed)
    return () => window.removeEventListener('keydown', pressed)
  }, [on, line])
}
