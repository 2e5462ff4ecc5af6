import type { Step } from '../../call/effects.ts'
import type { Changes } from '../../ports/call-store.ts'
import type { MaybePromise } from '../../ports/maybe.ts'
import { StoreError } from '../../ports/store-error.ts'
import { createKeyLocks } from '../sql/key-locks.ts'
import type { Subscribers } from '../sql/subscribers.ts'
import { answerWidth, conflict, encodeStep, refused } from './batch.ts'
import type { CallReads } from './call-reads.ts'
import { type SqlValue, sqlFailure } from './connection.ts'
import type { GroupCommit } from './group-commit.ts'
import type { LiveCalls } from './live-calls.ts'
import type { OwnRows } from './outbox.ts'
import type { Staged } from './webhook-spread.ts'

/** A guard fails only where somebody else writes; far more often than that would be a fault. */
const maxAttempts = 20

export interface TransitionsParts {
  readonly reads: CallReads
  readonly live: LiveCalls
  readonly commits: GroupCommit
  readonly outbox: OwnRows
  readonly subscribers: Pick<Subscribers, 'deliveriesOf'>
  readonly staged: Staged
}

/** Decides on calls while nobody else does, and commits what was decided: again where a guard failed. */
export function createTransitions(parts: TransitionsParts) {
  const { reads, live, commits } = parts
  const locks = createKeyLocks()

  /** Reads again the calls that a failed guard was right about. */
  function readAgain(steps: readonly Step[]): void {
    for (const { call } of steps) {
      const stored = reads.load(call)
      if (stored === undefined) live.drop(call)
      else live.put(stored)
    }
  }

  async function write<S, D extends Changes>(first: D, situation: () => S, decide: (situation: S) => D): Promise<D> {
    let decision = first
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      if (decision.steps.length === 0 || (await commit(parts, decision.steps))) return decision
      if (!commits.isUp) await commits.whenUp()
      try {
        readAgain(decision.steps)
        decision = decide(situation())
      } catch (error) {
        throw sqlFailure(error)
      }
    }
    throw new StoreError('unavailable', 'The call changed again and again while it was decided on.')
  }

  /** Runs with all locks held and gives them back; at once where nothing has to be written. */
  function run<S, D extends Changes>(
    held: readonly string[],
    situation: () => S,
    decide: (situation: S) => D,
  ): MaybePromise<D> {
    const release = () => {
      for (const key of held) locks.release(key)
    }
    let decision: D
    try {
      decision = decide(situation())
    } catch (error) {
      release()
      return Promise.reject(sqlFailure(error))
    }
    if (decision.steps.length > 0) return write(decision, situation, decide).finally(release)
    release()
    return decision
  }

  async function runLater<D>(missing: readonly string[], held: readonly string[], next: () => MaybePromise<D>) {
    for (const key of missing) await locks.acquire(key)
    try {
      await commits.whenUp()
    } catch (error) {
      for (const key of held) locks.release(key)
      throw error
    }
    return next()
  }

  /** Takes the locks in the order given: at once where they are free, as nearly all are. */
  return function decideOn<S, D extends Changes>(
    keys: readonly string[],
    situation: () => S,
    decide: (situation: S) => D,
  ) {
    let taken = 0
    while (taken < keys.length && locks.take(keys[taken] as string)) taken++
    if (taken === keys.length && commits.isUp) return run(keys, situation, decide)
    return runLater(keys.slice(taken), keys, () => run(keys, situation, decide))
  }
}

/** True where the steps are committed, false where a guard failed and nothing was written. */
function commit(parts: TransitionsParts, steps: readonly Step[]): Promise<boolean> {
  const { live, commits, outbox, subscribers, staged } = parts
  const values: SqlValue[] = []
  let isTold = false
  for (const step of steps) {
    const deliveries = subscribers.deliveriesOf(step)
    isTold ||= deliveries.length > 0
    encodeStep(values, step, live.find(step.call), deliveries)
  }
  return new Promise((resolve, reject) => {
    commits.submit(
      { size: steps.length, values },
      {
        done(ids) {
          if (ids[0] === refused) return reject(new Error('The database refused the values of a transition.'))
          if (ids[0] === conflict) return resolve(false)
          staged.isAny ||= isTold
          steps.forEach((step, index) => {
            const [id, row] = ids.slice(answerWidth * index) as [number, number]
            live.committed({ id, call: step.call })
            outbox.committed(step, row)
          })
          resolve(true)
        },
        failed(error) {
          // Nobody may know whether it was committed.
          staged.isAny ||= isTold
          reject(error)
        },
      },
    )
  })
}
