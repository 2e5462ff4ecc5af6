import type { RefObject } from 'react'
import { useBrowserHas, useDocumentState } from './hooks.ts'
import { useWords } from './provider.tsx'
import { RoundButton } from './round-button.tsx'

/** Puts the video into a window of its own; nothing where the browser has none. */
export function PictureInPicture({ video }: { video: RefObject<HTMLVideoElement | null> }) {
  const words = useWords()
  const isThere = useBrowserHas(() => document.pictureInPictureEnabled === true)
  const read = () => document.pictureInPictureElement === video.current && video.current !== null
  const entered = useDocumentState('enterpictureinpicture', read)
  const isOn = useDocumentState('leavepictureinpicture', read) || entered
  if (!isThere) return null
  const toggle = async () => {
    if (isOn) await document.exitPictureInPicture()
    else await video.current?.requestPictureInPicture()
  }
  return (
    <RoundButton
      icon="pictureInPicture"
      label={words.pictureInPicture}
      pressed={isOn}
      testId="picture-in-picture"
      // Refused, as where the picture has not come yet: nothing changes.
      onClick={() => void toggle().catch(() => {})}
    />
  )
}
