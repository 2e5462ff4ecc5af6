import { useCallMedia } from '@ringwire/client/react'
import { type CSSProperties, type RefObject, useEffect, useRef, useState } from 'react'
import { Avatar } from './avatar.tsx'
import type { Fit } from './fit.ts'
import { useClock, useFit, usePeerState, usePictureComes, useStats, useStream } from './hooks.ts'
import { Icon, type IconName } from './icons.tsx'
import { classes, type PartProps } from './part.ts'
import { PictureInPicture } from './picture-in-picture.tsx'
import { useCallUi, useLine, useWords } from './provider.tsx'
import { RoundButton } from './round-button.tsx'
import { durationText, nameOf } from './words.ts'

/** The other side: its picture or its avatar, and what is to be known of it. */
export function PeerTile({ className }: PartProps) {
  const { call, media, phase } = useCallUi()
  const words = useWords()
  const state = useCallMedia(media)
  const peer = usePeerState(call)
  const comes = usePictureComes(media)
  const level = useStats(media)?.audioLevel ?? 0
  const video = useRef<HTMLVideoElement>(null)
  const isScreen = peer.media?.screen ?? false
  const fitting = useFit(video, isScreen)
  const [chosen, setChosen] = useState<Fit>()
  useStream(video, state?.remote)
  useOutput(video)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another call, or what is shared, is looked at anew
  useEffect(() => setChosen(undefined), [call, isScreen])

  const name = call ? nameOf(call) : ''
  const isVideo = call?.callType === 'video'
  const isLive = phase === 'live'
  const cameraIsOff = peer.media !== null && !peer.media.video && !isScreen
  // Why none comes cannot be told from here alone: a camera that is off, that is missing or that hangs.
  const arrives = isVideo ? comes : (state?.receiving.video ?? false)
  const isSeen = isLive && arrives && !cameraIsOff
  const fit = chosen ?? fitting
  return (
    <div
      className={classes('rw-peer', className)}
      data-fit={fit}
      data-seen={isSeen ? '' : undefined}
      data-interrupted={state?.name === 'interrupted' ? '' : undefined}
      style={{ '--rw-level': level.toFixed(3) } as CSSProperties}
    >
      {/* biome-ignore lint/a11y/useMediaCaption: what a person says now has no caption file */}
      <video ref={video} autoPlay playsInline data-testid="remote-video" aria-label={name} />
      {call && !isSeen && <Avatar name={name} waits={!isLive} />}
      {call && (
        <div className="rw-chips">
          <Away />
          {isLive && peer.media && !peer.media.audio && (
            <Chip icon="micOff" testId="peer-muted" text={words.peerMuted(name)} />
          )}
          {isLive && isVideo && !isSeen && !peer.away && (
            <Chip
              icon="videoOff"
              testId="no-picture"
              text={cameraIsOff ? words.peerCameraOff(name) : words.noPicture}
            />
          )}
          {isLive && isScreen && <Chip icon="screen" testId="peer-shares" text={words.peerShares(name)} />}
          {state?.quality === 'poor' && <Chip icon="lost" testId="poor" text={words.poor} />}
        </div>
      )}
      {isSeen && (
        <div className="rw-tools">
          <RoundButton
            icon="fill"
            label={words.fill}
            pressed={fit === 'cover'}
            testId="fill"
            onClick={() => setChosen(fit === 'cover' ? 'contain' : 'cover')}
          />
          <PictureInPicture video={video} />
        </div>
      )}
    </div>
  )
}

/** The speaker that the user chose, where the browser can. */
function useOutput(video: RefObject<HTMLVideoElement | null>): void {
  const { media, devices } = useLine()
  const { audiooutput } = devices
  useEffect(() => {
    if (audiooutput && video.current) void media?.setOutput(video.current, audiooutput)
  }, [video, media, audiooutput])
}

function Chip({ icon, text, testId }: { icon: IconName; text: string; testId: string }) {
  return (
    <span className="rw-chip" data-testid={testId}>
      <Icon name={icon} />
      {text}
    </span>
  )
}

/** Counts down to the end of a call whose other side is away. */
function Away() {
  const { call } = useCallUi()
  const words = useWords()
  const { away } = usePeerState(call)
  const now = useClock(away !== null)
  if (!call || !away) return null
  const left = durationText(Math.ceil((away.endsAt - now) / 1000))
  return <Chip icon="lost" testId="peer-away" text={words.awayLeft(nameOf(call), left)} />
}
