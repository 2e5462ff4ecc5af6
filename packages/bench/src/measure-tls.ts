// What encryption costs: the relay and connects with TLS inside the service and with TLS in nginx before it, over the same
// service without TLS in the same rounds.
import { type Certificate, hasOpenssl, makeCertificate } from './certificate.ts'
import type { Result, Target } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, comparison, type Goal, type MeasurementResult, targetOf } from './measurement.ts'
import { hasNginx, startNginx } from './nginx.ts'
import { quiet } from './proc.ts'
import { sized } from './quick.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const PAIRS = sized(100)
const FEW = 4
const WARMUP_MS = 100
const FIRST_WARMUP_MS = sized(1500)
/** nginx has two files for each, and an account has 1,024 at first. */
const CONNECTIONS = sized(400)
const CONCURRENCY = 64
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }
/** The generator has to have this share of its time left: it encrypts what the server decrypts. */
const ENOUGH_IDLE = 0.05
/** A server that used less of its core while clients connected was waiting for them. */
const ENOUGH_BUSY = 0.85

type Way = 'plain' | 'inside' | 'nginx'
const TITLES: Record<Way, string> = {
  plain: 'Ringwire, no TLS',
  inside: 'TLS inside the service',
  nginx: 'TLS in nginx, on the same core',
}

interface Slices {
  saturated: Result
  few: Result
  single: Result
  connects: Result
}

interface Running {
  target: Target
  stop(): Promise<void>
}

export async function measureTls(bench: Bench): Promise<MeasurementResult> {
  if (!hasOpenssl()) return notMeasured('tls: not measured, openssl is missing')
  const certificate = makeCertificate(bench.directory)
  const ways: Way[] = hasNginx() ? ['plain', 'inside', 'nginx'] : ['plain', 'inside']
  const running = new Map<Way, Running>()
  const jobs = new Map<Way, number>()
  const [generator] = bench.generators
  try {
    for (const way of ways) {
      const started = await start(way, bench, certificate)
      running.set(way, started)
      jobs.set(way, await generator.prepare({ kind: 'relay', target: started.target, pairs: PAIRS, firstPair: 0 }))
      await generator.run(jobs.get(way)!, { window: WIDEST_WINDOW, warmupMs: FIRST_WARMUP_MS, measureMs: 1 })
      await connects(bench, started.target)
    }
    const measure = (way: Way) => slices(bench, jobs.get(way)!, running.get(way)!.target)
    const rounds = await alternate(bench, bench.rounds, ways, measure, othersShares)
    for (const job of jobs.values()) await generator.release(job)
    return report(rounds, ways)
  } finally {
    for (const { stop } of running.values()) await stop()
  }
}

const notMeasured = (note: string): MeasurementResult => ({
  name: 'tls',
  tables: [],
  comparisons: [],
  notes: [note],
  raw: null,
})

