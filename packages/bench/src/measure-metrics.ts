// What metrics cost: a scrape where 10,000 sockets are up, and a relay on a node that is scraped.
import { Generator } from './generators.ts'
import type { Result } from './jobs/job.ts'
import { WIDEST_WINDOW } from './jobs/window.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { cpuBetween, readCpu } from './proc.ts'
import { count, microseconds, percent } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { median, percentile, ratios } from './statistics.ts'
import { type ObservedSystem, startObserved } from './systems.ts'

const PAIRS = 100
const WARMUP_MS = 1500
/** In the relay, as often as anybody would ask; Prometheus asks every 15 s or more. */
const SCRAPE_EVERY_MS = 1000

/** Two processes hold the sockets: one would come to the usual limit of open files. */
const HOLDERS = 2
const PAIRS_HELD = 2500
const SCRAPES = 100
const PAUSE_MS = 50

const WAYS = ['off', 'on'] as const
type Way = (typeof WAYS)[number]
type Pair = Record<Way, Result[]>
/** What drifts hits both alike. */
const ORDER: readonly Way[] = ['off', 'on', 'on', 'off', 'on', 'off', 'off', 'on']
const TITLES: Record<Way, string> = { off: 'no listener for operators', on: 'asked for metrics every second' }

interface Scrapes {
  milliseconds: number[]
  cpuSeconds: number
  bytes: number
  seriesBefore: number
  series: number
}

export async function measureMetrics(bench: Bench): Promise<MeasurementResult> {
  const scrapes = await scrapeMany(bench)
  return report(scrapes, await alternate(bench, bench.rounds, ['pair'], () => relayPair(bench), othersShares))
}

async function scrapeMany({ placement, directory }: Bench): Promise<Scrapes> {
  const server = await startObserved(placement.serverCore, directory)
  const generators = Array.from({ length: HOLDERS }, () => new Generator(placement.generatorCores[0] ?? null))
  try {
    const hold = (i: number, pairs: number) =>
      generators[i]!.prepare({ kind: 'relay', target: targetOf(server), pairs, firstPair: i * PAIRS_HELD })
    const first = await hold(0, 1)
    const seriesBefore = seriesIn(await scrape(server))
    await generators[0]!.release(first)
    for (let i = 0; i < HOLDERS; i++) await hold(i, PAIRS_HELD)
    const text = await scrape(server)
    const sockets = Number(/^ringwire_connections (\d+)$/m.exec(text)?.[1])
    if (sockets !== 2 * HOLDERS * PAIRS_HELD) throw new Error(`${sockets} sockets are up`)
    const milliseconds: number[] = []
    const before = readCpu(server.pid)
    for (let i = 0; i < SCRAPES; i++) {
      const begin = performance.now()
      await scrape(server)
      milliseconds.push(performance.now() - begin)
      await Bun.sleep(PAUSE_MS)
    }
    const cpuSeconds = cpuBetween(before, readCpu(server.pid)) / SCRAPES
    return { milliseconds, cpuSeconds, bytes: text.length, seriesBefore, series: seriesIn(text) }
  } finally {
    for (const generator of generators) await generator.stop()
    await server.stop()
  }
}

async function scrape({ adminPort }: ObservedSystem): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`)
  if (response.status !== 200) throw new Error(`/metrics: ${response.status}`)
  return response.text()
}

const seriesIn = (text: string) => text.split('\n').filter((line) => /^ringwire_/.test(line)).length

/**
 * Both in turns, in an order that favours none, on processes that are new in each round: how one was compiled is worth
 * more than what is measured here.
 */
async function relayPair({ placement, directory, generators: [generator], seconds }: Bench): Promise<Pair> {
  const servers = {
    off: await startObserved(placement.serverCore, directory, false),
    on: await startObserved(placement.serverCore, directory),
  }
  try {
    const jobs = {} as Record<Way, number>
    for (const way of WAYS) {
      jobs[way] = await generator.prepare({ kind: 'relay', target: targetOf(servers[way]), pairs: PAIRS, firstPair: 0 })
      await generator.run(jobs[way], { window: WIDEST_WINDOW, warmupMs: WARMUP_MS, measureMs: 1 })
    }
    const slices: Record<Way, Result[]> = { off: [], on: [] }
    for (const way of ORDER) {
      const scraper = way === 'on' ? setInterval(() => void scrape(servers.on), SCRAPE_EVERY_MS) : undefined
      slices[way].push(
        await generator.run(jobs[way], { window: WIDEST_WINDOW, warmupMs: 100, measureMs: seconds * 1000 }),
      )
      clearInterval(scraper)
    }
    for (const way of WAYS) await generator.release(jobs[way])
    return slices
  } finally {
    for (const way of WAYS) await servers[way].stop()
  }
}

const cpuPerMessage = ({ load, count }: Result) => load.serverCpuSeconds / count
const othersShares = ({ off, on }: Pair) => [...off, ...on].map(({ load }) => load.othersShare)

function report(scrapes: Scrapes, rounds: Rounds<'pair', Pair>): MeasurementResult {
  const { milliseconds, cpuSeconds, bytes, seriesBefore, series: seriesAfter } = scrapes
  const of = (way: Way, figure: (value: Result) => number) =>
    series(rounds, 'pair', (slices) => median(slices[way].map(figure)))
  const row = (way: Way) => {
    const middle = (figure: (value: Result) => number) => median(of(way, figure))
    return [
      TITLES[way],
      count(middle(({ count, load }) => count / load.seconds)),
      percent(middle(({ load }) => load.serverShare)),
      microseconds(middle(cpuPerMessage)),
    ]
  }
  const ms = (value: number) => value.toFixed(1)
  return {
    name: 'metrics',
    tables: [
      {
        title: `Scrapes: ${SCRAPES}, with ${count(2 * HOLDERS * PAIRS_HELD)} sockets in ${count(HOLDERS * PAIRS_HELD)} calls`,
        head: ['', 'p50, ms', 'p99, ms', 'most, ms', 'ms CPU each', 'KB', 'series'],
        rows: [
          [
            '/metrics',
            ms(median(milliseconds)),
            ms(percentile(milliseconds, 0.99)),
            ms(Math.max(...milliseconds)),
            ms(cpuSeconds * 1000),
            (bytes / 1024).toFixed(0),
            String(seriesAfter),
          ],
        ],
      },
      {
        title: `Relay: ${PAIRS} pairs, ${WIDEST_WINDOW} messages in flight per pair, on new processes in each round`,
        head: ['', 'msg/s', 'server CPU', 'µs CPU/msg'],
        rows: WAYS.map(row),
      },
    ],
    comparisons: [
      comparison('metrics, ms until a scrape is answered, p99', 'the target itself', [percentile(milliseconds, 0.99)], {
        bound: 'at most',
        value: 20,
      }),
      comparison(
        'metrics, CPU time of a relayed message',
        'without metrics',
        ratios(of('on', cpuPerMessage), of('off', cpuPerMessage)),
        { bound: 'at most', value: 1.02 },
      ),
    ],
    notes: [
      `With two people there were ${seriesBefore} series, with ${count(2 * HOLDERS * PAIRS_HELD)} there were ${seriesAfter}.`,
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
    ],
    raw: { scrapes, rounds },
  }
}
