import { isReplacedBy } from '../ports/node-name.ts'
import type { NodeDeath } from '../ports/nodes.ts'
import { forgetOldest } from '../ports/oldest.ts'
import type { Deaths } from './deaths.ts'
import { beatLimitMs, beatMs, type OtherNode } from './heartbeats.port.ts'

export interface SeenNodesOptions {
  /** Names this run of this node: no other has had the name. */
  readonly self: string
  /** The nodes that were found dead, by either store. A node that counts on lives. */
  readonly deaths: Pick<Deaths, 'said' | 'has'>
  /** Whether it is certain that a node does not say in Redis, either, that it lives [END3]. */
  readonly isGone: (node: string) => boolean
  /** Whether a node said lately in Redis that it lives. */
  readonly saysItLives: (node: string) => boolean
  /** A node is known to be dead that was not before. */
  readonly onDeath: (death: NodeDeath) => void
  /** See `DatabaseClock`. */
  readonly monotonic: () => number
}

/** A node is silent in the database if its count stands still for this time, while this node's own goes on. In ms. */
const deadMs = 5_000
const mostMissing = 1_000

/** Another node, as the heartbeats show it. */
interface Seen {
  readonly beats: number
  readonly hasLeft: boolean
  readonly ownsSessions: boolean
  readonly sockets: number | null
  /** It has counted since this node began to look, or had just before. */
  readonly wasHeard: boolean
  /** When its count was first seen at what it is, on the monotonic clock. */
  readonly since: number
  /** How long ago that was by the database's clock, when it was first seen. In ms. */
  readonly ageMs: number
}

/** A beat: when its question was sent by `timers.monotonic` and by `monotonic`, and when its answer came. */
export interface BeatTimes {
  readonly began: number
  readonly sent: number
  readonly received: number
}

/** The other nodes, by their heartbeats: which of them live, and which were found dead. */
export function createSeenNodes(options: SeenNodesOptions) {
  const { self, deaths, isGone, saysItLives, onDeath, monotonic } = options
  const seen = new Map<string, Seen>()
  const dead = new Set<string>()
  /** Since when this node's own beats have come without a gap. */
  let since = 0
  let beatAt = Number.NEGATIVE_INFINITY
  let lookedAt = Number.NEGATIVE_INFINITY
  const firstAsked = createFirstAsked()

  function learn(others: readonly OtherNode[], { began, sent, received }: BeatTimes): void {
    // A node that could not look does not know for how long the others stood still.
    if (received - beatAt > 2 * beatMs + beatLimitMs) {
      since = received
      for (const [name, each] of seen) seen.set(name, { ...each, since })
    }
    const lookMs = received - beatAt
    beatAt = received
    lookedAt = sent
    for (const other of others) learnOther(other, began, received, lookMs)
    for (const [name, each] of seen) {
      if (!dead.has(name) && (each.hasLeft || isReplaced(name) || isSilent(name, each, received))) {
        dead.add(name)
        onDeath({ node: name, hasLeft: each.hasLeft, isPast: !each.wasHeard })
      }
    }
  }

  function learnOther({ name, ...other }: OtherNode, began: number, now: number, lookMs: number): void {
    const known = seen.get(name)
    firstAsked.forget(name)
    if (known === undefined) {
      seen.set(name, { ...other, wasHeard: !other.hasLeft && other.ageMs <= deadMs, since: now })
    } else if (known.beats !== other.beats || known.hasLeft !== other.hasLeft) {
      // It counted on since the last look, also where the database's clock says that it was long before.
      const { ownsSessions } = known
      seen.set(name, { ...other, ownsSessions, wasHeard: true, since: now, ageMs: Math.min(other.ageMs, lookMs) })
      if (other.hasLeft) return
      // This count may be from before its process was found dead.
      deaths.said(name, began - other.ageMs)
      if (!isReplaced(name) && !deaths.has(name)) dead.delete(name)
    }
  }

  /** In both stores: a node that is only cut from the database serves. */
  const isSilent = (name: string, { since }: Seen, now: number) => now - since > deadMs && isGone(name)

  /** Its node runs again. */
  function isReplaced(name: string): boolean {
    return isReplacedBy(name, self) || [...seen.keys()].some((other) => isReplacedBy(name, other))
  }

  return {
    learn,
    living: () => [...seen].filter(([name, { ageMs }]) => !dead.has(name) && ageMs <= deadMs),
    isDead(node: string): boolean {
      if (node === self) return false
      const known = seen.get(node)
      // A node that stood still, and goes on, says so there before the next look shows it here.
      if (known !== undefined) return dead.has(node) && (known.hasLeft || isReplaced(node) || !saysItLives(node))
      const now = monotonic()
      const askedAt = firstAsked.at(node, now)
      // It left no trace: its call is older than a day, or the database's. The next look shows a node that has just started.
      return lookedAt > askedAt && now - since > deadMs && now - beatAt < deadMs && isGone(node)
    },
    fell(node: string): void {
      const known = seen.get(node)
      if (known === undefined || dead.has(node)) return
      dead.add(node)
      onDeath({ node, hasLeft: known.hasLeft, isPast: false })
    },
  }
}

/** When somebody first asked for names that no look has shown. */
function createFirstAsked() {
  const missing = new Map<string, number>()
  return {
    at(node: string, now: number): number {
      const askedAt = missing.get(node) ?? now
      missing.set(node, askedAt)
      forgetOldest(missing, mostMissing)
      return askedAt
    },
    forget: (node: string) => void missing.delete(node),
  }
}
