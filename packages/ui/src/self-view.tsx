import { useCallMedia } from '@ringwire/client/react'
import { useRef } from 'react'
import { useHandheldCameras, useStream } from './hooks.ts'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useContextOfCall } from './provider.tsx'
import { RoundButton } from './round-button.tsx'

/**
 * This side's picture as it is sent, as in a mirror; a screen and a camera at the back are not mirrored. On a phone with
 * two cameras a button changes to the other one.
 */
export function SelfView({ className }: PartProps) {
  const { media } = useCallUi()
  const { line, words } = useContextOfCall()
  const state = useCallMedia(media)
  const cameras = useHandheldCameras(media)
  const video = useRef<HTMLVideoElement>(null)
  useStream(video, state?.local)
  const track = state?.local.getVideoTracks()[0]
  const camera = state?.slots.video
  const isBack = camera?.name === 'live' && camera.facingMode === 'environment'
  return (
    <div className={classes('rw-self', className)} hidden={!track}>
      <video
        ref={video}
        aria-label={words.you}
        autoPlay
        playsInline
        muted
        data-mirror={isBack || state?.sharing ? undefined : ''}
        data-testid="local-video"
      />
      {track && cameras > 1 && !state?.sharing && (
        <RoundButton
          icon="flip"
          label={words.flip}
          testId="flip"
          onClick={() => void line.flipCamera().catch(() => {})}
        />
      )}
    </div>
  )
}
