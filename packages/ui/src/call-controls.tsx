import { useCallMedia, useHold } from '@ringwire/client/react'
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { hasNoPictureYet, isCameraOn } from './camera.ts'
import { DeviceMenu } from './device-menu.tsx'
import { DevicePreview } from './device-preview.tsx'
import { useBrowserHas, useClickElsewhere } from './hooks.ts'
import { useCallKeys } from './keys.ts'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useContextOfCall } from './provider.tsx'
import { RoundButton } from './round-button.tsx'

export interface CallControlsProps extends PartProps {
  /** M mutes, V turns the camera off and on (it adds none to an audio call), Escape cancels a call that rings. Default: false. */
  keys?: boolean | undefined
  /** More buttons, before that which hangs up. */
  children?: ReactNode
}

type Kind = 'audio' | 'video'

const ignore = () => {}

/** Microphone, camera, screen, hold and the end of the call, with the devices to choose from. Nothing without a call. */
export function CallControls({ className, keys = false, children }: CallControlsProps) {
  const { call, media, phase, hangUp } = useCallUi()
  const { line, words } = useContextOfCall()
  const state = useCallMedia(media)
  const group = useRef<HTMLFieldSetElement>(null)
  const { held } = useHold(call)
  const [open, setOpen] = useState<Kind>()
  const isShown = call !== undefined && phase !== 'incoming'
  useCallKeys(keys && isShown)
  useClickElsewhere(group, () => setOpen(undefined))

  // The hang-up button never gets the focus by itself: the Enter that started the call may still be held.
  useEffect(() => {
    setOpen(undefined)
    if (isShown) group.current?.focus({ preventScroll: true })
  }, [isShown])

  if (!isShown) return null
  const isMuted = state?.muted.audio ?? false
  const hasSound = isMuted || held || (state?.local.getAudioTracks().length ?? 0) > 0
  const keyed = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !open) return
    event.stopPropagation()
    setOpen(undefined)
    group.current?.querySelector<HTMLElement>(`[data-kind=${open}]`)?.focus()
  }
  const choose = (kind: Kind) => setOpen(open === kind ? undefined : kind)
  return (
    <fieldset
      ref={group}
      className={classes('rw-controls', className)}
      aria-label={words.controls}
      tabIndex={-1}
      onKeyDown={keyed}
    >
      <Choosable kind="audio" isOpen={open === 'audio'} choose={choose}>
        <RoundButton
          icon={isMuted ? 'micOff' : 'mic'}
          label={words.mute}
          pressed={isMuted}
          testId="mute"
          aria-keyshortcuts={keys ? 'M' : undefined}
          disabled={!hasSound}
          onClick={() => void line.toggleMicrophone().catch(ignore)}
        />
      </Choosable>
      <Camera keys={keys} isOpen={open === 'video'} choose={choose} />
      <Screen />
      <RoundButton
        icon="hold"
        label={words.hold}
        pressed={held}
        testId="hold"
        disabled={phase === 'calling'}
        onClick={() => void line.toggleHold().catch(ignore)}
      />
      {children}
      <RoundButton
        icon="hangUp"
        className="rw-red"
        label={phase === 'calling' ? words.cancel : words.hangUp}
        testId="hangup"
        onClick={hangUp}
      />
    </fieldset>
  )
}

/** Nothing where the browser cannot share a screen. */
function Screen() {
  const { media } = useCallUi()
  const { line, words } = useContextOfCall()
  const isShared = useCallMedia(media)?.sharing ?? false
  if (!useBrowserHas(() => typeof navigator.mediaDevices?.getDisplayMedia === 'function')) return null
  return (
    <RoundButton
      icon="screen"
      label={words.shareScreen}
      pressed={isShared}
      testId="screen"
      disabled={!media}
      onClick={() => void line.toggleScreen().catch(ignore)}
    />
  )
}

/** In an audio call it adds a picture to the call; from then on it is what it is in a video call. */
function Camera({ keys, ...choice }: { keys: boolean; isOpen: boolean; choose(kind: Kind): void }) {
  const { call, media } = useCallUi()
  const { line, words } = useContextOfCall()
  const state = useCallMedia(media)
  const isFirst = call && state ? hasNoPictureYet(call, state) : call?.callType !== 'video'
  const isOff = state !== undefined && !isFirst && !isCameraOn(state)
  return (
    <Choosable kind="video" isBare={isFirst} {...choice}>
      <RoundButton
        icon={isOff ? 'videoOff' : 'video'}
        label={isFirst ? words.cameraOn : words.cameraOff}
        pressed={isFirst ? undefined : isOff}
        testId="camera"
        aria-keyshortcuts={keys && !isFirst ? 'V' : undefined}
        disabled={!state}
        onClick={() => void line.toggleCamera().catch(ignore)}
      />
    </Choosable>
  )
}

interface ChoosableProps {
  kind: Kind
  isOpen: boolean
  /** There is nothing to choose yet. The first button stays the same one, and keeps the focus. */
  isBare?: boolean
  choose(kind: Kind): void
  children: ReactNode
}

/** A button with a second one that opens a panel, in which the user chooses the device. Escape closes the panel. */
function Choosable({ kind, isOpen, isBare = false, choose, children }: ChoosableProps) {
  const { media } = useCallUi()
  const { words } = useContextOfCall()
  const id = useId()
  const lacks = Boolean(useCallMedia(media)?.errors[kind])
  return (
    <>
      <span className="rw-split">
        {children}
        {!isBare && (
          <RoundButton
            icon="chevron"
            className="rw-chevron"
            label={kind === 'audio' ? words.microphoneOptions : words.cameraOptions}
            testId={`choose-${kind}`}
            data-kind={kind}
            data-lacks={lacks ? '' : undefined}
            aria-expanded={isOpen}
            aria-controls={id}
            onClick={() => choose(kind)}
          />
        )}
      </span>
      <div id={id} className="rw-panel" hidden={!isOpen} data-testid="device-panel">
        {isOpen && kind === 'video' && <DevicePreview />}
        {isOpen && <DeviceMenu of={kind} />}
      </div>
    </>
  )
}
