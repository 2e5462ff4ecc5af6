import { useCallMedia } from '@ringwire/client/react'
import { Icon } from './icons.tsx'
import { useCallUi, useLine, useWords } from './provider.tsx'

/** What the peer does not get from this side; nothing where it gets all. */
export function OwnNotice() {
  const { call, media, phase } = useCallUi()
  const { hasCamera } = useLine()
  const words = useWords()
  const state = useCallMedia(media)
  if (!call || !state) return null
  const { muted, local, errors } = state
  const isMuted = muted.audio || (phase === 'live' && local.getAudioTracks().length === 0)
  const lacksSound = Boolean(errors.audio)
  const lacksPicture = call.callType === 'video' && Boolean(errors.video) && !hasCamera
  let text = ''
  if (lacksSound && lacksPicture) text = words.noDevices
  else if (lacksSound) text = words.noMicrophone
  else if (isMuted) text = words.muted
  else if (lacksPicture) text = words.noCamera
  if (!text) return null
  return (
    <p className="rw-chip rw-own" role="status" data-testid="own-notice">
      <Icon name={lacksSound || isMuted ? 'micOff' : 'videoOff'} />
      {text}
    </p>
  )
}
