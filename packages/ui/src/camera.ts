import type { CallMediaState } from '@ringwire/client/media'
import type { Call } from '@ringwire/client/types'

type Part = Pick<CallMediaState, 'muted' | 'slots'>

/** Whether the camera is on, or about to be. One that was lost is not: nothing is sent of it. */
export function isCameraOn({ muted, slots }: Part): boolean {
  return !muted.video && (slots.video.name === 'live' || slots.video.name === 'opening')
}

/** An audio call to which nobody here has added a picture. */
export function hasNoPictureYet({ callType }: Call, { muted, slots }: Part): boolean {
  return callType !== 'video' && !muted.video && slots.video.name === 'empty'
}
