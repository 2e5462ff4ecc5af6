import type { Cancel, Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Ephemerals, Look } from './ephemerals.port.ts'

export interface FallenOptions {
  /** This run of this node. */
  readonly node: string
  /** Where nodes hold signs: a node has fallen only if it has none in any of them. */
  readonly stores: readonly Ephemerals[]
  /** The nodes that serve, as far as is known. */
  readonly others: () => Iterable<string>
  /** Both stores let go of the sign of a node: its process is dead. */
  readonly onFallen: (node: string) => void
  /** This node has lost a sign, so others may take it for dead. `isOver`: it has all of them again. */
  readonly onDoubted: (isOver: boolean) => void
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

/** Finds within 300 ms that the process of another node has died [PLACE4]. Missing heartbeats show every other death later. */
export interface Fallen {
  start(): void
  /** A node leaves a question unanswered: looks for its signs during the next second. */
  suspect(node: string): void
  stop(): void
}

/** A node has to be without its signs for this time, in ms: it makes a connection that only broke again before that. */
const missingMs = 150
/** A store that restarted, or lost this node's own sign, proves nothing for this time, in ms. */
const steadyMs = 5_000
/** How often the signs of suspected nodes are looked for, in ms. */
const lookMs = 50
/** How long one unanswered question is a reason to look, in ms. */
const suspectedMs = 1_000
/** How often all signs are looked for, so that it is known who has one, in ms. */
const surveyMs = 2_000

interface Suspect {
  until: number
  /** When the first look that found no sign had been answered, if every look since has found none either. */
  missingSince: number | undefined
}

export function createFallen(options: FallenOptions): Fallen {
  const { node, others, onFallen, onDoubted, onError, timers } = options
  const stores = options.stores.map((store) => createWatched(store, node, timers))
  const suspects = new Map<string, Suspect>()
  let isLooking = false
  let isSurveying = false
  let isStopped = false
  let stopSurveys: Cancel | undefined

  /** Which of these nodes have lost a sign that they had in every store; undefined where nobody can be sure of that now. */
  async function lookFor(names: readonly string[]): Promise<ReadonlySet<string> | undefined> {
    const looks = await Promise.all(stores.map((store) => store.look(names)))
    if (!stores.every((store) => store.isSteady())) return undefined
    return new Set(names.filter((name) => stores.every((store, i) => store.hasLost(name, looks[i] as Look))))
  }

  async function survey(): Promise<void> {
    if (isSurveying) return
    isSurveying = true
    try {
      const names = [...others()].filter((name) => name !== node)
      for (const store of stores) store.keep(new Set([...names, ...suspects.keys()]))
      // A store that is away does not keep the other one from being seen.
      await Promise.allSettled(stores.map((store) => store.look(names)))
    } finally {
      isSurveying = false
    }
  }

  async function lookForSuspects(): Promise<void> {
    while (suspects.size > 0 && !isStopped) {
      const sentAt = timers.monotonic()
      const lost = await lookFor([...suspects.keys()]).catch((error) => {
        if (!(error instanceof StoreError)) onError(error)
        return undefined
      })
      if (!isStopped) judge(lost, sentAt, timers.monotonic())
      await timers.sleep(pause())
    }
  }

  function judge(lost: ReadonlySet<string> | undefined, sentAt: number, now: number): void {
    for (const [name, suspect] of suspects) {
      if (lost?.has(name) !== true) {
        suspect.missingSince = undefined
        if (now > suspect.until) suspects.delete(name)
      } else if (suspect.missingSince === undefined) suspect.missingSince = now
      else if (sentAt - suspect.missingSince >= missingMs) {
        suspects.delete(name)
        // If it lives after all, its signs have to be seen first.
        for (const store of stores) store.forget(name)
        onFallen(name)
      }
    }
  }

  /** Until the next look: no longer than until the one that may decide. */
  function pause(): number {
    const now = timers.monotonic()
    const left = [...suspects.values()].map(({ missingSince = now }) => missingSince + missingMs - now)
    return Math.max(1, Math.min(lookMs, ...left))
  }

  function lost(): void {
    if (!isStopped) onDoubted(false)
  }

  function heldAgain(): void {
    if (!isStopped) onDoubted(stores.every((store) => store.isHeld()))
  }

  return {
    start() {
      for (const store of stores) store.hold(lost, heldAgain)
      stopSurveys = timers.every(surveyMs, () => void survey())
      void survey()
    },
    suspect(name) {
      const until = timers.monotonic() + suspectedMs
      const known = suspects.get(name)
      if (known !== undefined) known.until = until
      else if (stores.every((store) => store.knows(name))) suspects.set(name, { until, missingSince: undefined })
      if (isLooking || isStopped || suspects.size === 0) return
      isLooking = true
      lookForSuspects()
        .catch(onError)
        .finally(() => {
          isLooking = false
        })
    },
    stop() {
      isStopped = true
      stopSurveys?.()
    },
  }
}

/** One of the stores: who was seen there, and since when it, and this node's own sign in it, are as they are. */
function createWatched(store: Ephemerals, node: string, timers: Pick<Timers, 'monotonic'>) {
  let origin: string | undefined
  let originSince = 0
  let heldSince: number | undefined
  let seen = new Set<string>()

  /**
   * A server that restarted, or took over, knows no sign at first. One that does not show this node's own sign is not the
   * one at which the nodes hold theirs.
   */
  function learn(look: Look): void {
    if (look.origin !== origin || !look.held.has(node)) {
      origin = look.origin
      originSince = timers.monotonic()
      seen.clear()
    }
    for (const name of look.held) seen.add(name)
  }

  return {
    hold(onLost: () => void, onHeldAgain: () => void): void {
      let wasHeld = false
      store.hold(node, {
        onHeld() {
          heldSince = timers.monotonic()
          if (wasHeld) onHeldAgain()
          wasHeld = true
        },
        onLost() {
          heldSince = undefined
          seen.clear()
          onLost()
        },
      })
    },
    isHeld: () => heldSince !== undefined,
    async look(names: readonly string[]): Promise<Look> {
      const look = await store.look([node, ...names])
      learn(look)
      return look
    },
    isSteady(): boolean {
      const now = timers.monotonic()
      return heldSince !== undefined && now - Math.max(heldSince, originSince) >= steadyMs
    },
    knows: (name: string) => seen.has(name),
    hasLost: (name: string, { held }: Look) => seen.has(name) && !held.has(name),
    forget: (name: string) => void seen.delete(name),
    keep(names: ReadonlySet<string>): void {
      seen = seen.intersection(names)
    },
  }
}
