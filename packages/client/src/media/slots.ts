import type { MediaErrorCode, SlotState } from './types.ts'

export type Constraints = MediaTrackConstraints | boolean | undefined

/**
 * The track that is sent, and its source. `own`: it was opened here, so it is stopped, muted, hinted and replaced here. A
 * track of the application's is only sent, or not.
 */
export interface Device {
  readonly source: MediaStreamTrack
  readonly sent: MediaStreamTrack
  readonly own: boolean
  /** The constraints with which it was opened. */
  readonly wish: Constraints
}

/** One of microphone, camera and screen: `empty | opening | live | lost`, as SlotState shows it. */
export interface Slot {
  device: Device | null
  /** Counts the requests for a device. A track that an earlier request opened is stale, and is stopped. */
  turn: number
  /** While the newest turn is on its way. */
  opening?: Promise<unknown> | undefined
  /** Gives up a device of ours that is open and not used yet: `process` works on it, and may never answer. */
  abandon?: (() => void) | undefined
  /** Why there is none. */
  code?: MediaErrorCode | undefined
  /** What to open again: after a failure, or when the camera is switched on. */
  wish?: Constraints
}

export const createSlot = (): Slot => ({ device: null, turn: 0 })

export function release(device: Device | null): void {
  if (!device?.own) return
  device.source.stop()
  device.sent.stop()
}

/** How the encoder shall spend its bits, unless the application has said so. */
export function hint(track: MediaStreamTrack, as: 'motion' | 'detail'): void {
  if (track.kind === 'video' && track.contentHint === '') track.contentHint = as
}

/** The part of a wish that stays when another device is chosen: size and echo cancellation, and not which device. */
export function withoutDevice(wish: Constraints): MediaTrackConstraints {
  return Object.assign({}, wish, {
    deviceId: undefined,
    groupId: undefined,
    facingMode: undefined,
  }) as MediaTrackConstraints
}

/** As the application sees it. */
export function show({ device, opening, code }: Slot): SlotState {
  if (opening) return { name: 'opening' }
  if (device) return { name: 'live', own: device.own, facingMode: device.source.getSettings?.().facingMode }
  return code ? { name: 'lost', code } : { name: 'empty' }
}
