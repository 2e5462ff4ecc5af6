import { useCallMedia } from '@ringwire/client/react'
import { useEffect, useId, useState } from 'react'
import { Lacking } from './lacking.tsx'
import { classes, type PartProps } from './part.ts'
import { useContextOfCall, useLine } from './provider.tsx'
import type { Words } from './words.ts'

const kinds = [
  { kind: 'videoinput', of: 'video', word: 'camera' },
  { kind: 'audioinput', of: 'audio', word: 'microphone' },
  { kind: 'audiooutput', of: 'audio', word: 'speaker' },
] as const

export interface DeviceMenuProps extends PartProps {
  /** 'audio': microphone and speaker. 'video': the camera. Default: all. */
  of?: 'audio' | 'video' | undefined
}

/** Which camera, microphone and speaker: of the call, or of the next one. A device that was refused can be asked for again. */
export function DeviceMenu({ className, of: wanted }: DeviceMenuProps) {
  const { media, devices: chosen } = useLine()
  const { line, words } = useContextOfCall()
  const state = useCallMedia(media)
  const devices = useDevices(state)
  return (
    <div className={classes('rw-menu', className)} data-testid="device-menu">
      {media && state && <Lacking of={wanted} errors={state.errors} retry={media.retryDevices} />}
      {kinds.map(({ kind, of, word }) => {
        if (wanted && wanted !== of) return null
        const list = devices.filter((device) => device.kind === kind && device.deviceId !== '')
        const isInput = kind !== 'audiooutput'
        const track = isInput ? state?.local.getTracks().find((candidate) => candidate.kind === of) : undefined
        const current = state?.sharing && of === 'video' ? undefined : track?.getSettings().deviceId
        return list.length === 0 ? null : (
          <Choice
            key={kind}
            {...{ list, words }}
            name={words[word]}
            value={current ?? chosen[kind] ?? ''}
            choose={(id) => line.chooseDevice(kind, id)}
          />
        )
      })}
    </div>
  )
}

function Choice(props: {
  list: readonly MediaDeviceInfo[]
  words: Words
  name: string
  value: string
  choose(id: string): void
}) {
  const { list, words, name, value, choose } = props
  const id = useId()
  const isListed = list.some(({ deviceId }) => deviceId === value)
  return (
    <p className="rw-choice">
      <label htmlFor={id}>{name}</label>
      <select id={id} value={isListed ? value : ''} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {!isListed && <option value="">{words.defaultDevice}</option>}
        {list.map(({ deviceId, label }, index) => (
          <option key={deviceId} value={deviceId}>
            {label || words.device(name, index + 1)}
          </option>
        ))}
      </select>
    </p>
  )
}

/** The devices of this machine, as they come and go. Their labels are known once one of them was opened. */
function useDevices(changed: unknown): readonly MediaDeviceInfo[] {
  const [devices, setDevices] = useState<readonly MediaDeviceInfo[]>([])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the labels come with what has changed
  useEffect(() => {
    const { mediaDevices } = navigator
    if (!mediaDevices) return
    let isGone = false
    const read = async () => {
      const list = await mediaDevices.enumerateDevices().catch(() => [])
      if (!isGone) setDevices(list)
    }
    void read()
    mediaDevices.addEventListener('devicechange', read)
    return () => {
      isGone = true
      mediaDevices.removeEventListener('devicechange', read)
    }
  }, [changed])
  return devices
}
