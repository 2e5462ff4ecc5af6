import { useCallMedia, useHold } from '@ringwire/client/react'
import { type CSSProperties, type RefObject, useEffect, useRef, useState } from 'react'
import { Avatar } from './avatar.tsx'
import type { Fit } from './fit.ts'
import { FullScreen } from './full-screen.tsx'
import { useClock, useFit, usePeerState, usePictureComes, useStats } from './hooks.ts'
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
  useEffect(() => (video.current ? media?.attach(video.current).detach : undefined), [media])
  useOutput(video)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another call, or what is shared, is looked at anew
  useEffect(() => setChosen(undefined), [call, isScreen])

  const name = call ? nameOf(call) : ''
  const isVideo = call?.callType === 'video'
  const isLive = phase === 'live'
  const cameraIsOff = peer.media !== null && !peer.media.video && !isScreen
  // This side cannot tell why no picture comes: a camera that is off, that is missing or that hangs.
  const arrives = isVideo ? comes : (state?.receiving.video ?? false)
  const isBlocked = state?.playback === 'blocked'
  const { held, byPeer } = useHold(call)
  const isHeld = held || byPeer
  const isSeen = isLive && arrives && !cameraIsOff && !isBlocked && !isHeld
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
          {held && <Chip icon="hold" testId="on-hold" text={words.onHold} />}
          {byPeer && <Chip icon="hold" testId="held-by-peer" text={words.heldBy(name)} />}
          {isLive && !peer.away && !isHeld && (
            <Missing lacksPicture={isVideo && !isSeen && !isBlocked} cameraIsOff={cameraIsOff} />
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
          <FullScreen />
        </div>
      )}
      {isBlocked && (
        // Any click on the page plays the sound; the button says so, and serves who has no pointer.
        <button type="button" className="rw-tap" data-testid="tap-to-hear">
          <Icon name="sound" />
          {words.tapToHear}
        </button>
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

/** The media that do not come from the peer: because it says that it sends none, or although it says nothing of the kind. */
function Missing({ lacksPicture, cameraIsOff }: { lacksPicture: boolean; cameraIsOff: boolean }) {
  const { call, media } = useCallUi()
  const words = useWords()
  const peer = usePeerState(call)
  const isSilent = useCallMedia(media)?.name === 'silent'
  const name = call ? nameOf(call) : ''
  const isMuted = peer.media !== null && !peer.media.audio
  const isUnheard = isSilent && !isMuted
  if (lacksPicture && isMuted && cameraIsOff) {
    return <Chip icon="videoOff" testId="nothing-sent" text={words.peerSendsNothing(name)} />
  }
  if (lacksPicture && isUnheard && !cameraIsOff) {
    return <Chip icon="lost" testId="nothing-arrives" text={words.notHeardOrSeen(name)} />
  }
  return (
    <>
      {isMuted && <Chip icon="micOff" testId="peer-muted" text={words.peerMuted(name)} />}
      {isUnheard && <Chip icon="lost" testId="nothing-arrives" text={words.notHeard(name)} />}
      {lacksPicture && (
        <Chip
          icon="videoOff"
          testId="no-picture"
          text={cameraIsOff ? words.peerCameraOff(name) : words.notSeen(name)}
        />
      )}
    </>
  )
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
