import { participantHash } from '../ports/session-id.ts'
import type { SessionIdentity } from '../ports/sessions.ts'
import { hasLast, isUnsure, lostOf, type Session } from '../session/session.ts'
import type { Row, RowFields } from './directory.port.ts'

/** What the directory says of a session. */
export function rowFields(session: Session): RowFields {
  const { identity, openedAt, socket, turn } = session
  const { extended, expiresAt = Number.POSITIVE_INFINITY, appVersion = '', isNotOf = '', can = [] } = identity
  return {
    ...{ expiresAt, appVersion: appVersion ?? '', turn, isNotOf, extended, openedAt },
    hasSocket: socket.is === 'open',
    hasLast: hasLast(session),
    isUnsure: isUnsure(socket),
    awaitedMs: lostOf(session)?.awaitedMs,
    can: can.join(','),
    device: deviceField(identity),
    hash: hashOf(session),
  }
}

/** Names the participant of a session in the directory. */
export function hashOf(session: Session): string {
  session.participantHash ??= participantHash(session.identity.participant)
  return session.participantHash
}

/** Names what its owner had come to when a session was seen: how often it changed its owner, and whose socket it has. */
export function stampOf({ fence, turn }: Pick<Row, 'turn'> & { readonly fence: string | number }): string {
  return `${fence}.${turn}`
}

/** A device as it is compared: one without a name, one that is not known any more, or a name. */
export function deviceField({ deviceId }: Pick<SessionIdentity, 'deviceId'>): string {
  if (deviceId === undefined) return ''
  return deviceId === null ? 'n' : `s${deviceId}`
}

/** The device that a field means. */
export function deviceOf(field: string): string | null | undefined {
  if (field === '') return undefined
  return field === 'n' ? null : field.slice(1)
}
