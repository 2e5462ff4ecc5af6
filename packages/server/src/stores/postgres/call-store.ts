import { type Call, type CallRef, callKey, participantKey } from '../../call/call.ts'
import type { CallStore, Changes } from '../../ports/call-store.ts'
import { type CallRows, eraseCalls } from '../sql/erasure.ts'
import { createKeyLocks } from '../sql/key-locks.ts'
import type { StepRows } from '../sql/step-rows.ts'
import type { Subscribers } from '../sql/subscribers.ts'
import { type Seen, writeOf } from './batch.ts'
import type { CallLists } from './call-lists.ts'
import type { CallReads } from './call-reads.ts'
import { unavailable } from './failures.ts'
import type { GroupCommit } from './group-commit.ts'
import { createKnownCalls } from './known-calls.ts'

/** Live calls and those that were over last; about 1 KiB each. */
const mostKnown = 20_000

export interface CallStoreParts {
  readonly reads: CallReads
  readonly lists: CallLists
  readonly commits: GroupCommit
  readonly erasable: CallRows
  readonly stepRows: StepRows
  readonly subscribers: Pick<Subscribers, 'deliveriesOf'>
  readonly tryWrite: CallStore['tryWrite']
  /** No transition takes longer. */
  readonly limitMs: number
  readonly close: () => Promise<void>
}

/** What a decision was made on. `fresh`: it was read for this decision. */
interface Basis<S> {
  readonly situation: S
  readonly fresh: boolean
  readonly seen?: Seen
}

/**
 * The calls, for one of several processes that write them. A transition decides on what this process saw last, and the
 * guard in the database says whether that was still true; where it was not, and where nothing is to be written that a
 * guard could check, it is decided on what is stored. Transitions of one call take turns in this process, and so do
 * invites of one participant.
 */
export function createCallStore(parts: CallStoreParts): CallStore {
  const { reads, lists, commits, erasable, stepRows, subscribers, tryWrite, limitMs, close } = parts
  const locks = createKeyLocks()
  const known = createKnownCalls(mostKnown)

  async function commit(changes: Changes, seen: Seen | undefined, deadline: number): Promise<boolean> {
    const { steps } = changes
    try {
      const hooks = steps.flatMap(subscribers.deliveriesOf)
      const rows = await commits.commit(writeOf(steps, seen, known.find, hooks), deadline)
      if (rows !== undefined) stepRows.note(steps, rows)
      for (const { call } of steps) {
        if (rows !== undefined) known.note(call)
        else known.forget(call)
      }
      return rows !== undefined
    } catch (error) {
      // What is stored now, nobody knows.
      for (const { call } of steps) known.forget(call)
      throw error
    }
  }

  /** Decides until a decision is written, or is one to write nothing; the locks are held. */
  async function settle<S, D extends Changes>(
    basis: (attempt: number, deadline: number) => Basis<S> | Promise<Basis<S>>,
    decide: (situation: S) => D,
    deadline: number,
  ): Promise<D> {
    for (let attempt = 0; performance.now() < deadline; attempt++) {
      const { situation, fresh, seen } = await basis(attempt, deadline)
      const decision = decide(situation)
      if (decision.steps.length === 0) {
        if (fresh) return decision
      } else if (await commit(decision, seen, deadline)) return decision
    }
    throw unavailable('The call changed again and again while it was decided on.')
  }

  async function locked<D>(keys: readonly string[], run: () => Promise<D>): Promise<D> {
    for (const key of keys) if (!locks.take(key)) await locks.acquire(key)
    try {
      return await run()
    } finally {
      for (const key of keys) locks.release(key)
    }
  }

  async function load(ref: CallRef, deadline?: number): Promise<Call | undefined> {
    const call = await reads.load(ref, deadline)
    if (call === undefined) known.forget(ref)
    else known.note(call)
    return call
  }

  return {
    transition(ref, decide) {
      const deadline = performance.now() + limitMs
      const basis = async (attempt: number) => {
        const seen = attempt === 0 ? known.find(ref) : undefined
        if (seen !== undefined) return { situation: seen, fresh: false }
        return { situation: await load(ref, deadline), fresh: true }
      }
      return locked([callKey(ref)], () => settle<Call | undefined, ReturnType<typeof decide>>(basis, decide, deadline))
    },
    invite(caller, callee, callUuid, decide) {
      const deadline = performance.now() + limitMs
      const keys = [...new Set([participantKey(caller), participantKey(callee)])].sort()
      const basis = async () => {
        const situation = await reads.situation(caller, callee, callUuid, deadline)
        situation.live.forEach(known.note)
        return { situation, fresh: true, seen: { caller, callee, live: situation.live } }
      }
      return locked(keys, () => settle(basis, decide, deadline))
    },
    load: (ref) => load(ref),
    liveCallsOf: (participant) => reads.liveOf(participant),
    inCall: (participants) => reads.inCall(participants),
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
      known.forgetOverOf(participant)
      return count
    },
    note: known.note,
    tryWrite,
    close,
  }
}
