/**
 * Ring tickets [TICK1]: what a phone gets in a push, so that it can see, reject and show one call before it has a
 * session. A JWT of purpose `ring`, for one call and one participant, at most as long as the ring.
 *
 *   const tickets = createRingTickets({ secrets, now })
 *   tickets.sign(call, participantOf(call, 'callee'), 'phone') → token
 *   tickets.verify(token)                                      → { participant, callUuid, deviceId, … } | undefined
 *
 * Its audience is its own: no session token is a ring ticket, and no ring ticket a session token.
 */
import type { CallRef, Participant } from '../call/call.ts'
import type { TokenKey } from '../config/signing-key.ts'
import { createKeyRing } from './key-ring.ts'
import { tokenIssuer } from './tokens.ts'

const ticketAudience = 'ringwire-ring'
const ticketPurpose = 'ring'

export interface RingTicket {
  readonly participant: Participant
  readonly callUuid: string
  /** The device that it was sent to; null: no one in particular. */
  readonly deviceId: string | null
  /** In ms since the epoch, a whole second. */
  readonly issuedAt: number
  /** It opens nothing any more: the service only answers what became of its call. */
  readonly isOver: boolean
}

/** A phone may be late: for this time after the end of a call the service still answers what became of it. In ms. */
const rememberedMs = 86_400_000

export interface RingTickets {
  sign(call: CallRef & { readonly ringExpiresAt: number }, participant: Participant, deviceId?: string | null): string
  /** Undefined: it is not authentic, of another purpose, or over for more than a day. */
  verify(token: string): RingTicket | undefined
}

export interface RingTicketsOptions {
  readonly secrets: readonly { readonly kid: string; readonly key: TokenKey }[]
  readonly now: () => number
}

export function createRingTickets({ secrets, now }: RingTicketsOptions): RingTickets {
  const ring = createKeyRing(secrets)
  return {
    sign({ callUuid, ringExpiresAt }, { product, role, userId }, deviceId = null) {
      return ring.sign({
        iss: tokenIssuer,
        aud: ticketAudience,
        purpose: ticketPurpose,
        sub: userId,
        product,
        role,
        call_uuid: callUuid,
        ...(deviceId === null ? {} : { device_id: deviceId }),
        iat: Math.floor(now() / 1000),
        // Whole seconds, as phones read them: it ends in the last second of the ring.
        exp: Math.floor(ringExpiresAt / 1000),
      })
    },
    verify: (token) => readTicket(ring.read(token), now()),
  }
}

function readTicket(payload: unknown, now: number): RingTicket | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined
  const {
    iss,
    aud,
    purpose,
    iat,
    exp,
    sub,
    product,
    role,
    call_uuid,
    device_id = null,
  } = payload as Record<string, unknown>
  if (iss !== tokenIssuer || aud !== ticketAudience || purpose !== ticketPurpose) return undefined
  if (typeof iat !== 'number' || typeof exp !== 'number' || !(exp * 1000 + rememberedMs > now)) return undefined
  if (typeof sub !== 'string' || typeof product !== 'string' || typeof role !== 'string') return undefined
  if (typeof call_uuid !== 'string' || (device_id !== null && typeof device_id !== 'string')) return undefined
  return {
    participant: { product, role, userId: sub },
    callUuid: call_uuid,
    deviceId: device_id,
    issuedAt: iat * 1000,
    isOver: exp * 1000 <= now,
  }
}

/** Stands for a session if a ticket was used. Session ids have no colon. */
export function ticketSession(deviceId: string | null): string {
  return `${ticketSessionPrefix}${deviceId ?? ''}`
}

/** The device whose ticket stood for a session; null if it was not a ticket's session, or a ticket without a device. */
export function deviceOfTicketSession(sessionId: string | undefined): string | null {
  return sessionId?.startsWith(ticketSessionPrefix) ? sessionId.slice(ticketSessionPrefix.length) || null : null
}

const ticketSessionPrefix = 'ticket:'
