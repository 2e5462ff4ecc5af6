import { randomBytes } from 'node:crypto'
import { sessionIdPattern } from '@ringwire/protocol/events/auth'
import { type Participant, participantKey } from '../call/call.ts'

/**
 * A session id is 128 random bits [ID2] behind 18 bits of a hash of its participant: sessions of one participant are
 * found in one place wherever sessions are spread. So few bits say nothing of who it is.
 */
const tagLength = 3
const pattern = new RegExp(sessionIdPattern)

export function participantHash(participant: Participant): string {
  return Bun.SHA256.hash(participantKey(participant), 'base64url')
}

export function newSessionId(participant: Participant): string {
  // As random as randomBytes, and eight times as quick.
  const random = crypto.getRandomValues(Buffer.allocUnsafe(16))
  return participantHash(participant).slice(0, tagLength) + random.toString('base64url')
}

/** Names the log of a session: no other has had the name [RES2]. */
export function newEpoch(): string {
  return randomBytes(8).toString('base64url')
}

/** Undefined if the text is not a session id: clients name them, too. */
export function tagOfSessionId(sessionId: string): string | undefined {
  return pattern.test(sessionId) ? sessionId.slice(0, tagLength) : undefined
}

export function tagOfHash(hash: string): string {
  return hash.slice(0, tagLength)
}

/** Tells at once which sessions may be of participants with these hashes: hardly any other has the tag of one. */
export function mayBeOf(hashes: readonly string[]): (sessionId: string) => boolean {
  const tags = new Set(hashes.map(tagOfHash))
  return (sessionId) => tags.has(sessionId.slice(0, tagLength))
}
