// What one call asks of PostgreSQL and Redis, and what nodes ask that have nothing to do. Counts do not depend on the
// speed of a machine.
import { MESSAGES_PER_CALL } from './jobs/call-script.ts'
import type { CallJob } from './jobs/job.ts'
import type { Bench, MeasurementResult, Table } from './measurement.ts'
import { missingForNodes, type Nodes, sharedPlaces, startNodes, startPostgres } from './nodes.ts'
import { type PartsLoad, partsBetween, readParts } from './parts.ts'
import { COUNTING, readTally, type Tally, tallyBetween, withoutIdle } from './tally.ts'

const IDLE_MS = 60_000
/** After a start, and after calls: timelines, and what PostgreSQL cleans up. */
const SETTLE_MS = 5_000
/** One call is over before the next one begins on another pair. */
const CALLS_A_SECOND = 4
const PAIRS = 8
const WARMUP_PAIRS = 100
const CALLS = 5 * PAIRS
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }
/** A statement that comes less often than this in a call is not shown. */
const LEAST = 0.05
/** A longer text of a statement is cut, in characters. */
const SHOWN = 88

/** What nodes asked in a time, and the CPU time of them and of the stores. */
export interface Span {
  readonly tally: Tally
  /** In which the stores counted. */
  readonly seconds: number
  readonly load: PartsLoad
}

/** What one service asked. */
export interface Asked {
  readonly nodes: number
  readonly idle: Span
  /** For each call. What an idle service asks in the same time is subtracted. */
  readonly call: Tally
}

const WAYS = [
  { count: 1, spread: 'together' },
  { count: 2, spread: 'apart' },
] as const

export async function measureTrips(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('trips')
  if (missing !== undefined) return { name: 'trips', tables: [], comparisons: [], notes: [missing], raw: null }
  const { stores } = sharedPlaces(bench.placement, 1)
  const { postgres, stop } = await startPostgres(stores, COUNTING)
  const asked: Asked[] = []
  try {
    for (const { count, spread } of WAYS) {
      const nodes = await startNodes(postgres, sharedPlaces(bench.placement, count), bench.directory)
      try {
        bench.say(`trips: idle, nodes: ${count}`)
        const idle = await idleOf(nodes, IDLE_MS)
        bench.say(`trips: calls, nodes: ${count}`)
        asked.push({ nodes: count, idle, call: await callOf(bench.generators[0], nodes, idle, spread, CALLS) })
      } finally {
        await nodes.stop()
      }
    }
    return report(asked)
  } finally {
    await stop()
  }
}

/** What nodes without a client ask in this time, once what their start began is over. */
export async function idleOf(nodes: Nodes, ms: number): Promise<Span> {
  await Bun.sleep(SETTLE_MS)
  return during(nodes, () => Bun.sleep(ms))
}

/** What one call asks: an invite, its answer, twelve relays, and its end. */
export async function callOf(
  generator: Bench['generators'][0],
  nodes: Nodes,
  idle: Span,
  spread: (typeof WAYS)[number]['spread'],
  calls: number,
): Promise<Tally> {
  const shape: CallJob = { kind: 'call', target: nodes.target, pairs: PAIRS, calls, spread, perSecond: CALLS_A_SECOND }
  const warmup = await generator.prepare({ ...shape, calls: PAIRS, firstPair: WARMUP_PAIRS })
  const job = await generator.prepare(shape)
  await generator.run(warmup, UNTIL_DONE)
  await Bun.sleep(SETTLE_MS)
  const span = await during(nodes, async () => {
    await generator.run(job, UNTIL_DONE)
    await Bun.sleep(SETTLE_MS)
  })
  for (const each of [job, warmup]) await generator.release(each)
  return withoutIdle(span.tally, idle.tally, span.seconds / idle.seconds, calls)
}

async function during({ redisUrl, databaseUrl, parts }: Nodes, work: () => Promise<unknown>): Promise<Span> {
  const before = await readTally(redisUrl, databaseUrl)
  const begin = performance.now()
  const cpu = readParts(parts)
  await work()
  const load = partsBetween(cpu, readParts(parts))
  const after = await readTally(redisUrl, databaseUrl)
  return { tally: tallyBetween(before, after), seconds: (performance.now() - begin) / 1000, load }
}

const percentOfCore = (seconds: number, of: number) => `${((100 * seconds) / of).toFixed(2)} %`

function report(asked: readonly Asked[]): MeasurementResult {
  return {
    name: 'trips',
    tables: [
      {
        title: 'Trips: nodes that have nothing to do, a second',
        head: ['nodes', 'transactions', 'scripts', 'a core, each node', 'Redis', 'PostgreSQL'],
        rows: asked.map(({ nodes, idle: { tally, seconds, load } }) => [
          String(nodes),
          (tally.transactions / seconds).toFixed(1),
          ((tally.commands.get('evalsha') ?? 0) / seconds).toFixed(1),
          percentOfCore(load.cpuSeconds.nodes / nodes, load.seconds),
          percentOfCore(load.cpuSeconds.redis, load.seconds),
          percentOfCore(load.cpuSeconds.postgres, load.seconds),
        ]),
      },
      {
        title: `Trips: a call, one at a time, ${MESSAGES_PER_CALL} client messages`,
        head: ['nodes', 'transactions', 'scripts'],
        rows: asked.map(({ nodes, call }) => [
          String(nodes),
          call.transactions.toFixed(1),
          (call.commands.get('evalsha') ?? 0).toFixed(1),
        ]),
      },
      ...asked.flatMap(({ nodes, idle, call }) => [
        statements(`Trips: statements a second, idle, nodes: ${nodes}`, idle.tally, idle.seconds),
        statements(`Trips: statements of a call, nodes: ${nodes}`, call, 1),
        commands(`Trips: commands of Redis a second, idle, nodes: ${nodes}`, idle.tally, idle.seconds),
        commands(`Trips: commands of Redis in a call, nodes: ${nodes}`, call, 1),
      ]),
    ],
    comparisons: [],
    notes: [],
    raw: asked.map(({ nodes, idle, call }) => ({
      ...{ nodes, idle: { ...idle, tally: plain(idle.tally) } },
      call: plain(call),
    })),
  }
}

const plain = ({ transactions, statements, commands }: Tally) => ({
  transactions,
  statements: Object.fromEntries(statements),
  commands: Object.fromEntries(commands),
})

function statements(title: string, { statements }: Tally, over: number): Table {
  const shown = [...statements].filter(([, { calls }]) => calls / over >= LEAST)
  const rows = shown
    .sort(([, one], [, other]) => other.calls - one.calls)
    .map(([text, { calls, ms }]) => [text.slice(0, SHOWN), (calls / over).toFixed(2), ((1000 * ms) / over).toFixed(0)])
  return { title, head: ['', 'times', 'µs of PostgreSQL'], rows }
}

function commands(title: string, { commands }: Tally, over: number): Table {
  const shown = [...commands].filter(([, calls]) => calls / over >= LEAST)
  const rows = shown.sort(([, one], [, other]) => other - one).map(([name, calls]) => [name, (calls / over).toFixed(2)])
  return { title, head: ['', 'times'], rows }
}
