import type { Cancel, Timers } from '../ports/clock.ts'
import type { Deaths } from './deaths.ts'
import {
  beatMs,
  blindMs,
  deadMs,
  forgetDead,
  type Heard,
  hear,
  isAlive,
  isGone,
  isReplaced,
  isSilent,
  markSilent,
  saysItLives,
  successorOf,
} from './heard-nodes.ts'
import type { Post } from './post.port.ts'

export interface LivingOptions {
  readonly post: Pick<Post, 'beat'>
  readonly node: string
  readonly deaths: Deaths
  /** A node has not said for a while that it lives, so nobody waits for its answers. */
  readonly onSilent: (node: string) => void
  /** Others may take this node for dead; called again and again while that is so, and once after that. */
  readonly onDoubted: () => void
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

/** Which nodes say in the store that they live. */
export interface Living {
  start(): Promise<void>
  isAlive(node: string): boolean
  /** Whether this run of a node is over, because the node runs again. */
  isReplaced(node: string): boolean
  /** Whether it is certain that a node does not say that it lives, though it could: the store has lost nothing. */
  isGone(node: string): boolean
  /** The same as `isAlive`, after another look where it is not known to live: it may have started a moment ago. */
  isThere(node: string): Promise<boolean>
  /** Whether the last look found that a node said it in the 5 s before: whatever it seemed to be, it lives. */
  saysItLives(node: string): boolean
  /** Looks for the nodes that live. The look begins after this call. */
  look(): Promise<void>
  /** Resolves when the others can know that this node lives, though they took it for dead while it stood still. */
  isSaid(): Promise<void>
  /** Whether a node has not said so for a while. If it does not answer either, it is gone [PLACE4]. */
  isSilent(node: string): boolean
  /** The same after another look: a node that stood still may have gone on since, and one may have just started. */
  staysSilent(node: string): Promise<boolean>
  /** Resolves when a node is silent, or when it does not matter any more. */
  falls(node: string, over: AbortSignal): Promise<void>
  /** The process of a node was found dead: the node is dead at once, until it says later that it lives. */
  fell(node: string): void
  /** Others may take this node for dead, until `isOver`: it says that it lives before it takes anything. */
  doubt(isOver: boolean): void
  /** The nodes that said so lately. */
  known(): Iterable<string>
  /** How long ago the store last answered, in ms. */
  awayMs(): number
  /** Says that this node lives, and looks for the others. */
  beat(): Promise<void>
  stop(): void
}

/** How often silent nodes are looked for, in ms. */
const lookMs = 100
/** How long a store that was away is left alone before this node tells it again that it lives, in ms. */
const againMs = 100

export function createLiving({ post, node, deaths, onSilent, onDoubted, onError, timers }: LivingOptions): Living {
  const heard = createHeard(node, deaths)
  const falls = createFalls(timers)
  const look = shareNext(beat)
  const warnIfReplaced = createReplacedWarning(heard, onError)
  const now = timers.monotonic
  /** When the last beat that was answered was sent. */
  let saidAt = Number.NEGATIVE_INFINITY
  let cancels: readonly Cancel[] = []
  let isStopped = false
  /** This node has lost one of its signs. */
  let isDoubtful = false

  async function beat(): Promise<void> {
    if (isStopped) return
    const sentAt = now()
    const signs = await post.beat(deadMs)
    // Somebody emptied the store, or it forgot this node while it could not beat.
    if (signs.isNew && heard.beatAt !== 0) {
      heard.emptiedAt = now()
      onDoubted()
    }
    hear(heard, signs, sentAt, now())
    saidAt = Math.max(saidAt, sentAt)
    warnIfReplaced()
    forgetDead(heard, heard.beatAt).forEach(onSilent)
  }

  /** No call rings at the clients of a node that does not say that it lives. So this node says it as soon as it can [RING1]. */
  const beatUntilSaid = shareUntilDone(async () => {
    while (!(await beat().then(isDone, isNotDone))) await timers.sleep(againMs)
  })

  const lookForSilent = () => markSilent(heard, now()).forEach(onSilent)

  return {
    async start() {
      await beat()
      const beatAgain = () => {
        beat().catch((error) => {
          onError(error)
          beatUntilSaid()
        })
        if (now() - heard.beatAt > deadMs) onDoubted()
      }
      cancels = [timers.every(beatMs, beatAgain), timers.every(lookMs, lookForSilent)]
    },
    ...readsOf(heard, look, now),
    look,
    async isSaid() {
      if (isDoubtful || now() - saidAt > blindMs) await look()
    },
    async falls(other, over) {
      // It may have started a moment ago.
      if (!saysItLives(heard, other)) await look().catch(() => {})
      while (!isSilent(heard, other, now()) && !isStopped && !over.aborted) await falls.next()
    },
    fell(other) {
      deaths.found(other)
      lookForSilent()
      falls.wake()
    },
    doubt(isOver) {
      isDoubtful = !isOver
      saidAt = Number.NEGATIVE_INFINITY
      onDoubted()
    },
    beat,
    stop() {
      isStopped = true
      for (const cancel of cancels) cancel()
    },
  }
}

function createHeard(self: string, deaths: Deaths): Heard {
  const nodes: Heard['nodes'] = new Map()
  return { self, deaths, nodes, listensSince: 0, beatAt: 0, blindUntil: 0, emptiedAt: Number.NEGATIVE_INFINITY }
}

type Reads =
  | 'isAlive'
  | 'isReplaced'
  | 'isGone'
  | 'isThere'
  | 'saysItLives'
  | 'isSilent'
  | 'staysSilent'
  | 'known'
  | 'awayMs'

function readsOf(heard: Heard, look: () => Promise<void>, now: () => number): Pick<Living, Reads> {
  return {
    isAlive: (other) => isAlive(heard, other, now()),
    isReplaced: (other) => isReplaced(heard, other),
    isGone: (other) => isGone(heard, other, now()),
    async isThere(other) {
      if (!isAlive(heard, other, now())) await look()
      return isAlive(heard, other, now())
    },
    saysItLives: (other) => saysItLives(heard, other),
    isSilent: (other) => isSilent(heard, other, now()),
    async staysSilent(other) {
      if (isSilent(heard, other, now())) await look()
      return isSilent(heard, other, now())
    },
    known: () => heard.nodes.keys(),
    awayMs: () => now() - heard.beatAt,
  }
}

/** Each look begins after the request for it. All who ask before it begins share it. */
function shareNext(beat: () => Promise<void>): () => Promise<void> {
  let next: Promise<void> | undefined
  let last: Promise<void> = Promise.resolve()
  return () => {
    next ??= last
      .catch(() => {})
      .then(() => {
        next = undefined
        last = beat()
        return last
      })
    return next
  }
}

const isDone = () => true
const isNotDone = () => false

/** Begins the work, unless it is still being done. */
function shareUntilDone(work: () => Promise<void>): () => void {
  let isWorking = false
  return () => {
    if (isWorking) return
    isWorking = true
    void work().finally(() => {
      isWorking = false
    })
  }
}

/** Others take the sockets of this node for those of an earlier run: its clients come back, again and again. */
function createReplacedWarning(heard: Heard, onError: (error: unknown) => void): () => void {
  /** The later run that was reported. */
  let replacedBy: string | undefined
  return () => {
    const successor = successorOf(heard)
    if (successor === undefined || successor === replacedBy) return
    replacedBy = successor
    onError(new Error('another process runs under the id of this node: each needs a RINGWIRE_NODE_ID of its own'))
  }
}

/** Wakes everybody who waits for a node to fall. */
function createFalls(timers: Pick<Timers, 'after'>) {
  const wakes = new Set<() => void>()
  return {
    /** Until a node was found dead, but no longer than until the next look. */
    async next(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      wakes.add(resolve)
      const cancel = timers.after(lookMs, resolve)
      await promise
      cancel()
      wakes.delete(resolve)
    },
    wake(): void {
      for (const wake of wakes) wake()
    },
  }
}
