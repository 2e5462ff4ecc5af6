import { useCallMedia } from '@ringwire/client/react'
import { useEffect, useRef, useState } from 'react'
import { useStream } from './hooks.ts'
import { classes, type PartProps } from './part.ts'
import { useLine, useWords } from './provider.tsx'

/** The own camera, as the peer would see it: what is sent in a call, what would be sent before one. */
export function DevicePreview({ className }: PartProps) {
  const { media, devices } = useLine()
  const words = useWords()
  const state = useCallMedia(media)
  const video = useRef<HTMLVideoElement>(null)
  const [own, setOwn] = useState<MediaStream>()
  useStream(video, state?.local ?? own)

  const isInCall = media !== undefined
  const { videoinput } = devices
  useEffect(() => {
    if (isInCall || !navigator.mediaDevices) return
    const opening = navigator.mediaDevices.getUserMedia({ video: videoinput ? { deviceId: videoinput } : true })
    opening.then(setOwn, () => undefined)
    return () => {
      setOwn(undefined)
      opening.then(
        (stream) => {
          for (const track of stream.getTracks()) track.stop()
        },
        () => undefined,
      )
    }
  }, [isInCall, videoinput])

  return (
    <div className={classes('rw-preview', className)} data-testid="device-preview">
      <video ref={video} className="rw-preview-video" autoPlay playsInline muted aria-label={words.preview} />
    </div>
  )
}
