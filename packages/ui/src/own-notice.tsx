import { useCallMedia } from '@ringwire/client/react'
import { Icon } from './icons.tsx'
import { whyNot } from './lacking.tsx'
import { useCallUi, useWords } from './provider.tsx'

/** The media that the peer does not get from this side; nothing if it gets all. */
export function OwnNotice() {
  const { call, media, phase } = useCallUi()
  const words = useWords()
  const state = useCallMedia(media)
  // A call on hold sends nothing by intent, and the stage says so.
  if (!call || !state || state.held) return null
  const { muted, local, errors, slots } = state
  const isMuted = muted.audio || (phase === 'live' && local.getAudioTracks().length === 0)
  const lacksSound = Boolean(errors.audio)
  const lost = slots.video.name === 'lost' ? slots.video.code : undefined
  let text = ''
  if (lacksSound && lost) text = words.noDevices
  else if (lacksSound) text = words.noMicrophone
  else if (isMuted) text = words.muted
  // Who has just asked for the camera wants to know what became of it.
  else if (lost) text = call.callType === 'video' ? words.noCamera : whyNot(words, 'video', lost)
  if (!text) return null
  return (
    <p className="rw-chip rw-own" role="status" data-testid="own-notice">
      <Icon name={lacksSound || isMuted ? 'micOff' : 'videoOff'} />
      {text}
    </p>
  )
}
