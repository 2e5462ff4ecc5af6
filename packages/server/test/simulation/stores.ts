import { type Call, callKey, type Participant, participantKey } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import type { Heartbeats } from '../../src/cluster/heartbeats.port.ts'
import { type CallSteps, type Changes, type LiveCallReads, pageSize } from '../../src/ports/call-store.ts'
import type { Timers } from '../../src/ports/clock.ts'
import type { Outbox } from '../../src/ports/outbox.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { createKnownCalls } from '../../src/stores/postgres/known-calls.ts'
import { createKeyLocks } from '../../src/stores/sql/key-locks.ts'
import { createStepRows } from '../../src/stores/sql/step-rows.ts'
import type { Database, SeenBy } from './database.ts'
import type { Way } from './way.ts'

/** No transition takes longer, in ms. */
const limitMs = 4_000
const mostKnown = 20_000

interface Basis<S> {
  readonly situation: S
  /** It was read for this decision. */
  readonly isFresh: boolean
  readonly seen?: SeenBy
}

/** What one node has of the database. It decides on what it saw last, as `stores/postgres/call-store.ts` does. */
export function databasePorts(database: Database, way: Way, timers: Timers) {
  const locks = createKeyLocks()
  const known = createKnownCalls(mostKnown)
  const stepRows = createStepRows()
  const read = <T>(look: () => T): Promise<T> => way.send(look)

  async function commit(steps: readonly Step[], seen: SeenBy | undefined): Promise<boolean> {
    try {
      const rows = await way.send(() => database.commit(steps, seen))
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

  async function settle<S, D extends Changes>(
    basis: (attempt: number) => Promise<Basis<S>>,
    decide: (situation: S) => D,
  ): Promise<D> {
    const until = timers.monotonic() + limitMs
    for (let attempt = 0; timers.monotonic() < until; attempt++) {
      const { situation, isFresh, seen } = await basis(attempt)
      const decision = decide(situation)
      if (decision.steps.length === 0) {
        if (isFresh) return decision
      } else if (await commit(decision.steps, seen)) return decision
    }
    throw new StoreError('unavailable', 'The call changed again and again while it was decided on.')
  }

  async function locked<D>(keys: readonly string[], run: () => Promise<D>): Promise<D> {
    for (const key of keys) if (!locks.take(key)) await locks.acquire(key)
    try {
      return await run()
    } finally {
      for (const key of keys) locks.release(key)
    }
  }

  async function load(ref: Parameters<CallSteps['load']>[0]): Promise<Call | undefined> {
    const call = await read(() => database.load(ref))
    if (call === undefined) known.forget(ref)
    else known.note(call)
    return call
  }

  async function* pagesOf<T>(look: () => readonly T[]): AsyncIterableIterator<readonly T[]> {
    for (let from = 0; ; from += pageSize) {
      const page = await read(() => look().slice(from, from + pageSize))
      if (page.length > 0 || from === 0) yield page
      if (page.length < pageSize) return
    }
  }

  const calls: CallSteps & LiveCallReads = {
    transition: (ref, decide) =>
      locked([callKey(ref)], () =>
        settle<Call | undefined, ReturnType<typeof decide>>(async (attempt) => {
          const seen = attempt === 0 ? known.find(ref) : undefined
          return seen === undefined
            ? { situation: await load(ref), isFresh: true }
            : { situation: seen, isFresh: false }
        }, decide),
      ),
    invite(caller, callee, callUuid, decide) {
      const keys = [...new Set([participantKey(caller), participantKey(callee)])].sort()
      return locked(keys, () =>
        settle(async () => {
          const situation = await read(() => database.situation(caller, callee, callUuid))
          situation.live.forEach(known.note)
          return { situation, isFresh: true, seen: { caller, callee, live: situation.live } }
        }, decide),
      )
    },
    load,
    stepsAfter: (ref, version) => read(() => database.stepsAfter(ref, version)),
    note: known.note,
    liveCallsOf: (participant) => read(() => database.liveOf(participant)),
    inCall: (participants: readonly Participant[]) =>
      read(() => participants.map((participant) => database.isInCall(participant))),
    livePages: () => pagesOf(() => database.live()),
    dueRings: (from, to, limit) => read(() => database.dueRings(from, to, limit)),
    overPages: (since) => pagesOf(() => database.overSince(since)),
  }
  const outbox: Outbox = {
    rowOf: stepRows.find,
    leftOf: (ref) => read(() => database.leftOf(ref)),
    remove: (rows) => read(() => database.remove(rows)),
    claim: (limit) => read(() => database.claim(limit)),
    release: (rows, afterMs) => read(() => database.release(rows, afterMs)),
    oldest: () => read(() => database.oldest()),
  }
  const heartbeats: Heartbeats = {
    beat: (beat) => way.send(() => database.beat(beat)),
    now: () => way.send(() => database.now),
    leave: (node) => way.send(() => database.leave(node)),
    close: async () => {},
  }
  return { calls, outbox, heartbeats }
}
