import { useBrowserHas, useDocumentState } from './hooks.ts'
import { useWords } from './provider.tsx'
import { RoundButton } from './round-button.tsx'

/** The stage that the button is in, or the whole page; nothing where the browser has no full screen. */
export function FullScreen() {
  const words = useWords()
  const isThere = useBrowserHas(() => document.fullscreenEnabled === true)
  const isOn = useDocumentState('fullscreenchange', () => document.fullscreenElement !== null)
  if (!isThere) return null
  const toggle = async (from: Element) => {
    if (isOn) await document.exitFullscreen()
    else await (from.closest('.rw-stage') ?? document.documentElement).requestFullscreen()
  }
  return (
    <RoundButton
      icon="fullScreen"
      label={words.fullScreen}
      pressed={isOn}
      testId="full-screen"
      onClick={({ currentTarget }) => void toggle(currentTarget).catch(() => {})}
    />
  )
}
