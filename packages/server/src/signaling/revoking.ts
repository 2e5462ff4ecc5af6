import type { CloseCode } from '@ringwire/protocol/close-codes'
import { mayBeOf } from '../ports/session-id.ts'
import type { SignalingSession } from './dispatch.ts'

interface Revocable {
  readonly session: SignalingSession
  close(code: CloseCode, reason: string): void
}

/**
 * Closes the sockets of sessions whose token was taken back [SRV2], or whose product key is disabled [KEY1]. A backend may send
 * many participants away, and each time all sockets of the process are looked at. So one that cannot be of `participants`,
 * which are given by their hashes, costs no hash of its own.
 */
export function closeRevoked(
  connections: Iterable<Revocable>,
  isRevoked: (session: SignalingSession) => boolean,
  participants?: readonly string[],
): void {
  const mayBe = participants === undefined ? undefined : mayBeOf(participants)
  for (const connection of connections) {
    const { session } = connection
    if (mayBe !== undefined && !mayBe(session.sessionId)) continue
    if (isRevoked(session)) connection.close(4403, 'disconnected')
  }
}
