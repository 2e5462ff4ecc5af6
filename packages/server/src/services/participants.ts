/**
 * A participant as the backend of its product sees it, and sends it away [SRV2].
 *
 *   const participants = createParticipants({ sessions, devices, seenCalls, revoked, now, appVersionOf })
 *   participants.show(participant)                  → { online, sessions, devices, live_calls }
 *   participants.disconnect(participant, until?)    → the instant before which its tokens do not count
 */
import type { CallView, ParticipantView } from '@ringwire/protocol/backend'
import type { Participant } from '../call/call.ts'
import type { Devices } from '../ports/devices.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { Revoked } from './revoked.ts'
import type { SeenCalls } from './seen-calls.ts'

export interface ParticipantsOptions {
  readonly sessions: Pick<Sessions, 'seen'>
  readonly devices: Pick<Devices, 'of' | 'forgetAll'>
  readonly seenCalls: Pick<SeenCalls, 'page'>
  readonly revoked: Pick<Revoked, 'revoke'>
  readonly now: () => number
  /** Of a session whose socket this process holds; null where nobody knows. */
  readonly appVersionOf: (sessionId: string) => string | null
}

export interface Participants {
  show(participant: Participant): Promise<Omit<ParticipantView, 'success'>>
  /** `until`: tokens that are issued before it do not count either; in ms since the epoch. */
  disconnect(participant: Participant, until?: number): Promise<number>
}

export function createParticipants(options: ParticipantsOptions): Participants {
  const { sessions, devices, seenCalls, revoked, now, appVersionOf } = options

  async function liveCallsOf({ product, role, userId }: Participant): Promise<CallView[]> {
    const page = await seenCalls.page(product, { status: 'live', role, userId, limit: '100' })
    return page.ok ? [...page.data] : []
  }

  return {
    async show(participant) {
      const [seen, known, live_calls] = await Promise.all([
        sessions.seen(participant),
        devices.of(participant, now()),
        liveCallsOf(participant),
      ])
      return {
        online: seen.length > 0,
        sessions: seen.map(({ sessionId, deviceId, extended, openedAt }) => ({
          session_id: sessionId,
          device_id: deviceId ?? null,
          connected_at: new Date(openedAt).toISOString(),
          extended,
          app_version: appVersionOf(sessionId),
        })),
        devices: known.map(({ deviceId, address, registeredAt }) => ({
          device_id: deviceId,
          platform: address.platform,
          registered_at: new Date(registeredAt).toISOString(),
        })),
        live_calls,
      }
    },
    async disconnect(participant, until = 0) {
      const before = Math.max(now(), until)
      await revoked.revoke(participant, before)
      // Whoever may not come back is not woken either; who may registers again [PUSH1].
      await devices.forgetAll(participant)
      return before
    },
  }
}
