import type { CallStore } from '../../ports/call-store.ts'
import { createCallSteps } from '../sql/call-steps.ts'
import { type CallRows, eraseCalls } from '../sql/erasure.ts'
import type { StepRows } from '../sql/step-rows.ts'
import type { Subscribers } from '../sql/subscribers.ts'
import { type Write, writeOf } from './batch.ts'
import type { CallLists } from './call-lists.ts'
import type { CallReads } from './call-reads.ts'
import type { GroupCommit } from './group-commit.ts'

export interface CallStoreParts {
  readonly reads: CallReads
  readonly lists: CallLists
  readonly commits: GroupCommit<Write>
  readonly erasable: CallRows
  readonly stepRows: StepRows
  readonly subscribers: Pick<Subscribers, 'deliveriesOf'>
  readonly tryWrite: CallStore['tryWrite']
  /** No transition takes longer. */
  readonly limitMs: number
  readonly close: () => Promise<void>
}

/** The calls, for one of several processes that write them. */
export function createCallStore(parts: CallStoreParts): CallStore {
  const { reads, lists, commits, erasable, stepRows, subscribers, tryWrite, limitMs, close } = parts
  const { transition, invite, foresee, load, note, forgetOverOf } = createCallSteps({
    reads,
    commit: (steps, seen, known, deadline) =>
      commits.commit(writeOf(steps, seen, known, steps.flatMap(subscribers.deliveriesOf)), deadline),
    stepRows,
    limitMs,
    monotonic: () => performance.now(),
  })
  return {
    transition,
    invite,
    foresee,
    load,
    note,
    liveCallsOf: (participant) => reads.liveOf(participant),
    inCall: (participants) => reads.inCall(participants),
    lastAnswered: (participants) => reads.lastAnswered(participants),
    livePages: () => reads.livePages(),
    dueRings: (from, to, limit) => reads.dueRings(from, to, limit),
    overPages: (since) => reads.overPages(since),
    stepsAfter: (ref, version) => reads.stepsAfter(ref, version),
    history: (query) => reads.history(query),
    seen: lists.seen,
    beginning: lists.beginning,
    list: lists.list,
    async erase(participant, onErased = () => {}) {
      const count = await eraseCalls(erasable, participant, onErased)
      forgetOverOf(participant)
      return count
    },
    tryWrite,
    close,
  }
}
