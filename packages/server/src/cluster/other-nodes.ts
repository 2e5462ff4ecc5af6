import type { Timers } from '../ports/clock.ts'
import { type Completeness, createCompleteness } from './completeness.ts'
import type { Deaths } from './deaths.ts'
import type { Directory } from './directory.port.ts'
import { type BelievedDirectory, createBelievedDirectory } from './directory.ts'
import { createLiving, type Living } from './living.ts'
import type { OwnSessions } from './own-sessions.ts'
import type { Post } from './post.port.ts'

export interface OtherNodesOptions {
  readonly directory: Directory
  readonly post: Pick<Post, 'beat'>
  readonly node: string
  readonly deaths: Deaths
  readonly own: Pick<OwnSessions, 'doubt' | 'writeAgain' | 'lost'>
  readonly isDead: ((node: string) => boolean) | undefined
  readonly owners: (() => readonly string[]) | undefined
  readonly onSilent: (node: string) => void
  /** A node has to look whether the store was emptied. */
  readonly onMissing: (node: string) => void
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

/** What this node knows of the other nodes: which of them live, and what they have written into the directory. */
export interface OtherNodes {
  readonly living: Living
  readonly completeness: Completeness
  readonly directory: BelievedDirectory
  /** Known for sure not to serve any more, as far as was seen at the last look. */
  isDead(node: string): boolean
  /** The same after another look: a node that stood still goes on in a moment, and owns what comes to it from then on. */
  isStillDead(node: string): Promise<boolean>
  /** Looks at once who lives, and whether the store still has what this node wrote. */
  look(): Promise<void>
}

export function createOtherNodes(options: OtherNodesOptions): OtherNodes {
  const { post, node, deaths, own, onSilent, onMissing, onError, timers } = options
  const living = createLiving({ post, node, deaths, onSilent, onDoubted: own.doubt, onError, timers })
  const completeness = createCompleteness({
    ...{ directory: options.directory, node, onError, timers },
    others: () => [...living.known(), ...(options.owners?.() ?? [])],
    // If nobody can look, the last look counts.
    isDead: (other) => isStillDead(other).catch(() => isDead(other)),
    onForgotten: own.writeAgain,
    onGivenUp: own.lost.giveUp,
    onMissing: () => {
      for (const other of living.known()) if (other !== node) onMissing(other)
    },
  })
  const directory = createBelievedDirectory(options.directory, completeness, timers)

  function isDead(other: string): boolean {
    if (living.isReplaced(other)) return true
    return !living.saysItLives(other) && (options.isDead?.(other) ?? living.isGone(other))
  }

  async function isStillDead(other: string): Promise<boolean> {
    return isDead(other) && living.look().then(() => isDead(other))
  }

  async function look(): Promise<void> {
    await living.beat()
    await completeness.look()
  }

  return { living, completeness, directory, isDead, isStillDead, look }
}
