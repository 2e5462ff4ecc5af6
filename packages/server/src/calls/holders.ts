import { type CallRef, callKey, type Place } from '../call/call.ts'
import type { Nodes } from '../ports/nodes.ts'
import type { Sessions } from '../ports/sessions.ts'

/** Another node looks after a deadline this long after the node that has its timer, in ms [RING1]. */
export const patienceMs = 200
/** Others do the share of a node that has not done it by then, in ms. */
export const stepInMs = 4_000

/** Whether another node holds the socket, or may. */
export function isHeldElsewhere({ state, node }: Place, nodes: Pick<Nodes, 'self' | 'isDead'>): boolean {
  return state === 'held' && node !== nodes.self && !nodes.isDead(node)
}

/**
 * Whether it is known for sure that nobody is where a place says: its node holds no socket of the session, or is dead.
 * That a record is missing proves nothing [END3].
 */
export function isUnheld(
  { node, sessionId }: Place,
  nodes: Pick<Nodes, 'self' | 'isDead'>,
  sessions: Pick<Sessions, 'heldHere'>,
): boolean {
  return node === nodes.self ? sessions.heldHere(sessionId) === undefined : nodes.isDead(node)
}

/** Whether a call is this node's to look after where each living node takes its share: of what a dead one left. */
export function isShareOf(ref: CallRef, { self, others }: Pick<Nodes, 'self' | 'others'>): boolean {
  const living = [self, ...others()].sort()
  return living[Bun.hash.crc32(callKey(ref)) % living.length] === self
}
