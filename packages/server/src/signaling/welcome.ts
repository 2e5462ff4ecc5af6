import type { AuthOk, ExtendedAuthOk } from '@ringwire/protocol/events/auth'
import type { SessionClaims } from '../auth/tokens.ts'
import type { Arrival } from '../calls/arrivals.ts'
import type { SignalingSession } from './dispatch.ts'
import type { ExtendedRequest } from './extended-query.ts'

/** The session of a token, and the first messages that it gets. */
export function sessionOf(
  claims: SessionClaims,
  sessionId: string,
  node: string,
  extended: Pick<ExtendedRequest, 'can'> | undefined,
): SignalingSession {
  const { participant } = claims
  return {
    participant,
    sessionId,
    deviceId: claims.deviceId,
    appVersion: claims.appVersion,
    displayName: claims.displayName,
    node,
    allowedActions: claims.allowedActions,
    allowedPeerRoles: claims.allowedPeerRoles,
    contextType: claims.contextType,
    contextId: claims.contextId,
    issuedAt: claims.issuedAt,
    key: claims.key,
    expiresAt: claims.expiresAt,
    extended: extended !== undefined,
    ...(extended?.can !== undefined && { can: extended.can }),
  }
}

/** The same session with a new token of its participant [WS5]. */
export function renewedBy(claims: SessionClaims, session: SignalingSession): SignalingSession {
  const { displayName, issuedAt, key, expiresAt, allowedActions, allowedPeerRoles, contextType, contextId } = claims
  const renewed = { displayName, issuedAt, key, expiresAt, allowedActions, allowedPeerRoles, contextType, contextId }
  return { ...session, ...renewed }
}

export function extendedAuthOk(
  session: SignalingSession,
  arrival: Arrival,
  resumeWindowMs: number,
  now: number,
): string {
  const data: ExtendedAuthOk = {
    user_id: session.participant.userId,
    role: session.participant.role,
    display_name: session.displayName,
    socket_id: session.sessionId,
    session_id: arrival.sessionId,
    epoch: arrival.epoch,
    resume_window_ms: resumeWindowMs,
    server_time: new Date(now).toISOString(),
    recovered: arrival.recovered,
    handled: arrival.upstream.handled,
    active_calls: [...arrival.activeCalls],
  }
  return JSON.stringify({ event: 'auth.ok', success: true, data })
}

/** A base session is its socket: one id serves for both [ID2, WS3]. */
export function authOk(session: SignalingSession): string {
  const data: AuthOk = {
    user_id: session.participant.userId,
    role: session.participant.role,
    display_name: session.displayName,
    socket_id: session.sessionId,
  }
  return JSON.stringify({ event: 'auth.ok', success: true, data })
}
