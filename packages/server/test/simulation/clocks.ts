import type { Timers } from '../../src/ports/clock.ts'
import type { CallRow, EventRow, FaultRecord, Recording, Trace } from '../chaos/recording.ts'
import type { Random } from '../fuzz/random.ts'
import { type Cluster, type Span, startedAt } from './cluster.ts'
import type { Database } from './database.ts'
import { times } from './node.ts'

/** Time between two jumps, in ms: from this to twice this. */
const quietMs = 2_000
/** Every node has seen a jump of the database's clock, and moved its calls along, within this time. In ms. */
const noticedMs = 3_000
/** How far clocks jump at the most, in ms: by NTP, by an administrator, or by a machine that wakes up. */
const longest = [2_000, 20_000, 300_000] as const

const jumped = (store: 'PostgreSQL' | 'Redis') => `clock of ${store} jumped`

export interface JumpsOptions {
  readonly cluster: Cluster
  readonly random: Random
  readonly timers: Timers
  readonly at: () => number
}

/**
 * The wall clocks of the stores jump forth and back, while time goes on. Nodes have no clock of their own in a simulated world, as
 * they go by that of the database.
 */
export function createJumps({ cluster, random, timers, at }: JumpsOptions) {
  const records: FaultRecord[] = []
  let isOver = false

  async function run(): Promise<void> {
    for (;;) {
      await timers.sleep(quietMs + random.int(quietMs))
      if (isOver) return
      const store = random.chance(0.7) ? 'PostgreSQL' : 'Redis'
      const ms = (random.chance(0.5) ? 1 : -1) * (500 + random.int(random.pick(longest)))
      const from = at()
      if (store === 'Redis') cluster.redis.jump(ms)
      else cluster.database.jump(ms)
      await timers.sleep(noticedMs)
      records.push({ kind: jumped(store), target: store, from, until: at() })
    }
  }

  return {
    records,
    run,
    stop() {
      isOver = true
    },
  }
}

/** What of a world says when something really was. */
interface Lived extends Pick<Cluster, 'starts'> {
  readonly database: Pick<Database, 'committedAt'>
}

/** A jump is noticed within this time: what a ring lasts is not known better. In ms. */
const ringSlackMs = 1_500

/**
 * A recording of a world whose database's clock jumped, as if it had not: each step has the moment at which it was committed, and
 * so have the ends in what phones heard, where they say what the database says.
 */
export function onOneClock(recording: Recording, { database, starts }: Lived): Recording {
  const { committedAt } = database
  const unaware = unawareIn(recording.header.faults, starts)
  const events = recording.events.map(
    (event): EventRow => ({ ...event, at: committedAt(event.call_uuid, event.version).at }),
  )
  const was = Map.groupBy(recording.events, ({ call_uuid }) => call_uuid)
  const is = Map.groupBy(events, ({ call_uuid }) => call_uuid)
  const calls = recording.calls.map((row) => {
    const steps = was.get(row.call_uuid) ?? []
    const waitedMs = committedAt(row.call_uuid, 1).shown - (steps[0]?.at ?? 0)
    return translated(row, steps, is.get(row.call_uuid) ?? [], Math.max(0, waitedMs), unaware)
  })
  const before = new Map(recording.calls.map((row) => [row.call_uuid, row]))
  const after = new Map(calls.map((row) => [row.call_uuid, row]))
  const translate = (trace: Trace): Trace => ({
    ...trace,
    entries: trace.entries.map((entry) => {
      const { ended_at: endedAt, call_uuid: call = '' } = (entry.kind === 'in' && entry.frame.data) || {}
      if (entry.kind !== 'in' || typeof endedAt !== 'string') return entry
      const isSame = Date.parse(endedAt) === before.get(call)?.ended_at
      const now = after.get(call)?.ended_at
      if (!isSame || now == null) return entry
      return {
        ...entry,
        frame: { ...entry.frame, data: { ...entry.frame.data, ended_at: new Date(now).toISOString() } },
      }
    }),
  })
  const tracesApart = recording.tracesApart?.map(translate)
  return { ...recording, events, calls, traces: recording.traces.map(translate), ...(tracesApart && { tracesApart }) }
}

/**
 * A node that starts right after a jump does not know of it until the others have said so: it may take a ring for over, and what
 * it writes itself is off by the jump (docs/decisions/0005-clocks.md).
 */
function unawareIn(faults: readonly FaultRecord[], starts: readonly Span[]): Span[] {
  const jumps = faults.filter(({ kind }) => kind === jumped('PostgreSQL'))
  return starts.flatMap((start) =>
    jumps
      .filter((jump) => start.from < jump.until && jump.from < start.until)
      .map((jump) => ({ from: Math.max(start.from, jump.from), until: jump.until })),
  )
}

/** What a row says of a step is when that step was. `waitedMs`: how long it rang before its commit. */
function translated(
  row: CallRow,
  was: readonly EventRow[],
  is: readonly EventRow[],
  waitedMs: number,
  unaware: readonly Span[],
): CallRow {
  const atOf = (type: string) => is.find((event) => event.type === type)?.at ?? null
  const last = is.at(-1)?.at ?? startedAt
  const began = is[0]?.at ?? startedAt
  const isJudged = !unaware.some(({ from, until }) => began < startedAt + until && startedAt + from < last)
  const isRung = was[0]?.type === 'invited' && isJudged
  return {
    ...row,
    started_at: began,
    ring_expires_at: isRung ? began + times.ringTimeoutMs - ringSlackMs - waitedMs : began,
    accepted_at: row.accepted_at === null ? null : atOf('accepted'),
    connected_at: row.connected_at === null ? null : atOf('connected'),
    ended_at: row.ended_at === null || row.ended_at !== was.at(-1)?.at ? row.ended_at : last,
  }
}
