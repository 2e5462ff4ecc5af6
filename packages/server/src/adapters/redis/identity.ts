import { randomBytes } from 'node:crypto'
import type { SessionIdentity } from '../../ports/sessions.ts'
import { participantHash, tagOfHash, tagOfSessionId } from '../../session/session-id.ts'

/** Who a session is, as the store keeps it. */
export function openArgs(identity: SessionIdentity, socket: string, at: number) {
  const { sessionId, participant, extended } = identity
  const hash = participantHash(participant)
  if (tagOfSessionId(sessionId) !== tagOfHash(hash)) throw new Error('a session id that is not its participant’s')
  const nonce = randomBytes(8).toString('base64url')
  const about = [expiryField(identity), versionField(identity)]
  return [sessionId, hash, deviceField(identity), extended ? '1' : '0', socket, nonce, at, ...about]
}

/** When its token is over; '' where it never is. */
export function expiryField({ expiresAt }: SessionIdentity): string {
  return expiresAt === undefined ? '' : String(expiresAt)
}

/** Of its client; '' where it is not known. */
export function versionField({ appVersion }: SessionIdentity): string {
  return appVersion ?? ''
}

/** A device as the store compares it: one without a name, one that is not known any more, or a name. */
export function deviceField({ deviceId }: SessionIdentity): string {
  if (deviceId === undefined) return ''
  return deviceId === null ? 'n' : `s${deviceId}`
}

/** The device that a field of the store means. */
export function deviceOf(field: string): string | null | undefined {
  if (field === '') return undefined
  return field === 'n' ? null : field.slice(1)
}

/** Names a socket in the store. */
export function newSocket(): string {
  return randomBytes(9).toString('base64url')
}
