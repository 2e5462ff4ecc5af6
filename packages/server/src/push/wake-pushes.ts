import type { RingTickets } from '../auth/ring-ticket.ts'
import { type Call, type CallRef, callKey, type RingingCall, ringsAt } from '../call/call.ts'
import { ringsUntil } from '../call/effects.ts'
import type { Device } from '../ports/devices.ts'
import { isServed, type Sleeper } from './asleep.ts'
import { headingOf } from './cancelling.ts'
import { memberOf, type Ring } from './rings.ts'
import type { Sender, SentResult } from './sender.ts'
import { wakeName } from './wake-names.ts'
import type { Wakes } from './wakes.port.ts'

export interface WakePushesOptions {
  readonly wakes: Pick<Wakes, 'settle' | 'remove'>
  readonly sender: Pick<Sender, 'serves' | 'send'>
  readonly tickets: Pick<RingTickets, 'sign'>
  /** The call as this node has heard of it last. */
  readonly known: (ref: CallRef) => Call | undefined
}

/** Pushes a call to devices that sleep, and notes which of them need not be woken any more. */
export function createWakePushes({ wakes, sender, tickets, known }: WakePushesOptions) {
  async function push(call: RingingCall, device: Device, ring: Ring, signal: AbortSignal): Promise<void> {
    const { callUuid } = call
    const expiresAt = ringsUntil(call)
    const payload = {
      ...headingOf(call, 'call.wake'),
      expires_at: new Date(expiresAt).toISOString(),
      ring_ticket: tickets.sign(call, device.participant, device.deviceId),
    }
    const name = wakeName(call, device.participant, device.deviceId)
    ring.sending.add(device)
    const result = await sender.send(device, { type: 'call.wake', callUuid, payload, expiresAt }, signal)
    if (!signal.aborted) ring.sending.delete(device)
    if (result === 'accepted') await wakes.settle(callKey(call), [name])
    // After any other result the device may have heard of the ring, so it has to hear of its end.
    else if (hasFailed(result)) await wakes.remove(callKey(call), name)
  }

  /** A member may have declined while its device was looked for, and may decline while it is pushed to. */
  async function pushToMember(call: RingingCall, device: Device, ring: Ring, signal: AbortSignal): Promise<void> {
    if (!ringsAt(known(call) ?? call, device.participant)) return
    const { giveUp, pushes } = memberOf(ring, device.participant.userId)
    const done = push(call, device, ring, AbortSignal.any([signal, giveUp.signal]))
    pushes.add(done)
    await done.finally(() => pushes.delete(done))
  }

  return async (call: RingingCall, due: readonly Sleeper[], ring: Ring, signal: AbortSignal): Promise<void> => {
    const served = due.flatMap(({ device }) => (device !== undefined && isServed(device, sender) ? [device] : []))
    const unserved = due.filter(({ device }) => device === undefined || !isServed(device, sender))
    const send = call.group === undefined ? push : pushToMember
    await Promise.all([
      wakes.settle(
        callKey(call),
        unserved.map(({ name }) => name),
      ),
      ...served.map((device) => send(call, device, ring, signal)),
    ])
  }
}

/** For sure: the device was sent nothing, or nothing that it shows. */
const failures: readonly SentResult[] = ['gone', 'refused', 'too_large', 'dropped']
const hasFailed = (result: SentResult) => failures.includes(result)
