import type { RingTickets } from '../auth/ring-ticket.ts'
import { deviceOfTicketSession } from '../auth/ring-ticket.ts'
import { type Call, callKey, isLive, participantOf, type RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { beginsToRing, stopsRinging } from '../call/hook.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { Sender } from '../push/sender.ts'

export interface WakingOptions {
  readonly devices: Pick<Devices, 'of'>
  readonly sessions: Pick<Sessions, 'seen'>
  readonly sender: Sender
  readonly tickets: Pick<RingTickets, 'sign'>
  readonly now: () => number
  readonly onError: (error: unknown) => void
}

export interface Waking {
  /** A version of a call that this node has committed; returns at once, whatever comes of it. */
  committed(step: Step): void
}

/**
 * Wakes the devices of a callee that have no live session when a call begins to ring, and tells them when it stops before
 * it was answered there [PUSH2]. Beside the call: nothing of it waits for a push.
 */
export function createWaking(options: WakingOptions): Waking {
  const { devices, sessions, sender, tickets, now, onError } = options
  /** Pushes of calls that ring, under way: what comes next about the call comes after them. */
  const underWay = new Map<string, { readonly giveUp: AbortController; readonly done: Promise<unknown> }>()

  async function asleep(call: Call, except?: string | null): Promise<readonly Device[]> {
    if (!sender.servesAny) return []
    const callee = participantOf(call, 'callee')
    const known = (await devices.of(callee, now())).filter(({ address }) => sender.serves(address.platform))
    if (known.length === 0) return []
    const live = new Set((await sessions.seen(callee)).map(({ deviceId }) => deviceId))
    return known.filter(({ deviceId }) => deviceId !== except && !live.has(deviceId))
  }

  async function wake(call: RingingCall, signal: AbortSignal): Promise<void> {
    const { callUuid, ringExpiresAt: expiresAt } = call
    const callee = participantOf(call, 'callee')
    const sent = (await asleep(call)).map((device) => {
      const payload = {
        ...headingOf(call, 'call.wake'),
        expires_at: new Date(expiresAt).toISOString(),
        ring_ticket: tickets.sign(call, callee, device.deviceId),
      }
      return sender.send(device, { type: 'call.wake', callUuid, payload, expiresAt }, signal)
    })
    await Promise.all(sent)
  }

  async function cancel(call: Call, except: string | null): Promise<void> {
    const { callUuid } = call
    // A device that was switched off meanwhile hears of neither: one takes the place of the other until the ring is over.
    const expiresAt = Math.max(call.ringExpiresAt, now() + leastMs)
    const payload = {
      ...headingOf(call, 'call.wake_cancelled'),
      status: call.status,
      end_reason: isLive(call) ? null : call.endReason,
    }
    const told = (await asleep(call, except)).filter(({ address }) => address.platform !== 'apns')
    await Promise.all(
      told.map((device) => sender.send(device, { type: 'call.wake_cancelled', callUuid, payload, expiresAt })),
    )
  }

  return {
    committed(step) {
      const { call, event } = step
      const key = callKey(call)
      if (call.status === 'ringing' && beginsToRing(step)) {
        const giveUp = new AbortController()
        const done = wake(call, giveUp.signal).catch(onError)
        underWay.set(key, { giveUp, done })
        void done.then(() => underWay.delete(key))
      } else if (stopsRinging(step)) {
        const before = underWay.get(key)
        before?.giveUp.abort()
        const except = event.type === 'accepted' ? deviceThatHasIt(call) : deviceOfTicketSession(event.by?.sessionId)
        void Promise.resolve(before?.done)
          .then(() => cancel(call, except))
          .catch(onError)
      }
    },
  }
}

/** What comes after the ring is worth telling for a moment: missed calls are told when the ring is over. In ms. */
const leastMs = 30_000

function deviceThatHasIt(call: Call): string | null {
  return call.status === 'ringing' ? null : (call.calleePlace?.deviceId ?? null)
}

function headingOf({ callUuid, callType, caller }: Call, type: string) {
  const { userId, role, displayName } = caller
  return {
    type,
    call_uuid: callUuid,
    call_type: callType,
    caller: { user_id: userId, role, display_name: displayName ?? '' },
  }
}
