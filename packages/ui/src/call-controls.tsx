import { useCallMedia } from '@ringwire/client/react'
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { DeviceMenu } from './device-menu.tsx'
import { DevicePreview } from './device-preview.tsx'
import { useBrowserHas, useDocumentState } from './hooks.ts'
import { useCallKeys } from './keys.ts'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useContextOfCall } from './provider.tsx'
import { RoundButton } from './round-button.tsx'

export interface CallControlsProps extends PartProps {
  /** M mutes, V turns the camera off and on, Escape cancels a call that still rings. Default: false. */
  keys?: boolean | undefined
}

const ignore = () => undefined

/** Microphone, camera, screen, devices, full screen and the end of the call. Nothing without a call. */
export function CallControls({ className, keys = false }: CallControlsProps) {
  const { call, media, phase, hangUp } = useCallUi()
  const { line, words } = useContextOfCall()
  const state = useCallMedia(media)
  const group = useRef<HTMLFieldSetElement>(null)
  const hasScreens = useBrowserHas(() => typeof navigator.mediaDevices?.getDisplayMedia === 'function')
  const isShown = call !== undefined && phase !== 'incoming'
  useCallKeys(keys && isShown)

  // The hang-up button never gets the focus by itself: the Enter that started the call may still be held.
  useEffect(() => {
    if (isShown) group.current?.focus({ preventScroll: true })
  }, [isShown])

  if (!isShown) return null
  const muted = state?.muted ?? { audio: false, video: false }
  const has = (kind: 'audio' | 'video') => muted[kind] || state?.local.getTracks().some((track) => track.kind === kind)
  return (
    <fieldset ref={group} className={classes('rw-controls', className)} aria-label={words.controls} tabIndex={-1}>
      <RoundButton
        icon={muted.audio ? 'micOff' : 'mic'}
        label={words.mute}
        pressed={muted.audio}
        testId="mute"
        aria-keyshortcuts={keys ? 'M' : undefined}
        disabled={!has('audio')}
        onClick={() => void line.toggleMicrophone().catch(ignore)}
      />
      {call.callType === 'video' && (
        <RoundButton
          icon={muted.video ? 'videoOff' : 'video'}
          label={words.cameraOff}
          pressed={muted.video}
          testId="camera"
          aria-keyshortcuts={keys ? 'V' : undefined}
          disabled={!has('video')}
          onClick={() => void line.toggleCamera().catch(ignore)}
        />
      )}
      {hasScreens && (
        <RoundButton
          icon="screen"
          label={words.shareScreen}
          pressed={state?.sharing ?? false}
          testId="screen"
          disabled={!media}
          onClick={() => void line.toggleScreen().catch(ignore)}
        />
      )}
      <Devices />
      <FullScreen />
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

/** A button that shows the devices in a panel above; Escape closes it. */
function Devices() {
  const { media } = useCallUi()
  const { words } = useContextOfCall()
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLSpanElement>(null)
  const id = useId()
  const lacks = Object.keys(useCallMedia(media)?.errors ?? {}).length > 0
  const keyed = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !isOpen) return
    event.stopPropagation()
    setOpen(false)
    button.current?.querySelector('button')?.focus()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of what is in it
    <span ref={button} className="rw-devices" onKeyDown={keyed}>
      <RoundButton
        icon="devices"
        label={words.devices}
        testId="devices"
        data-lacks={lacks ? '' : undefined}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      />
      <div id={id} className="rw-panel" hidden={!isOpen} data-testid="device-panel">
        {isOpen && (
          <>
            <DevicePreview />
            <DeviceMenu />
          </>
        )}
      </div>
    </span>
  )
}

/** The stage that the controls are in, or the whole page. */
function FullScreen() {
  const { words } = useContextOfCall()
  const isThere = useBrowserHas(() => document.fullscreenEnabled === true)
  const isOn = useDocumentState('fullscreenchange', () => document.fullscreenElement !== null)
  if (!isThere) return null
  const toggle = async (from: Element) => {
    if (isOn) await document.exitFullscreen()
    else await (from.closest('.rw-stage') ?? document.documentElement).requestFullscreen()
  }
  return (
    <RoundButton
      icon="fullScreen"
      label={words.fullScreen}
      pressed={isOn}
      testId="full-screen"
      onClick={({ currentTarget }) => void toggle(currentTarget).catch(ignore)}
    />
  )
}
