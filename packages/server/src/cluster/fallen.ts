import type { Cancel, Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Ephemerals, Look } from './ephemerals.port.ts'
import { createSigns } from './signs.ts'
import { createSuspects } from './suspects.ts'

export interface FallenOptions {
  /** This run of this node. */
  readonly node: string
  /** The stores in which nodes hold signs: a node has fallen only if it has none in any of them. */
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

/** How often signs are looked for that nobody here has seen, and all of them, so that it is known who has one. In ms. */
const newcomersMs = 1_000
const surveyMs = 3_000

export function createFallen({
  node,
  others,
  onFallen,
  onDoubted,
  onError,
  timers,
  ...options
}: FallenOptions): Fallen {
  const stores = options.stores.map((store) => createSigns(store, node, timers))
  const suspects = createSuspects(timers)
  let isLooking = false
  let isSurveying = false
  let isStopped = false
  let surveyedAt = Number.NEGATIVE_INFINITY
  let stopSurveys: Cancel | undefined

  /** Which of these nodes have lost a sign that they had in every store; undefined where nobody can be sure of that now. */
  async function lookFor(names: readonly string[]): Promise<ReadonlySet<string> | undefined> {
    const looks = await Promise.all(stores.map((store) => store.look(names)))
    if (!stores.every((store) => store.isSteady())) return undefined
    return new Set(names.filter((name) => stores.every((store, i) => store.hasLost(name, looks[i] as Look))))
  }

  async function survey(): Promise<void> {
    if (isSurveying) return
    const names = [...others()].filter((name) => name !== node)
    const isKnown = (name: string) => stores.every((store) => store.knows(name))
    // A survey that is due with this tick may be a moment early.
    if (names.every(isKnown) && timers.monotonic() - surveyedAt < surveyMs - newcomersMs / 2) return
    isSurveying = true
    surveyedAt = timers.monotonic()
    try {
      for (const store of stores) store.keep(new Set([...names, ...suspects.names()]))
      // A store that is away does not keep the other one from being seen.
      await Promise.allSettled(stores.map((store) => store.look(names)))
    } finally {
      isSurveying = false
    }
  }

  async function lookForSuspects(): Promise<void> {
    for (let names = suspects.names(); names.length > 0 && !isStopped; names = suspects.names()) {
      const sentAt = timers.monotonic()
      const lost = await lookFor(names).catch((error) => {
        if (!(error instanceof StoreError)) onError(error)
        return undefined
      })
      if (!isStopped) suspects.judge(lost, sentAt).forEach(fell)
      await timers.sleep(suspects.pauseMs())
    }
  }

  function fell(name: string): void {
    // If it lives after all, its signs have to be seen first.
    for (const store of stores) store.forget(name)
    onFallen(name)
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
      stopSurveys = timers.every(newcomersMs, () => void survey())
      void survey()
    },
    suspect(name) {
      suspects.add(name, () => stores.every((store) => store.knows(name)))
      if (isLooking || isStopped || suspects.names().length === 0) return
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
