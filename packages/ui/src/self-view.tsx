import { useCallMedia } from '@ringwire/client/react'
import { useRef } from 'react'
import { useStream } from './hooks.ts'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useWords } from './provider.tsx'

/** What is sent of this side's picture, as in a mirror; a screen and a camera at the back are not mirrored. */
export function SelfView({ className }: PartProps) {
  const { media } = useCallUi()
  const words = useWords()
  const state = useCallMedia(media)
  const video = useRef<HTMLVideoElement>(null)
  useStream(video, state?.local)
  const track = state?.local.getVideoTracks()[0]
  const isMirror = !state?.sharing && track?.getSettings().facingMode !== 'environment'
  return (
    <video
      ref={video}
      className={classes('rw-self', className)}
      aria-label={words.you}
      autoPlay
      playsInline
      muted
      hidden={!track}
      data-mirror={isMirror ? '' : undefined}
      data-testid="local-video"
    />
  )
}
