/**
 * The rest of `call.wake`: what may not lie in a database, and what is known only when it is sent [HOOK2].
 *
 *   const wakeHook = createWakeHook({ devices, sessions, sender, tickets, now })
 *   await wakeHook(product, body) → { body, ticket }
 *
 * An attempt that is made again says what is so by then.
 */
import type { WakeDevice } from '@ringwire/protocol/webhook-events'
import type { RingTickets } from '../auth/ring-ticket.ts'
import type { Participant } from '../call/call.ts'
import type { Devices } from '../ports/devices.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { Sender } from '../push/sender.ts'

export interface WakeHookOptions {
  readonly devices: Pick<Devices, 'of'>
  readonly sessions: Pick<Sessions, 'seen'>
  readonly sender: Pick<Sender, 'serves'>
  readonly tickets: Pick<RingTickets, 'sign'>
  readonly now: () => number
}

/** Completes the body that was stored; rejects where a store is away. */
export type WakeHook = (product: string, body: string) => Promise<{ readonly body: string; readonly ticket: string }>

interface StoredWake {
  readonly data: {
    readonly call_uuid: string
    readonly callee: { readonly user_id: string; readonly role: string }
    /** Of a call to a group: the member who is woken. */
    readonly member?: { readonly user_id: string; readonly role: string }
    readonly expires_at: string
    /** Those that fell asleep since the call rings; else all that there are by now. */
    readonly devices?: readonly WakeDevice[]
  }
}

/** When the ring of a stored `call.wake` is over, in ms since the epoch: who wakes anybody then wakes them for nothing. */
export function ringEndOf(stored: string): number {
  return Date.parse((JSON.parse(stored) as StoredWake).data.expires_at)
}

export function createWakeHook({ devices, sessions, sender, tickets, now }: WakeHookOptions): WakeHook {
  async function devicesOf(callee: Participant): Promise<WakeDevice[]> {
    const [known, seen] = await Promise.all([devices.of(callee, now()), sessions.seen(callee)])
    const connected = new Set(seen.map(({ deviceId }) => deviceId ?? null))
    const registered = known.map(({ deviceId, address: { platform } }) => {
      const reached = connected.delete(deviceId)
      return { device_id: deviceId, platform, reached, pushed: !reached && sender.serves(platform) }
    })
    const others = Array.from(connected, (deviceId) => ({
      device_id: deviceId,
      platform: null,
      reached: true,
      pushed: false,
    }))
    return [...registered, ...others]
  }

  return async (product, stored) => {
    const event = JSON.parse(stored) as StoredWake
    const { call_uuid: callUuid, callee, member = callee, expires_at: expiresAt } = event.data
    const participant = { product, role: member.role, userId: member.user_id }
    const ticket = tickets.sign({ product, callUuid, ringExpiresAt: Date.parse(expiresAt) }, participant)
    const data = { ...event.data, ring_ticket: ticket, devices: event.data.devices ?? (await devicesOf(participant)) }
    return { body: JSON.stringify({ ...event, data }), ticket }
  }
}
