import { isReplacedBy } from '../ports/node-name.ts'
import type { Deaths } from './deaths.ts'
import type { Signs } from './post.port.ts'

/** In ms. */
export const beatMs = 1_000
export const deadMs = 5_000
/** A node that could not look for this time does not know who is gone. In ms. */
export const blindMs = 3_000
/** The probe of a holder takes up to 3 s [PLACE4]. */
const silentMs = 3_000

/** A node that lived a moment ago. */
interface Other {
  /** When it was last known to live. A node that could not look begins to count then. */
  knownAt: number
  /** When it said so last. */
  readonly saidAt: number
  /** Whether the store knew at the last look that it had said so in the 5 s before. */
  isListed: boolean
  /** It was reported as silent. */
  isSilent: boolean
}

/** What this node has heard in the store of the nodes that live. All times are on the monotonic clock. */
export interface Heard {
  readonly self: string
  readonly deaths: Deaths
  /** By their names; this one is among them. */
  readonly nodes: Map<string, Other>
  /** When this node began to listen, and last could. */
  listensSince: number
  beatAt: number
  /** Until when this node, which ran already, could not look. */
  blindUntil: number
  /** When the list was found without this node. */
  emptiedAt: number
}

/** A beat was sent at `sentAt`, and answered just now. */
export function hear(heard: Heard, { at, listed }: Signs, sentAt: number, now: number): void {
  const { deaths, nodes } = heard
  // While the store was away no node could say that it lives; a list that was emptied is no proof of absence either.
  if (now - heard.beatAt > 2 * beatMs) {
    heard.listensSince = now
    if (heard.beatAt !== 0) heard.blindUntil = now
    for (const each of nodes.values()) each.knownAt = now
  }
  heard.beatAt = now
  for (const each of nodes.values()) each.isListed = false
  for (const [other, saidAt] of listed) {
    // It said so no earlier than this, however long the answer was under way.
    deaths.said(other, sentAt - (at - saidAt))
    const isSilent = nodes.get(other)?.isSilent ?? false
    nodes.set(other, { knownAt: now, saidAt: now - (at - saidAt), isListed: true, isSilent })
  }
}

/** Forgets the nodes that are not known to live any more. Answers those that were not reported as silent yet. */
export function forgetDead({ nodes }: Heard, now: number): string[] {
  const gone = [...nodes].filter(([, { knownAt }]) => now - knownAt > deadMs)
  for (const [other] of gone) nodes.delete(other)
  return gone.flatMap(([other, { isSilent }]) => (isSilent ? [] : [other]))
}

/** Marks the nodes that are silent now. Answers those that were not before. */
export function markSilent(heard: Heard, now: number): string[] {
  const marked: string[] = []
  for (const [other, each] of heard.nodes) {
    const wasSilent = each.isSilent
    each.isSilent = other !== heard.self && isSilent(heard, other, now)
    if (each.isSilent && !wasSilent) marked.push(other)
  }
  return marked
}

export function saysItLives({ nodes, deaths }: Heard, other: string): boolean {
  return (nodes.get(other)?.isListed ?? false) && !deaths.has(other)
}

/** An earlier run of this node, or of one that has started again. */
export function isReplaced({ self, nodes }: Heard, other: string): boolean {
  if (isReplacedBy(other, self)) return true
  for (const [each, { isListed }] of nodes) if (isListed && isReplacedBy(other, each)) return true
  return false
}

/** A later run of a node under the id of this one. */
export function successorOf(heard: Heard): string | undefined {
  return [...heard.nodes.keys()].find((each) => saysItLives(heard, each) && isReplacedBy(heard.self, each))
}

export function isAlive(heard: Heard, other: string, now: number): boolean {
  if (isReplaced(heard, other) || heard.deaths.has(other)) return false
  return heard.nodes.has(other) || now - heard.listensSince < deadMs
}

export function isGone(heard: Heard, other: string, now: number): boolean {
  if (heard.deaths.has(other)) return true
  const { beatAt, listensSince, emptiedAt } = heard
  // All had the time to say it since the list was emptied, or this node could not look.
  return !saysItLives(heard, other) && now - beatAt < blindMs && now - Math.max(listensSince, emptiedAt) > deadMs
}

export function isSilent(heard: Heard, other: string, now: number): boolean {
  if (!isAlive(heard, other, now)) return true
  // This process stood still, or could not look: others may have said so. Those that stood still as well get a moment.
  if (now - heard.beatAt > 2 * beatMs) return false
  // An emptied list is not a silence.
  const saidAt = heard.nodes.get(other)?.saidAt
  return saidAt === undefined || now - Math.max(saidAt, heard.blindUntil) > silentMs
}
