import { createPreview, type Preview, type PreviewState } from '@ringwire/client/media/preview'
import { useCallMedia } from '@ringwire/client/react'
import { useEffect, useRef, useState } from 'react'
import { useStream } from './hooks.ts'
import { Lacking } from './lacking.tsx'
import { lostOf } from './line-devices.ts'
import { classes, type PartProps } from './part.ts'
import { useLine, useWords } from './provider.tsx'
import type { DeviceChoice } from './wish.ts'

/** The own camera, as the peer would see it: what is sent in a call; before one also what the microphone hears. */
export function DevicePreview({ className }: PartProps) {
  const { media, devices } = useLine()
  const words = useWords()
  const sent = useCallMedia(media)?.local
  const before = usePreview(media === undefined, devices)
  const video = useRef<HTMLVideoElement>(null)
  useStream(video, sent ?? before?.state.stream)
  return (
    <div className={classes('rw-preview', className)} data-testid="device-preview">
      <video ref={video} className="rw-preview-video" autoPlay playsInline muted aria-label={words.preview} />
      {before && (
        <>
          <meter className="rw-level" aria-label={words.level} value={before.state.audioLevel} max={1} />
          <Lacking errors={before.state.errors} retry={before.preview.retryDevices} />
        </>
      )}
    </div>
  )
}

/** As a call does it: a chosen device that is gone or in use is replaced by another of its kind. */
async function open(preview: Preview, { audioinput, videoinput }: DeviceChoice): Promise<void> {
  const chosen = (deviceId: string | undefined) => (deviceId ? { deviceId: { exact: deviceId } } : true)
  await preview.start({ audio: chosen(audioinput), video: chosen(videoinput) }).catch(() => {})
  await preview.start(lostOf({ audioinput, videoinput }, preview.state.errors)).catch(() => {})
}

/** The devices that the user chose, open while the part is shown. */
function usePreview(on: boolean, { audioinput, videoinput }: DeviceChoice) {
  const [shown, setShown] = useState<{ preview: Preview; state: PreviewState }>()
  useEffect(() => {
    if (!on) return
    const preview = createPreview()
    const unsubscribe = preview.on('state', (state) => setShown({ preview, state }))
    void open(preview, { audioinput, videoinput })
    return () => {
      unsubscribe()
      preview.close()
      setShown(undefined)
    }
  }, [on, audioinput, videoinput])
  return shown
}
