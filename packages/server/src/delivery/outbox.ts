import { type Call, type CallRef, callKey } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Left, LeftRow, Outbox as OutboxStore } from '../ports/outbox.ts'
import { StoreError } from '../ports/store-error.ts'
import type { CaughtUp } from './catching-up.ts'
import { createRemovals } from './removals.ts'

/** So many are claimed at a time: two processes that find a thousand each tell a part of them. */
const claimSize = 50
/** A step that could not be delivered is tried again at the next sweep: others come first until then. In ms. */
const againMs = 400

export interface OutboxOptions {
  readonly store: OutboxStore
  readonly load: (ref: CallRef) => MaybePromise<Call | undefined>
  /** Tells what was committed to a call and not told by anybody. */
  readonly catchUp: (call: Call) => Promise<CaughtUp>
  readonly stepsAfter: (ref: CallRef, version: number) => MaybePromise<readonly Step[]>
  /** A step of another process or start, whose ring would not be over yet, has reached everybody. At least once, too. */
  readonly onLeft: (step: Step) => void
  /** How long after its end somebody may still hear of a call, in ms. */
  readonly toldMs: number
  readonly now: () => number
  readonly onError: (error: unknown) => void
}

export interface Outbox {
  /** A step that this process committed has reached everybody. */
  told(step: Step): void
  /** The same for rows that others left, and for their steps. */
  toldLeft(rows: readonly LeftRow[], steps: readonly Step[]): void
  /** The rows of a call that this process has not delivered: oldest version first. */
  leftOf(ref: CallRef): MaybePromise<readonly LeftRow[]>
  /**
   * Removes the rows of delivered steps, and delivers steps that nobody has delivered in time. Rejects with a StoreError
   * where a store is away.
   */
  sweep(): Promise<void>
  /** How long the oldest step has waited that is left, as far as the last sweep knew, in ms; 0: none is. */
  oldestMs(): number
  /**
   * Removes the rows of delivered steps, before the store is closed. Never rejects: a row that stays is delivered once
   * more.
   */
  flush(): Promise<void>
}

/**
 * Sees to it that every step reaches everybody, whichever process died on the way: the steps of this process, those that
 * others left, and those of a commit whose answer was lost.
 */
export function createOutbox(options: OutboxOptions): Outbox {
  const { store, load, catchUp, stepsAfter, onLeft, toldMs, now, onError } = options
  const removals = createRemovals(store, onError)
  /** While the store is away, what it said last: that waits, too. */
  let oldest: number | undefined

  /** Answers whether it is worth going on: while the sessions' store is away nothing can be delivered. */
  async function tellOf(left: readonly Left[]): Promise<boolean> {
    const calls = Map.groupBy(left, ({ call }) => (call === undefined ? '' : callKey(call)))
    const all = await Promise.all(Array.from(calls.values(), async (rows) => ({ rows, caught: await tell(rows) })))
    const rowsWhere = (isDone: boolean) =>
      all.flatMap(({ rows, caught }) => ((caught === 'done') === isDone ? rows : []))
    removals.add(rowsWhere(true).map(rowOf))
    await store.release(rowsWhere(false).map(rowOf), againMs)
    return all.some(({ caught }) => caught !== 'away')
  }

  /** Rows of one call. */
  async function tell(rows: readonly Left[]): Promise<CaughtUp> {
    const [{ call: ref } = {}]: readonly Partial<Left>[] = rows
    // Nobody is left who could hear of it.
    if (ref === undefined || (ref.endedAt !== null && now() - ref.endedAt > toldMs)) return 'done'
    try {
      const call = await load(ref)
      if (call === undefined) return 'done'
      const caught = await catchUp(call)
      // The steps that were delivered only just now are done.
      const others = rows.filter(({ row }) => !removals.has(row))
      // The writer thread commits before this process hears of it: no later version than the loaded one was delivered.
      if (caught === 'done' && others.some(({ version }) => version > call.version)) return 'later'
      if (caught === 'done' && others.length > 0 && now() < call.ringExpiresAt) {
        seeTo(others, await stepsAfter(call, Math.min(...others.map(({ version }) => version)) - 1))
      }
      return caught
    } catch (error) {
      if (error instanceof StoreError) throw error
      // A bug would be one again and again, and in the way of all others.
      onError(error)
      return 'done'
    }
  }

  function seeTo(rows: readonly LeftRow[], steps: readonly Step[]): void {
    const left = new Set(rows.map(({ version }) => version))
    for (const step of steps) if (left.has(step.call.version) && now() < step.call.ringExpiresAt) onLeft(step)
  }

  return {
    told(step) {
      const row = store.rowOf(step)
      if (row !== undefined) removals.note([row])
    },
    toldLeft(rows, steps) {
      seeTo(rows, steps)
      removals.note(rows.map(rowOf))
    },
    leftOf: (ref) => andThen(store.leftOf(ref), (rows) => rows.filter(({ row }) => !removals.has(row))),
    async sweep() {
      await removals.remove()
      for (let isWorthIt = true; isWorthIt; ) {
        // Asked for together: where nothing is left that is all, and one statement of the store answers both.
        const [left, at] = await Promise.all([store.claim(claimSize), store.oldest()])
        isWorthIt = (await tellOf(left)) && left.length === claimSize
        await removals.remove()
        oldest = left.length === 0 ? at : await store.oldest()
      }
    },
    oldestMs: () => (oldest === undefined ? 0 : Math.max(0, now() - oldest)),
    flush: () => removals.remove().catch(() => {}),
  }
}

const rowOf = ({ row }: LeftRow) => row
