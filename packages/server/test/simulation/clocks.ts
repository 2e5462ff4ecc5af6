import type { Timers } from '../../src/ports/clock.ts'
import type { CallRow, EventRow, FaultRecord, Recording, Trace } from '../chaos/recording.ts'
import type { Random } from '../fuzz/random.ts'
import { type Cluster, startedAt } from './cluster.ts'
import type { Database } from './database.ts'
import { times } from './node.ts'

/** Time between two jumps, in ms: from this to twice this. */
const quietMs = 2_000
/** Every node has seen a jump of the database's clock, and moved its calls along, within this time. In ms. */
const noticedMs = 3_000
/** How far clocks jump at the most, in ms: by NTP, by an administrator, or by a machine that wakes up. */
const longest = [2_000, 20_000, 300_000] as const

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
      records.push({ kind: `clock of ${store} jumped`, target: store, from, until: at() })
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

/** A jump is noticed within this time: what a ring lasts is not known better. In ms. */
const ringSlackMs = 1_500

/**
 * A recording of a world whose database's clock jumped, as if it had not: each step has the moment at which it was committed, and
 * so have the ends in what phones heard, where they say what the database says.
 */
export function onOneClock(recording: Recording, { committedAt }: Pick<Database, 'committedAt'>): Recording {
  const events = recording.events.map(
    (event): EventRow => ({ ...event, at: committedAt(event.call_uuid, event.version) }),
  )
  const was = Map.groupBy(recording.events, ({ call_uuid }) => call_uuid)
  const is = Map.groupBy(events, ({ call_uuid }) => call_uuid)
  const calls = recording.calls.map((row) => translated(row, was.get(row.call_uuid) ?? [], is.get(row.call_uuid) ?? []))
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

/** What a row says of a step is when that step was. */
function translated(row: CallRow, was: readonly EventRow[], is: readonly EventRow[]): CallRow {
  const atOf = (type: string) => is.find((event) => event.type === type)?.at ?? null
  const last = is.at(-1)?.at ?? startedAt
  const began = is[0]?.at ?? startedAt
  const isRung = was[0]?.type === 'invited'
  return {
    ...row,
    started_at: began,
    ring_expires_at: isRung ? began + times.ringTimeoutMs - ringSlackMs : began,
    accepted_at: row.accepted_at === null ? null : atOf('accepted'),
    connected_at: row.connected_at === null ? null : atOf('connected'),
    ended_at: row.ended_at === null || row.ended_at !== was.at(-1)?.at ? row.ended_at : last,
  }
}
