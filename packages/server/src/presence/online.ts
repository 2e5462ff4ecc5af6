/**
 * Who came online and went offline, for the webhook endpoints that name it [HOOK2]. Each node writes whose sockets it has, and
 * the store tells of the first node of somebody and of the last one, in that commit. So one node tells, whichever dies.
 *
 *   const online = createOnline({ store, self, isDead, hooked, now, wall, every, onError })
 *   online.start()
 *   online.opened(participant), online.closed(participant)    → of sockets of this process
 *   online.died(node, hasLeft)                                → its sockets are gone
 */
import type { Participant } from '../call/call.ts'
import type { Cancel, Timers } from '../ports/clock.ts'
import type { OnlineStore } from '../ports/online.ts'
import { StoreError } from '../ports/store-error.ts'
import { createHere, goneMs } from './here.ts'

/** After a start people need longer to come back: nobody was there to come back to. In ms. */
const startMs = 15_000
/** How often it is looked for what is to be written, and whose rows there are, in ms. */
const workMs = 100
const lookMs = 5_000
/** A node writes again after this time if the store failed, in ms. */
const retryMs = 1_000

export interface OnlineOptions {
  readonly store: OnlineStore
  /** This run of this process: no other has had the name. */
  readonly self: string
  /** Whether a run is over for sure. */
  readonly isDead: (node: string) => boolean
  /** Products with an endpoint that hears it; another set where they changed. */
  readonly hooked: () => ReadonlySet<string>
  /** Steady, in ms. */
  readonly now: () => number
  /** In ms since the epoch. */
  readonly wall: () => number
  readonly every: Timers['every']
  readonly onError: (error: unknown) => void
}

export interface Online {
  opened(participant: Participant): void
  closed(participant: Participant): void
  /** `hasLeft`: it was stopped, and its clients are on their way to another one. */
  died(node: string, hasLeft: boolean): void
  start(): void
  stop(): void
}

export function createOnline(options: OnlineOptions): Online {
  const { store, self, isDead, hooked, now, wall, every, onError } = options
  const here = createHere(now)
  const over = createEndedRuns(store, wall)
  let startedAt = now()
  let lookedAt = Number.NEGATIVE_INFINITY
  let notBefore = Number.NEGATIVE_INFINITY
  let isWorking = false
  let isAway = false
  let stop: Cancel = () => {}

  async function writeChanges(): Promise<void> {
    for (let batch = here.take(); batch.length > 0; batch = here.take()) {
      const rows = batch.map(({ person: { participant }, comes }) => ({ participant, comes }))
      try {
        await store.write(self, rows, wall())
      } catch (error) {
        here.failed(batch)
        throw error
      }
      here.written(batch)
    }
  }

  /** Runs of which nobody saw the end, and rows of this one that others took away while it stood still. */
  async function look(at: number): Promise<void> {
    const nodes = await store.nodes()
    lookedAt = at
    for (const node of nodes.keys()) if (node !== self && !over.has(node) && isDead(node)) forget(node, at + goneMs)
    here.compare(nodes.get(self) ?? 0)
  }

  /** A node that has just started learns of all that died before it, and people had nobody to come back to. */
  function forget(node: string, from: number): void {
    over.add(node, Math.max(from, startedAt + startMs))
  }

  async function work(): Promise<void> {
    const at = now()
    if (isWorking || at < notBefore) return
    here.notice(hooked(), at)
    if (here.isQuiet() && over.isEmpty() && lookedAt > startedAt) return
    isWorking = true
    try {
      if (at - lookedAt >= lookMs) await look(at)
      await writeChanges()
      await over.drop(at)
      isAway = false
    } catch (error) {
      notBefore = now() + retryMs
      // Said once, however long the store is away.
      if (!(error instanceof StoreError) || !isAway) onError(error)
      isAway ||= error instanceof StoreError
    } finally {
      isWorking = false
    }
  }

  return {
    opened: here.opened,
    closed: here.closed,
    died: (node, hasLeft) => forget(node, now() + (hasLeft ? goneMs : 0)),
    start() {
      startedAt = now()
      stop = every(workMs, () => void work())
    },
    stop: () => stop(),
  }
}

/** Runs that are over, and from when on their rows go. */
function createEndedRuns(store: OnlineStore, wall: () => number) {
  const over = new Map<string, number>()
  return {
    has: (node: string) => over.has(node),
    add: (node: string, dueAt: number) => void over.set(node, dueAt),
    isEmpty: () => over.size === 0,
    /** Others do the same: the store tells once. */
    async drop(at: number): Promise<void> {
      for (const [node, dueAt] of over) {
        if (at < dueAt) continue
        for (let left = await store.of(node); left.length > 0; left = await store.of(node)) {
          const rows = left.map((participant) => ({ participant, comes: false }))
          await store.write(node, rows, wall())
        }
        over.delete(node)
      }
    },
  }
}
