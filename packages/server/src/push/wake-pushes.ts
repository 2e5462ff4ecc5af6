import type { RingTickets } from '../auth/ring-ticket.ts'
import { callKey, type RingingCall } from '../call/call.ts'
import type { Device } from '../ports/devices.ts'
import { type Due, isServed } from './asleep.ts'
import { headingOf } from './cancelling.ts'
import type { Ring } from './rings.ts'
import type { Sender, SentResult } from './sender.ts'
import type { Wakes } from './wakes.port.ts'

export interface WakePushesOptions {
  readonly wakes: Pick<Wakes, 'settle' | 'remove'>
  readonly sender: Pick<Sender, 'serves' | 'send'>
  readonly tickets: Pick<RingTickets, 'sign'>
}

/** Pushes a call to devices that sleep, and notes which of them need not be woken any more. */
export function createWakePushes({ wakes, sender, tickets }: WakePushesOptions) {
  async function push(call: RingingCall, device: Device, ring: Ring, signal: AbortSignal): Promise<void> {
    const { callUuid, ringExpiresAt: expiresAt } = call
    const payload = {
      ...headingOf(call, 'call.wake'),
      expires_at: new Date(expiresAt).toISOString(),
      ring_ticket: tickets.sign(call, device.participant, device.deviceId),
    }
    ring.sending.add(device)
    const result = await sender.send(device, { type: 'call.wake', callUuid, payload, expiresAt }, signal)
    if (!signal.aborted) ring.sending.delete(device)
    if (result === 'accepted') await wakes.settle(callKey(call), [device.deviceId])
    // After any other result the device may have heard of the ring, so it has to hear of its end.
    else if (hasFailed(result)) await wakes.remove(callKey(call), device.deviceId)
  }

  return async (call: RingingCall, { names, registered }: Due, ring: Ring, signal: AbortSignal): Promise<void> => {
    const due = registered.filter((device) => names.includes(device.deviceId) && isServed(device, sender))
    const unserved = names.filter((name) => !due.some(({ deviceId }) => deviceId === name))
    await Promise.all([wakes.settle(callKey(call), unserved), ...due.map((device) => push(call, device, ring, signal))])
  }
}

/** For sure: the device was sent nothing, or nothing that it shows. */
const failures: readonly SentResult[] = ['gone', 'refused', 'too_large', 'dropped']
const hasFailed = (result: SentResult) => failures.includes(result)
