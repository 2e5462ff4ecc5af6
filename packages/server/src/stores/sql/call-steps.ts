import { type Call, type CallRef, callKey, type Participant, participantKey } from '../../call/call.ts'
import type { Step } from '../../call/effects.ts'
import type { CallSteps, Changes, InviteSituation } from '../../ports/call-store.ts'
import { StoreError } from '../../ports/store-error.ts'
import { createKeyLocks } from './key-locks.ts'
import { createKnownCalls, type KnownCalls } from './known-calls.ts'
import { linkedOf } from './linked.ts'
import type { StepRows } from './step-rows.ts'

/** Live calls and those that were over last; about 1 KiB each. */
const mostKnown = 20_000

/** The calls that an invite's decision saw; it is written only if they are still so. */
export interface Seen {
  readonly caller: Participant
  readonly callee: Participant
  readonly live: InviteSituation['live']
}

export interface CallStepsParts {
  /** The stored state now. Nobody waits for it beyond a deadline, on the clock of `monotonic`. */
  readonly reads: {
    load(ref: CallRef, deadline?: number): Promise<Call | undefined>
    situation(caller: Participant, callee: Participant, callUuid: string, deadline: number): Promise<InviteSituation>
    /** The same, for a caller that does not mind to wait for the end of this turn of the event loop. */
    foresee(caller: Participant, callee: Participant, callUuid: string): Promise<InviteSituation>
  }
  /**
   * Writes all steps or none, and answers their rows in the outbox; undefined where a guard failed. `known`: a call as it was
   * before its step.
   */
  readonly commit: (
    steps: readonly Step[],
    seen: Seen | undefined,
    known: KnownCalls['find'],
    deadline: number,
  ) => Promise<readonly number[] | undefined>
  readonly stepRows: StepRows
  /** No transition takes longer, in ms. */
  readonly limitMs: number
  readonly monotonic: () => number
}

/** The basis of a decision. `fresh`: it was read for this decision. */
interface Basis<S> {
  readonly situation: S
  readonly fresh: boolean
  readonly seen?: Seen
}

/**
 * Decides on calls, for one of several processes that write them. A transition decides on what this process saw last, and the
 * guard in the database says whether that was still true; where it was not, and where nothing is to be written that a
 * guard could check, it is decided on what is stored. Transitions of one call take turns in this process, and so do
 * invites of one participant.
 */
export function createCallSteps({ reads, commit, stepRows, limitMs, monotonic }: CallStepsParts) {
  const locks = createKeyLocks()
  const known = createKnownCalls(mostKnown)

  async function write({ steps }: Changes, seen: Seen | undefined, deadline: number): Promise<boolean> {
    try {
      const rows = await commit(steps, seen, known.find, deadline)
      if (rows !== undefined) stepRows.note(steps, rows)
      for (const { call } of steps) {
        if (rows !== undefined) known.note(call)
        else known.forget(call)
      }
      return rows !== undefined
    } catch (error) {
      // Nobody knows the stored state now.
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
    for (let attempt = 0; monotonic() < deadline; attempt++) {
      const { situation, fresh, seen } = await basis(attempt, deadline)
      const decision = decide(situation)
      if (decision.steps.length === 0) {
        if (fresh) return decision
      } else if (await write(decision, seen, deadline)) return decision
    }
    throw new StoreError('unavailable', 'The call changed again and again while it was decided on.')
  }

  async function load(ref: CallRef, deadline?: number): Promise<Call | undefined> {
    const call = await reads.load(ref, deadline)
    if (call === undefined) known.forget(ref)
    else known.note(call)
    return call
  }

  const steps: Omit<CallSteps, 'stepsAfter'> = {
    transition(ref, decide) {
      const deadline = monotonic() + limitMs
      const basis = async (attempt: number) => {
        const seen = attempt === 0 ? known.find(ref) : undefined
        const call = seen ?? (await load(ref, deadline))
        // No guard checks an old view of it by which it has nothing to do with the decision.
        const linked = linkedOf(call, (link) => load(link, deadline))
        const fresh = linked === undefined ? seen === undefined : attempt > 0
        return { situation: { call, linked: await linked }, fresh }
      }
      const decideBoth = ({ call, linked }: Awaited<ReturnType<typeof basis>>['situation']) => decide(call, linked)
      return locked(locks, [callKey(ref)], () => settle(basis, decideBoth, deadline))
    },
    invite(caller, callee, callUuid, decide, foreseen) {
      const deadline = monotonic() + limitMs
      const keys = [...new Set([participantKey(caller), participantKey(callee)])].sort()
      const basis = async (attempt: number, hasWaited: boolean) => {
        // The invite that had the locks before has changed the situation, most likely.
        const before = attempt === 0 && !hasWaited ? foreseen : undefined
        const situation = before ?? (await reads.situation(caller, callee, callUuid, deadline))
        situation.live.forEach(known.note)
        return { situation, fresh: before === undefined, seen: { caller, callee, live: situation.live } }
      }
      return locked(locks, keys, (hasWaited) => settle((attempt) => basis(attempt, hasWaited), decide, deadline))
    },
    foresee: reads.foresee,
    load: (ref) => load(ref),
    note: known.note,
  }
  return { ...steps, forgetOverOf: known.forgetOverOf }
}

/** Runs while it has the locks of all these keys; `hasWaited`: for another one that had one of them. */
async function locked<D>(
  locks: ReturnType<typeof createKeyLocks>,
  keys: readonly string[],
  run: (hasWaited: boolean) => Promise<D>,
): Promise<D> {
  let hasWaited = false
  for (const key of keys) {
    if (locks.take(key)) continue
    hasWaited = true
    await locks.acquire(key)
  }
  try {
    return await run(hasWaited)
  } finally {
    for (const key of keys) locks.release(key)
  }
}
