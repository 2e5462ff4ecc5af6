import { createSlot, type Device, hint, release, type Slot } from './slots.ts'
import type { CallMediaOptions, MediaEnvironment, MediaKind } from './types.ts'

export interface CaptureOptions {
  environment: MediaEnvironment
  /** From the beginning. */
  muted: Readonly<Record<MediaKind, boolean>>
  /** The source of the kind has changed: the camera, the screen, or nothing. */
  changed(kind: MediaKind, track: MediaStreamTrack | null, isScreen: boolean): Promise<void>
  /** `state()` is another one. */
  updated(): void
  failed(error: Error): void
  process: CallMediaOptions['process']
  /** The call is on hold. */
  held?(): boolean
  holdMusic?: MediaStreamTrack | undefined
}

/** Microphone, camera and screen, and which of them are muted. */
export interface Sources extends CaptureOptions {
  readonly slots: Readonly<Record<MediaKind | 'screen', Slot>>
  readonly muted: Record<MediaKind, boolean>
  closed: boolean
}

export function createSources(options: CaptureOptions): Sources {
  const slots = { audio: createSlot(), video: createSlot(), screen: createSlot() }
  return { ...options, slots, muted: { ...options.muted }, closed: false }
}

/** The newest wish of the slot; the answer says whether it still is. */
export function begin(of: Sources, slot: Slot): () => boolean {
  const turn = ++slot.turn
  slot.abandon?.()
  slot.opening = slot.abandon = undefined
  return () => slot.turn === turn && !of.closed
}

function outgoing({ slots, muted, held, holdMusic }: Sources, kind: MediaKind): MediaStreamTrack | null {
  if (held?.()) return (kind === 'audio' && holdMusic) || null
  if (kind === 'video' && slots.screen.device) return slots.screen.device.sent
  const { device } = slots[kind]
  // A microphone of ours that is muted sends silence, so that the peer's connection is seen alive.
  const isSilent = muted[kind] && (kind === 'video' || !device?.own)
  return isSilent ? null : (device?.sent ?? null)
}

/** Sends what the slots and the mutes of the kind now allow. */
export async function apply(of: Sources, kind: MediaKind): Promise<void> {
  const { device } = of.slots[kind]
  if (device?.own) device.source.enabled = device.sent.enabled = !of.muted[kind]
  await of.changed(kind, outgoing(of, kind), kind === 'video' && of.slots.screen.device !== null)
  of.updated()
}

/** The device is sent from now on, in place of the one before it; `ended` hears when it is gone by itself. */
export async function install(of: Sources, slot: Slot, device: Device, ended: () => Promise<void>): Promise<void> {
  const { source, sent, own, wish } = device
  const before = slot.device
  // The text of a screen shall stay readable when the bandwidth is small.
  if (own) hint(sent, slot === of.slots.screen ? 'detail' : 'motion')
  Object.assign(slot, { device, wish, code: undefined, opening: undefined, abandon: undefined })
  const lost = async () => {
    if (slot.device === device) await ended()
  }
  source.addEventListener('ended', () => void lost())
  await apply(of, source.kind as MediaKind)
  if (before?.source !== source) release(before)
  // No event tells of one that ended before.
  if (source.readyState === 'ended') await lost()
}
