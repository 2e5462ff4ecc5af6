import { type Call, callKey, isLive, type Participant, participantOf } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { SeenSession, Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { AtLast } from './at-last.ts'
import type { Sender } from './sender.ts'
import type { Wakes } from './wakes.port.ts'

export interface CancellingOptions {
  readonly devices: Pick<Devices, 'of'>
  readonly sessions: Pick<Sessions, 'seen'>
  readonly wakes: Pick<Wakes, 'of'>
  readonly sender: Sender
  readonly now: () => number
  readonly atLast: AtLast
  /** The service stops. */
  readonly signal: AbortSignal
}

/** Tells devices that were woken that the ring is over [PUSH2]. */
export interface Cancelling {
  cancel(call: Call, isTold: (device: Device) => boolean): Promise<void>
  /**
   * Tells all devices that were woken, but for the one that answered or rejected: `decided`, or null if there is none;
   * undefined: to be looked up.
   */
  cancelAll(step: Step, decided: string | null | undefined): Promise<void>
}

/** What comes after the ring is worth telling for a moment: missed calls are told when the ring is over. In ms. */
const leastMs = 30_000

export function createCancelling(options: CancellingOptions): Cancelling {
  const { devices, sessions, wakes, sender, now, atLast, signal } = options

  async function cancel(call: Call, isTold: (device: Device) => boolean): Promise<void> {
    const { callUuid } = call
    // A device that was switched off meanwhile hears of neither: one takes the place of the other until the ring is over.
    const expiresAt = Math.max(call.ringExpiresAt, now() + leastMs)
    const payload = {
      ...headingOf(call, 'call.wake_cancelled'),
      status: call.status,
      end_reason: isLive(call) ? null : call.endReason,
    }
    const registered = await atLast(async () => devices.of(participantOf(call, 'callee'), now()), expiresAt, signal)
    // A VoIP push has to ring, whatever it says.
    const told = registered.filter(
      (device) => sender.serves(device.address.platform) && isTold(device) && !isVoip(device),
    )
    await Promise.all(
      told.map((device) => sender.send(device, { type: 'call.wake_cancelled', callUuid, payload, expiresAt })),
    )
  }

  async function cancelAll({ call, event }: Step, decided: string | null | undefined): Promise<void> {
    if (!sender.servesAny) return
    const woken = await wakes.of(callKey(call))
    if (woken?.length === 0) return
    const seen = woken !== undefined && decided !== undefined ? [] : await seenOrNone(participantOf(call, 'callee'))
    const author = seen.find(({ sessionId }) => event.type === 'rejected' && sessionId === event.by?.sessionId)
    const except = decided ?? author?.deviceId
    // No process is known that saw the ring begin: a device without a session counts as woken.
    const awake = new Set(seen.map(({ deviceId }) => deviceId))
    const isWoken = ({ deviceId }: Device) => woken?.includes(deviceId) ?? !awake.has(deviceId)
    await cancel(call, (device) => device.deviceId !== except && isWoken(device))
  }

  /** While the store is away nobody is: the cancellations do not wait for it, and one too many does no harm. */
  async function seenOrNone(callee: Participant): Promise<readonly SeenSession[]> {
    try {
      return await sessions.seen(callee)
    } catch (error) {
      if (error instanceof StoreError) return []
      throw error
    }
  }

  return { cancel, cancelAll }
}

const isVoip = ({ address }: Device) => address.platform === 'apns' && address.voip

/** What both pushes of a call begin with. */
export function headingOf({ callUuid, callType, caller }: Call, type: string) {
  const { userId, role, displayName } = caller
  return {
    type,
    call_uuid: callUuid,
    call_type: callType,
    caller: { user_id: userId, role, display_name: displayName ?? '' },
  }
}
