// What one client, one connect and one call cost, and whether a load that was not measured for it takes what these foretell.
import { RedisClient, SQL } from 'bun'
import { type Load, type UnitCosts, type Work, workOf } from './capacity.ts'
import type { CallJob } from './jobs/job.ts'
import { settledRss } from './measure-memory.ts'
import { type Bench, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNodes, type Nodes, sharedPlaces, startNodes, startPostgres } from './nodes.ts'
import { PARTS, partsBetween, readParts } from './parts.ts'
import { readRss } from './proc.ts'
import { count } from './report.ts'

const CLIENTS = 1000
const CONCURRENCY = 64
/** The node reads Redis once a minute for each session. */
const IDLE_MS = 60_000
const EMPTY_MS = 10_000
/** What calls leave to do is done then: timelines, and what PostgreSQL cleans up and counts. */
const SETTLE_MS = 20_000
const PAIRS = 40
/** For each round. */
const CALLS = 100
/** Of both nodes: few at a time, as on each of many nodes, so that little is gathered. */
const CALLS_A_SECOND = 20
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }
/** What the costs have not seen: another number of nodes, pairs on one node among them, half as many calls a second, fewer clients. */
const CHECK = {
  nodes: 3,
  pairs: 45,
  calls: 60,
  callsPerSecond: 9,
  clients: 600,
} as const

interface Span extends Work {
  /** In which CPU time was counted; and in which the stores counted, whose statistics come later. */
  readonly seconds: number
  readonly askedSeconds: number
}

/** A load of this many calls, and what it took. */
interface Check {
  readonly made: number
  readonly load: Load
  readonly span: Span
}

export async function measureCapacity(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('capacity')
  if (missing !== undefined)
    return {
      name: 'capacity',
      tables: [],
      comparisons: [],
      notes: [missing],
      raw: null,
    }
  const { stores, note } = sharedPlaces(bench.placement, 1)
  const { postgres, stop } = await startPostgres(stores)
  try {
    const two = await startNodes(postgres, sharedPlaces(bench.placement, 2), bench.directory)
    const costs = await costsOf(bench, two).finally(() => two.stop())
    const three = await startNodes(postgres, sharedPlaces(bench.placement, CHECK.nodes), bench.directory)
    const check = await checkOf(bench, three).finally(() => three.stop())
    return report(costs, check, note)
  } finally {
    await stop()
  }
}

async function costsOf(bench: Bench, nodes: Nodes): Promise<UnitCosts> {
  const made = CALLS * bench.rounds
  await calls(bench, nodes, {
    calls: made,
    pairs: PAIRS,
    firstPair: 5000,
    spread: 'apart',
    perSecond: CALLS_A_SECOND,
  })
  bench.say('capacity: nodes without a client')
  await Bun.sleep(SETTLE_MS)
  const empty = await during(nodes, () => Bun.sleep(EMPTY_MS))
  const before = { rss: await rssOf(nodes), redis: await redisBytes(nodes) }
  bench.say(`capacity: ${CLIENTS} clients connect, and stay for a minute`)
  const { job, span: connecting } = await connect(bench, nodes, CLIENTS)
  const after = { rss: await rssOf(nodes), redis: await redisBytes(nodes) }
  const idle = await during(nodes, () => Bun.sleep(IDLE_MS))
  await bench.generators[0].release(job)
  bench.say(`capacity: ${made} calls between two nodes`)
  const stored = await storedBytes(nodes)
  const calling = await calls(bench, nodes, {
    ...{
      calls: made,
      pairs: PAIRS,
      firstPair: 7000,
      spread: 'apart',
      perSecond: CALLS_A_SECOND,
    },
  })
  const storedAfter = await storedBytes(nodes)
  const second = eachSecond(empty)
  const own = (span: Span, each: number) => times(minus(span, over(second, span)), 1 / each)
  return {
    node: times(second, 1 / 2),
    connected: times(minus(eachSecond(idle), second), 1 / CLIENTS),
    connect: own(connecting, CLIENTS),
    call: own(calling, made),
    memory: {
      node: before.rss / 2,
      nodeEach: (after.rss - before.rss) / CLIENTS,
      redisEach: (after.redis - before.redis) / CLIENTS,
    },
    stored: {
      rowsPerCall: (storedAfter.rows - stored.rows) / made,
      bytesPerCall: (storedAfter.bytes - stored.bytes) / made,
    },
  }
}

/** Clients who are connected, and calls of others; what both take together. */
async function checkOf(bench: Bench, nodes: Nodes): Promise<Check> {
  const { pairs, callsPerSecond, clients } = CHECK
  const made = CHECK.calls * bench.rounds
  const shape = {
    calls: made,
    pairs,
    spread: 'mixed',
    perSecond: callsPerSecond,
  } as const
  await calls(bench, nodes, {
    ...shape,
    perSecond: CALLS_A_SECOND,
    firstPair: 5000,
  })
  bench.say(`capacity: ${made} calls on three nodes, beside ${clients} clients`)
  const { job } = await connect(bench, nodes, clients)
  const span = await calls(bench, nodes, { ...shape, firstPair: 7000 })
  await bench.generators[0].release(job)
  const connected = clients + 2 * pairs
  const load = {
    nodes: CHECK.nodes,
    connected,
    connectsPerSecond: 0,
    callsPerSecond: made / span.seconds,
  }
  return { made, load, span }
}

async function connect(bench: Bench, nodes: Nodes, clients: number): Promise<{ job: number; span: Span }> {
  const { target } = nodes
  const [generator] = bench.generators
  const job = await generator.prepare({
    kind: 'connect',
    target,
    first: 0,
    count: clients,
    concurrency: CONCURRENCY,
  })
  const span = await during(nodes, () => generator.run(job, UNTIL_DONE))
  return { job, span }
}

