import { callKey, type Participant, participantKey } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import type { Heartbeats } from '../../src/cluster/heartbeats.port.ts'
import { type CallSteps, type LiveCallReads, pageSize } from '../../src/ports/call-store.ts'
import type { Timers } from '../../src/ports/clock.ts'
import type { Groups } from '../../src/ports/groups.ts'
import type { Outbox } from '../../src/ports/outbox.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { createGroupCommit } from '../../src/stores/postgres/group-commit.ts'
import { createCallSteps, type Seen } from '../../src/stores/sql/call-steps.ts'
import { createStepRows } from '../../src/stores/sql/step-rows.ts'
import type { Database } from './database.ts'
import type { Way } from './way.ts'

/** No request to the database takes longer, in ms. */
const limitMs = 5_000
const [firstBackoffMs, maxBackoffMs] = [20, 1_000]
const [readers, writers] = [4, 2]

/** A transition on its way to the database. */
interface Write {
  readonly steps: readonly Step[]
  readonly seen: Seen | undefined
  readonly keys: readonly string[]
}

/** Connections that carry one statement at a time, as `stores/postgres/connections.ts` has them. */
class Pool {
  private readonly idle: Way[]
  private readonly waiting: (() => void)[] = []
  private readonly timers: Timers

  constructor(ways: readonly Way[], timers: Timers) {
    this.idle = [...ways]
    this.timers = timers
  }

  get free(): number {
    return this.idle.length
  }

  /** What is `repeatable` is sent again where its connection was lost. */
  async run<T>(work: () => T, isRepeatable: boolean, until = this.timers.monotonic() + limitMs): Promise<T> {
    while (this.idle.length === 0) await new Promise<void>((resolve) => this.waiting.push(resolve))
    const way = this.idle.pop() as Way
    try {
      return await this.carryOut(way, work, isRepeatable, until)
    } finally {
      this.idle.push(way)
      this.waiting.shift()?.()
    }
  }

  private async carryOut<T>(way: Way, work: () => T, isRepeatable: boolean, until: number): Promise<T> {
    const { timers } = this
    for (let backoffMs = firstBackoffMs; ; backoffMs = Math.min(maxBackoffMs, backoffMs * 2)) {
      const leftMs = until - timers.monotonic()
      if (leftMs < 1) throw new StoreError('unavailable', 'the database cannot be reached')
      try {
        return await way.send(work, leftMs)
      } catch (error) {
        const isOver = !(error instanceof StoreError) || (error.kind === 'unknown' && !isRepeatable)
        if (isOver) throw error
        await timers.sleep(Math.min(backoffMs, Math.max(0, until - timers.monotonic())))
      }
    }
  }
}

/** What one node has of the database. How it decides, and what it writes at once, is as on PostgreSQL. */
export function databasePorts(database: Database, connect: () => Way, timers: Timers) {
  const ways = Array.from({ length: readers + writers + 1 }, connect)
  const [beating, ...others] = ways as [Way, ...Way[]]
  const reading = new Pool(others.slice(0, readers), timers)
  const writing = new Pool(others.slice(readers), timers)
  const stepRows = createStepRows()
  const read = <T>(look: () => T, until?: number): Promise<T> => reading.run(look, true, until)
  const commits = createGroupCommit<Write>(
    {
      get free() {
        return writing.free
      },
      write: (batch) => writing.run(() => batch.map(({ steps, seen }) => database.commit(steps, seen)), false),
    },
    timers,
  )
  const { transition, invite, foresee, load, note } = createCallSteps({
    reads: {
      load: (ref, until) => read(() => database.load(ref), until),
      situation: (caller, callee, callUuid, until) => read(() => database.situation(caller, callee, callUuid), until),
      foresee: (caller, callee, callUuid) => read(() => database.situation(caller, callee, callUuid)),
    },
    commit: (steps, seen, _, deadline) => commits.commit(writeOf(steps, seen), deadline),
    stepRows,
    limitMs,
    monotonic: timers.monotonic,
  })

  /** What changes while it is read comes as it was. */
  async function* pagesOf<T>(look: () => readonly T[]): AsyncIterableIterator<readonly T[]> {
    const all = await read(look)
    for (let from = 0; from === 0 || from < all.length; from += pageSize) yield all.slice(from, from + pageSize)
  }

  const calls: CallSteps & LiveCallReads = {
    transition,
    invite,
    foresee,
    load,
    note,
    stepsAfter: (ref, version) => read(() => database.stepsAfter(ref, version)),
    liveCallsOf: (participant) => read(() => database.liveCallsOf(participant)),
    inCall: (participants: readonly Participant[]) =>
      read(() => participants.map((participant) => database.isInCall(participant))),
    lastAnswered: (participants: readonly Participant[]) =>
      read(() => participants.map((participant) => database.lastAnswered(participant))),
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
  const beats = new Pool([beating], timers)
  const beat = <T>(work: () => T, ms: number) => beats.run(work, true, timers.monotonic() + ms)
  const heartbeats: Heartbeats = {
    beat: (said, ms) => beat(() => database.beat(said), ms),
    now: (ms) => beat(() => database.now, ms),
    jump: (jumpedMs, known, ms) => beat(() => database.agree(jumpedMs, known), ms),
    leave: (node, ms) => beat(() => database.leave(node), ms),
    close: async () => {},
  }
  const groups: Pick<Groups, 'get'> = { get: (name) => read(() => database.group(name)) }
  return { calls, outbox, groups, heartbeats, ways, commits: () => commits.counts.commits }
}

function writeOf(steps: readonly Step[], seen: Seen | undefined): Write {
  const keys = steps.map(({ call }) => callKey(call))
  if (seen !== undefined) keys.push(participantKey(seen.caller), participantKey(seen.callee))
  return { steps, seen, keys }
}
