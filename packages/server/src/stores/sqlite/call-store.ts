import {
  type Call,
  type CallRef,
  callKey,
  type LiveCall,
  type Participant,
  participantKey,
  takesPartIn,
} from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import { type CallStore, type Changes, type Ended, type InviteSituation, pageSize } from '../../ports/call-store.ts'
import { macrotask } from '../../ports/macrotask.ts'
import type { MaybePromise } from '../../ports/maybe.ts'
import { StoreError } from '../../ports/store-error.ts'
import { type CallRows, eraseCalls } from '../sql/erasure.ts'
import { createKeyLocks } from '../sql/key-locks.ts'
import type { Subscribers } from '../sql/subscribers.ts'
import { answerWidth, conflict, encodeStep, refused } from './batch.ts'
import type { CallLists } from './call-lists.ts'
import type { CallReads, EndedAt } from './call-reads.ts'
import { attempt, type SqlValue, sqlFailure } from './connection.ts'
import type { GroupCommit } from './group-commit.ts'
import type { LiveCalls } from './live-calls.ts'
import type { OwnRows } from './outbox.ts'
import type { Staged } from './webhook-spread.ts'

/** A guard fails only where somebody else writes; far more often than that would be a fault. */
const maxAttempts = 20

export interface CallStoreParts {
  readonly reads: CallReads
  readonly lists: CallLists
  readonly live: LiveCalls
  readonly commits: GroupCommit
  readonly erasable: CallRows
  readonly outbox: OwnRows
  readonly subscribers: Pick<Subscribers, 'deliveriesOf'>
  readonly staged: Staged
  readonly close: () => Promise<void>
}

/**
 * The calls of the serving process. It is the only writer, so it decides on what it committed last, from memory; the
 * guard in the database has the last word. Transitions of one call take turns, and so do invites of one participant.
 */
export function createCallStore(parts: CallStoreParts): CallStore {
  const { reads, lists, live, commits, erasable, outbox, subscribers, staged, close } = parts
  const locks = createKeyLocks()

  function find(ref: CallRef): Call | undefined {
    const known = live.find(ref)
    if (known !== undefined) return known.call
    const stored = reads.load(ref)
    if (stored !== undefined) live.put(stored)
    return stored?.call
  }

  /** What a guard that failed was right about. */
  function readAgain(steps: readonly Step[]): void {
    for (const { call } of steps) {
      const stored = reads.load(call)
      if (stored === undefined) live.drop(call)
      else live.put(stored)
    }
  }

  /** True where the steps are committed, false where a guard failed and nothing was written. */
  function commit(steps: readonly Step[]): Promise<boolean> {
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

  async function write<S, D extends Changes>(first: D, situation: () => S, decide: (situation: S) => D): Promise<D> {
    let decision = first
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      if (decision.steps.length === 0 || (await commit(decision.steps))) return decision
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
  function locked<S, D extends Changes>(keys: readonly string[], situation: () => S, decide: (situation: S) => D) {
    let taken = 0
    while (taken < keys.length && locks.take(keys[taken] as string)) taken++
    if (taken === keys.length && commits.isUp) return run(keys, situation, decide)
    return runLater(keys.slice(taken), keys, () => run(keys, situation, decide))
  }

  return {
    transition: (ref, decide) => locked([callKey(ref)], () => find(ref), decide),
    invite(caller, callee, callUuid, decide) {
      const keys = [...new Set([participantKey(caller), participantKey(callee)])].sort()
      const situation = (): InviteSituation => ({
        sameUuid: find({ product: caller.product, callUuid }),
        live: liveOfBoth(live, caller, callee),
      })
      return locked(keys, situation, decide)
    },
    load: (ref) => attempt(() => find(ref)),
    liveCallsOf: (participant) => live.liveOf(participant),
    inCall: (participants) => participants.map((one) => live.liveOf(one).some((call) => takesPartIn(call, one))),
    livePages: () => pagesOf(live.all),
    dueRings: (from, to, limit) => dueOf(live.all(), from, to, limit),
    overPages: (since) => overPagesOf(reads, since),
    stepsAfter: (ref, version) => attempt(() => reads.stepsAfter(ref, version)),
    history: (query) => attempt(() => reads.history(query)),
    seen: (ref) => attempt(() => lists.seen(ref)),
    beginning: (product, start, limit) => attempt(() => lists.beginning(product, start, limit)),
    list: (query) => attempt(() => lists.list(query)),
    async erase(participant, onErased = () => {}) {
      const count = await eraseCalls(erasable, participant, onErased)
      live.dropOverOf(participant)
      return count
    },
    // No other process writes calls.
    note() {},
    tryWrite: () => commits.tryWrite(),
    close,
  }
}

function liveOfBoth(live: LiveCalls, caller: Participant, callee: Participant): LiveCall[] {
  return [...new Set([...live.liveOf(caller), ...live.liveOf(callee)])]
}

/** Beside a serving process: it reads, and writes no call. */
export function createReadOnlyCallStore(reads: CallReads, lists: CallLists, close: () => Promise<void>): CallStore {
  const refuse = () => Promise.reject(new StoreError('unavailable', 'Calls are written by the serving process alone.'))
  return {
    transition: refuse,
    invite: refuse,
    load: (ref) => attempt(() => reads.load(ref)?.call),
    liveCallsOf: reads.liveOf,
    inCall: refuse,
    livePages: () => pagesOf(async () => (await reads.live()).map(({ call }) => call)),
    dueRings: refuse,
    overPages: (since) => overPagesOf(reads, since),
    stepsAfter: (ref, version) => attempt(() => reads.stepsAfter(ref, version)),
    history: (query) => attempt(() => reads.history(query)),
    seen: (ref) => attempt(() => lists.seen(ref)),
    beginning: (product, start, limit) => attempt(() => lists.beginning(product, start, limit)),
    list: (query) => attempt(() => lists.list(query)),
    erase: refuse,
    note() {},
    tryWrite: refuse,
    close,
  }
}

async function* pagesOf(read: () => MaybePromise<readonly LiveCall[]>): AsyncGenerator<readonly LiveCall[]> {
  const all = await read()
  for (let from = 0; from === 0 || from < all.length; from += pageSize) yield all.slice(from, from + pageSize)
}

async function* overPagesOf(reads: CallReads, since: number): AsyncGenerator<readonly Ended[]> {
  for (let after: EndedAt | undefined = { endedAt: since, id: 0 }; after !== undefined; ) {
    const from: EndedAt = after
    const { ended, next } = await attempt(() => reads.overPage(from))
    after = next
    yield ended
    // Each page was read at once: sockets have their turn before the next one.
    await macrotask()
  }
}

/** All are in memory. */
function dueOf(all: readonly LiveCall[], from: number, to: number, limit: number): LiveCall[] {
  const due = all.filter(({ status, ringExpiresAt: at }) => status === 'ringing' && at > from && at <= to)
  return due.sort((a, b) => a.ringExpiresAt - b.ringExpiresAt).slice(0, limit)
}