async function start(
  way: Way,
  { placement: { serverCore }, directory }: Bench,
  certificate: Certificate,
): Promise<Running> {
  if (way === 'plain') {
    const server = await startSystem('ringwire', serverCore, directory)
    return { target: targetOf(server), stop: server.stop }
  }
  if (way === 'inside') {
    const settings = { RINGWIRE_TLS_CERT: certificate.cert, RINGWIRE_TLS_KEY: certificate.key }
    const server = await startSystem('secure', serverCore, directory, { settings })
    return { target: targetOf(server), stop: server.stop }
  }
  const settings = { RINGWIRE_TRUST_PROXY: '1' }
  const server = await startSystem('secure', serverCore, directory, { settings })
  try {
    const { port, pids, stop } = await startNginx(server.port, certificate, serverCore, directory)
    const stopBoth = async () => {
      await stop()
      await server.stop()
    }
    return { target: { ...targetOf(server), port, morePids: pids }, stop: stopBoth }
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function slices(bench: Bench, job: number, target: Target): Promise<Slices> {
  const measureMs = bench.seconds * 1000
  const run = (window: number) => bench.generators[0].run(job, { window, warmupMs: WARMUP_MS, measureMs })
  return {
    saturated: await run(WIDEST_WINDOW),
    few: await run(FEW),
    single: await run(1),
    connects: await connects(bench, target),
  }
}

async function connects({ generators: [generator] }: Bench, target: Target): Promise<Result> {
  const clients = { first: PAIRS, count: CONNECTIONS, concurrency: CONCURRENCY }
  const job = await generator.prepare({ kind: 'connect', target, ...clients })
  const result = await generator.run(job, UNTIL_DONE)
  await generator.release(job)
  for (const pid of [target.pid, ...(target.morePids ?? [])]) await quiet(pid)
  return result
}

const perSecond = (result: Result) => result.count / result.load.seconds
const saturated = (value: Slices) => perSecond(value.saturated)
const few = (value: Slices) => perSecond(value.few)
const single = (value: Slices) => perSecond(value.single)
const connected = (value: Slices) => perSecond(value.connects)
const cpuEach = ({ load, count }: Result) => load.serverCpuSeconds / count
const othersShares = (value: Slices) => Object.values<Result>({ ...value }).map(({ load }) => load.othersShare)

function report(rounds: Rounds<Way, Slices>, ways: readonly Way[]): MeasurementResult {
  const head = ['', 'msg/s', 'server CPU', 'µs CPU/msg', 'idle gen.']
  const more = ['four in flight', 'idle gen.', 'one in flight', 'idle gen.', 'connects/s', 'server CPU', 'µs CPU each']
  return {
    name: 'tls',
    tables: [
      {
        title: `TLS: ${PAIRS} pairs, ${WIDEST_WINDOW} messages in flight per pair, then four, then one; ${CONNECTIONS} clients that connect, ${CONCURRENCY} at a time`,
        head: [...head, ...more],
        rows: ways.map((way) => row(rounds, way)),
      },
    ],
    comparisons: [
      ...compare(rounds, ways, 'relay, saturated', saturated, { bound: 'at least', value: 0.6 }),
      ...compare(rounds, ways, 'relay, four in flight', few),
      ...compare(rounds, ways, 'relay, one in flight', single),
      ...compare(rounds, ways, 'connects', connected),
      ...compare(rounds, ways, 'CPU time of a connect', (value) => cpuEach(value.connects)),
    ],
    notes: [
      ...(ways.includes('nginx') ? [] : ['nginx: not measured, it is missing']),
      ...ways.flatMap((way) => bottleneck(rounds, way)),
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
    ],
    raw: rounds,
  }
}

function compare(
  rounds: Rounds<Way, Slices>,
  ways: readonly Way[],
  what: string,
  figure: (value: Slices) => number,
  goal: Goal | null = null,
) {
  const plain = series(rounds, 'plain', figure)
  return ways
    .slice(1)
    .map((way) =>
      comparison(
        `${what}, ${TITLES[way]}`,
        'no TLS',
        ratios(series(rounds, way, figure), plain),
        way === 'inside' ? goal : null,
      ),
    )
}

function row(rounds: Rounds<Way, Slices>, way: Way): string[] {
  const middle = (figure: (value: Slices) => number) => median(series(rounds, way, figure))
  return [
    TITLES[way],
    count(middle(saturated)),
    percent(middle((value) => value.saturated.load.serverShare)),
    microseconds(middle((value) => cpuEach(value.saturated))),
    percent(middle((value) => value.saturated.generatorIdle)),
    count(middle(few)),
    percent(middle((value) => value.few.generatorIdle)),
    count(middle(single)),
    percent(middle((value) => value.single.generatorIdle)),
    count(middle(connected)),
    percent(middle((value) => value.connects.load.serverShare)),
    microseconds(middle((value) => cpuEach(value.connects))),
  ]
}

/** Says where the load could not give the server more to do. */
function bottleneck(rounds: Rounds<Way, Slices>, way: Way): string[] {
  const idle = median(series(rounds, way, (value) => value.saturated.generatorIdle))
  const busy = median(series(rounds, way, (value) => value.connects.load.serverShare))
  const relay = `${TITLES[way]}, saturated: the generator was the bottleneck (idle for ${percent(idle)}).`
  const connect = `${TITLES[way]}, connects: the server used ${percent(busy)} of its core, so the generator was the bottleneck. The CPU time says more.`
  return [...(idle < ENOUGH_IDLE ? [relay] : []), ...(busy < ENOUGH_BUSY ? [connect] : [])]
}
