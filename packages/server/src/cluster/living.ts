import type { Cancel, Timers } from '../ports/clock.ts'
import { isReplacedBy } from '../ports/node-name.ts'
import type { Deaths } from './deaths.ts'
import type { Post } from './post.port.ts'

export interface LivingOptions {
  readonly post: Pick<Post, 'beat'>
  readonly node: string
  readonly deaths: Deaths
  /** A node did not say that it lives for a while: nobody waits for its answers. */
  readonly onSilent: (node: string) => void
  /** Others may take this node for dead; told again and again as long as that is so, and once after that. */
  readonly onDoubted: () => void
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

/** Which nodes say in the store that they live. */
export interface Living {
  start(): Promise<void>
  isAlive(node: string): boolean
  /** A run that is over, because its node runs again. */
  isReplaced(node: string): boolean
  /** Whether it is known for sure that a node does not say that it lives, though it could: nobody lost what it said. */
  isGone(node: string): boolean
  /** The same as `isAlive`, after another look where it is not known to live: it may have started a moment ago. */
  isThere(node: string): Promise<boolean>
  /** Whether the last look found that a node said it in the 5 s before: whatever it seemed to be, it lives. */
  saysItLives(node: string): boolean
  /** Looks who lives: a look that begins after this was asked for. */
  look(): Promise<void>
  /** Resolves when the others can know that this node lives, though they took it for dead while it stood still. */
  isSaid(): Promise<void>
  /** Whether a node did not say so for a while: where it does not answer either, it is gone [PLACE4]. */
  isSilent(node: string): boolean
  /** The same after another look: a node that stood still may have gone on since, and one may have just started. */
  staysSilent(node: string): Promise<boolean>
  /** Resolves when a node is silent, or when it does not matter any more. */
  falls(node: string, over: AbortSignal): Promise<void>
  /** The process of a node was found dead: it counts as such at once, until it says later that it lives. */
  fell(node: string): void
  /** Others may take this node for dead, until `isOver`: it says that it lives before it takes anything. */
  doubt(isOver: boolean): void
  /** Those that said so lately. */
  known(): Iterable<string>
  /** How long ago the store was there for sure, in ms. */
  awayMs(): number
  /** Says that this node lives, and looks who else does. */
  beat(): Promise<void>
  stop(): void
}

const beatMs = 1_000
/** A node that could not look for so long does not know who is gone. */
const blindMs = 3_000
const deadMs = 5_000
/** A holder is asked for a sign of life within 3 s [PLACE4]. */
const silentMs = 3_000
const lookMs = 100

/** A node that lived a moment ago. */
interface Other {
  /** When it was last known to live; who could not look gives it time from then on. */
  knownAt: number
  /** When it said so last. */
  saidAt: number
  /** Whether the store knew at the last look that it had said so in the 5 s before. */
  isListed: boolean
  /** It was told of as silent. */
  isSilent: boolean
}

export function createLiving({ post, node, deaths, onSilent, onDoubted, onError, timers }: LivingOptions): Living {
  /** By their names; this one is among them. */
  const nodes = new Map<string, Other>()
  /** When this one began to listen, and last could. */
  let listensSince = 0
  let beatAt = 0
  /** When the last beat that was answered was sent. */
  let saidAt = Number.NEGATIVE_INFINITY
  /** Until when this node, which ran already, could not look. */
  let blindUntil = 0
  /** When the list of who lives was found without this node. */
  let emptiedAt = Number.NEGATIVE_INFINITY
  let cancels: readonly Cancel[] = []
  let isStopped = false
  /** Wake those who wait for a node to fall. */
  const wakes = new Set<() => void>()
  /** This node has lost one of its signs. */
  let isDoubtful = false
  /** The later run under the id of this one that was told of. */
  let replacedBy: string | undefined
  /** A look that has yet to begin: all who ask meanwhile share it. */
  let nextLook: Promise<void> | undefined
  let lastLook: Promise<void> = Promise.resolve()

  const saysItLives = (other: string) => (nodes.get(other)?.isListed ?? false) && !deaths.has(other)

  async function beat(): Promise<void> {
    if (isStopped) return
    const sentAt = timers.monotonic()
    const { isNew, at, listed } = await post.beat(deadMs)
    // Somebody emptied the store, or it forgot this node while it could not beat.
    if (isNew && beatAt !== 0) {
      emptiedAt = timers.monotonic()
      onDoubted()
    }
    const now = timers.monotonic()
    // While the store was away nobody could say that it lives; a list that was emptied is no proof of absence either.
    if (now - beatAt > 2 * beatMs) {
      listensSince = now
      if (beatAt !== 0) blindUntil = now
      for (const each of nodes.values()) each.knownAt = now
    }
    beatAt = now
    saidAt = Math.max(saidAt, sentAt)
    for (const each of nodes.values()) each.isListed = false
    for (const [other, saidAt] of listed) {
      // It said so no earlier than this, however long the answer was under way.
      deaths.said(other, sentAt - (at - saidAt))
      list(other, now, now - (at - saidAt))
    }
    warnIfReplaced()
    for (const [other, { knownAt, isSilent }] of nodes) {
      if (now - knownAt <= deadMs) continue
      nodes.delete(other)
      if (!isSilent) onSilent(other)
    }
  }

  function list(other: string, knownAt: number, saidAt: number): void {
    const isSilent = nodes.get(other)?.isSilent ?? false
    nodes.set(other, { knownAt, saidAt, isListed: true, isSilent })
  }

  /** One that begins after it was asked for. */
  function look(): Promise<void> {
    nextLook ??= lastLook
      .catch(() => {})
      .then(() => {
        nextLook = undefined
        lastLook = beat()
        return lastLook
      })
    return nextLook
  }

  /** Others take the sockets of this node for those of an earlier run: its clients come back, again and again. */
  function warnIfReplaced(): void {
    const successor = [...nodes.keys()].find((each) => saysItLives(each) && isReplacedBy(node, each))
    if (successor === undefined || successor === replacedBy) return
    replacedBy = successor
    onError(new Error('another process runs under the id of this node: each needs a RINGWIRE_NODE_ID of its own'))
  }

  function isReplaced(other: string): boolean {
    // An earlier run of this node, or of one that has started again.
    if (isReplacedBy(other, node)) return true
    for (const [each, { isListed }] of nodes) if (isListed && isReplacedBy(other, each)) return true
    return false
  }

  function isAlive(other: string): boolean {
    if (isReplaced(other) || deaths.has(other)) return false
    return nodes.has(other) || timers.monotonic() - listensSince < deadMs
  }

  function lookForSilent(): void {
    for (const [other, each] of nodes) {
      const wasSilent = each.isSilent
      each.isSilent = other !== node && isSilent(other)
      if (each.isSilent && !wasSilent) onSilent(other)
    }
  }

  /** Until a node was found dead, but no longer than until the next look. */
  async function nextFall(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    wakes.add(resolve)
    const cancel = timers.after(lookMs, resolve)
    await promise
    cancel()
    wakes.delete(resolve)
  }

  function isSilent(other: string): boolean {
    if (!isAlive(other)) return true
    const now = timers.monotonic()
    // While this process stood still, or could not look, others may have said so; those that stood still as well get a moment.
    if (now - beatAt > 2 * beatMs) return false
    // A list that was emptied is no silence.
    const saidAt = nodes.get(other)?.saidAt
    return saidAt === undefined || now - Math.max(saidAt, blindUntil) > silentMs
  }

  return {
    async start() {
      await beat()
      const beatAgain = () => {
        beat().catch(onError)
        if (timers.monotonic() - beatAt > deadMs) onDoubted()
      }
      cancels = [timers.every(beatMs, beatAgain), timers.every(lookMs, lookForSilent)]
    },
    isAlive,
    isReplaced,
    isGone(other) {
      if (deaths.has(other)) return true
      const now = timers.monotonic()
      // All had the time to say it since the list was emptied, or this node could not look.
      return !saysItLives(other) && now - beatAt < blindMs && now - Math.max(listensSince, emptiedAt) > deadMs
    },
    async isThere(other) {
      if (!isAlive(other)) await look()
      return isAlive(other)
    },
    saysItLives,
    look,
    async isSaid() {
      if (isDoubtful || timers.monotonic() - saidAt > blindMs) await look()
    },
    isSilent,
    async staysSilent(other) {
      if (isSilent(other)) await look()
      return isSilent(other)
    },
    async falls(other, over) {
      // It may have started a moment ago.
      if (!saysItLives(other)) await look().catch(() => {})
      while (!isSilent(other) && !isStopped && !over.aborted) await nextFall()
    },
    fell(other) {
      deaths.found(other)
      lookForSilent()
      for (const wake of wakes) wake()
    },
    doubt(isOver) {
      isDoubtful = !isOver
      saidAt = Number.NEGATIVE_INFINITY
      onDoubted()
    },
    known: () => nodes.keys(),
    awayMs: () => timers.monotonic() - beatAt,
    beat,
    stop() {
      isStopped = true
      for (const cancel of cancels) cancel()
    },
  }
}