async function calls(bench: Bench, nodes: Nodes, shape: Omit<CallJob, 'kind' | 'target'>): Promise<Span> {
  const [generator] = bench.generators
  const job = await generator.prepare({
    kind: 'call',
    target: nodes.target,
    ...shape,
  })
  const span = await during(nodes, () => generator.run(job, UNTIL_DONE))
  await generator.release(job)
  return span
}

async function during(nodes: Nodes, work: () => Promise<unknown>): Promise<Span> {
  const trips = await nodes.trips.read()
  const begin = performance.now()
  const before = readParts(nodes.parts)
  await work()
  const { seconds, cpuSeconds } = partsBetween(before, readParts(nodes.parts))
  const after = await nodes.trips.read()
  const since = (name: 'scripts' | 'transactions') => after[name] - trips[name]
  const asked = {
    scripts: since('scripts'),
    transactions: since('transactions'),
  }
  return {
    seconds,
    askedSeconds: (performance.now() - begin) / 1000,
    cpu: cpuSeconds,
    ...asked,
  }
}

const combine = (one: Work, other: Work, by: (a: number, b: number) => number): Work => ({
  cpu: {
    nodes: by(one.cpu.nodes, other.cpu.nodes),
    redis: by(one.cpu.redis, other.cpu.redis),
    postgres: by(one.cpu.postgres, other.cpu.postgres),
  },
  scripts: by(one.scripts, other.scripts),
  transactions: by(one.transactions, other.transactions),
})
const times = (work: Work, factor: number) => combine(work, work, (a) => a * factor)
/** What goes on each second, over the time of a span. */
const over = (second: Work, { seconds, askedSeconds }: Span): Work => ({
  cpu: times(second, seconds).cpu,
  scripts: second.scripts * askedSeconds,
  transactions: second.transactions * askedSeconds,
})
const eachSecond = (span: Span): Work => ({
  cpu: times(span, 1 / span.seconds).cpu,
  scripts: span.scripts / span.askedSeconds,
  transactions: span.transactions / span.askedSeconds,
})
/** A difference below zero is noise. */
const minus = (one: Work, other: Work) => combine(one, other, (a, b) => Math.max(0, a - b))

const nodePids = (nodes: Nodes) => nodes.parts.filter(({ name }) => name === 'nodes').map(({ pid }) => pid)

async function rssOf(nodes: Nodes): Promise<number> {
  await settledRss(nodePids(nodes).map((pid) => ({ pid })))
  return nodePids(nodes).reduce((sum, pid) => sum + readRss(pid), 0)
}

async function redisBytes({ redisUrl }: Nodes): Promise<number> {
  const redis = new RedisClient(redisUrl)
  const text = String(await redis.send('INFO', ['memory']))
  redis.close()
  return Number(/used_memory_dataset:(\d+)/.exec(text)?.[1])
}

async function storedBytes({ databaseUrl }: Nodes): Promise<{ rows: number; bytes: number }> {
  const sql = new SQL({ url: databaseUrl, max: 1 })
  const [row] = await sql`SELECT (SELECT count(*) FROM calls)::int + (SELECT count(*) FROM call_events)::int AS rows,
    (pg_total_relation_size('calls') + pg_total_relation_size('call_events'))::int AS bytes`
  await sql.close()
  return row
}

function report(costs: UnitCosts, { made, load, span }: Check, note: string): MeasurementResult {
  const us = (seconds: number) => (seconds * 1e6).toFixed(1)
  const row = (title: string, work: Work) => [
    title,
    ...PARTS.map((part) => us(work.cpu[part])),
    ...[work.scripts, work.transactions].map((each) => each.toFixed(3)),
  ]
  const { memory, stored } = costs
  // Calls are counted, and what stands goes on for as long as either was.
  const standing = over(workOf(costs, { ...load, callsPerSecond: 0 }), span)
  const foretold = combine(standing, times(costs.call, made), (a, b) => a + b)
  const figures: [string, (work: Work) => number][] = [
    ...PARTS.map((part): [string, (work: Work) => number] => [`CPU time, ${part}`, (work) => work.cpu[part]]),
    ['scripts of Redis', (work) => work.scripts],
    ['transactions of PostgreSQL', (work) => work.transactions],
  ]
  const head = ['µs CPU of', 'nodes', 'Redis', 'PostgreSQL', 'scripts', 'transactions']
  return {
    name: 'capacity',
    tables: [
      {
        title: 'Capacity: what one of each costs',
        head,
        rows: [
          row('a node, a second', costs.node),
          row('a client that is connected, a second', costs.connected),
          row('a client that connects', costs.connect),
          row('a call between two nodes', costs.call),
        ],
      },
      {
        title: 'Bytes',
        head: ['node', 'client, node', 'client, Redis', 'call, PostgreSQL', 'rows of a call'],
        rows: [
          [
            count(memory.node),
            count(memory.nodeEach),
            count(memory.redisEach),
            count(stored.bytesPerCall),
            stored.rowsPerCall.toFixed(1),
          ],
        ],
      },
      {
        title: `${CHECK.nodes} nodes, ${load.connected} clients, ${load.callsPerSecond.toFixed(0)} calls a second: foretold and measured`,
        head: ['', 'foretold', 'measured'],
        rows: figures.map(([name, figure]) => [name, figure(foretold).toFixed(2), figure(span).toFixed(2)]),
      },
    ],
    comparisons: figures.map(([name, figure]) =>
      comparison(`capacity, ${name}: measured`, 'foretold', [figure(span) / figure(foretold)], null),
    ),
    notes: [note],
    raw: { costs, load, span },
  }
}
