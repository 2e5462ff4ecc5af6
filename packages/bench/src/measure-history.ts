// How long a page of the history takes in stores with ten thousand calls and more.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openPostgres } from '../../server/src/stores/postgres/open.ts'
import { openSqlite } from '../../server/src/stores/sqlite/open.ts'
import { busy, few, fillPostgres, fillSqlite, product, type Size, uuidOf } from '../../server/test/support/million.ts'
import { askBackend } from './backend.ts'
import type { Lines } from './chart.ts'
import { type Bench, type Comparison, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNodes, startPostgres } from './nodes.ts'
import { sized } from './quick.ts'
import { count } from './report.ts'
import { alternate, type Rounds, roundNotes, series } from './rounds.ts'
import { median, ratios } from './statistics.ts'
import { type RunningSystem, startSystem } from './systems.ts'
import { productKey } from './tokens.ts'

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type Store = keyof typeof STORES
/** Calls that a store holds. RINGWIRE_BENCH_CALLS names one more size; ten million calls take 20 GB and a quarter of an hour. */
const STEPS = [10_000, 100_000, 1_000_000].map(sized)
const OF_BUSY = sized(1_000)
const PAGES = 50
const FLAT = { bound: 'at most', value: 1.5 } as const

const ASKS = ['newest', 'tenth', 'few', 'one'] as const
type Ask = (typeof ASKS)[number]
const TITLES: Record<Ask, string> = {
  newest: `100 of a user's ${OF_BUSY} calls`,
  tenth: 'the tenth page of them',
  few: `all of a user's ten`,
  one: 'one call',
}
/** The median time of each, in ms. */
type Times = Record<Ask, number>
type Place = `${Store} ${number}`

export async function measureHistory(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('PostgreSQL')
  const steps = [...STEPS, ...moreSteps()]
  const services = new Map<Place, RunningSystem>()
  const stops: (() => Promise<void>)[] = []
  try {
    for (const calls of steps) {
      services.set(`sqlite ${calls}`, await start(bench, await fillFile(bench, calls), stops))
      bench.say(`${count(calls)} calls are in SQLite`)
    }
    if (missing === undefined) {
      const { postgres, stop } = await startPostgres([])
      stops.push(stop)
      for (const calls of steps) {
        const url = await postgres.database()
        await (await openPostgres({ url })).close()
        await fillPostgres(url, sizeOf(calls))
        services.set(`postgres ${calls}`, await start(bench, { DATABASE_URL: url }, stops))
        bench.say(`${count(calls)} calls are in PostgreSQL`)
      }
    }
    const places = [...services.keys()]
    const measure = (place: Place) => timesOf(services.get(place)!.port, Number(place.split(' ')[1]))
    for (const place of places) await measure(place)
    const rounds = await alternate(bench, bench.rounds, places, measure)
    return report(rounds, steps, missing)
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

function moreSteps(): number[] {
  const named = process.env.RINGWIRE_BENCH_CALLS
  if (named === undefined) return []
  const calls = Number(named)
  if (!Number.isInteger(calls) || calls < 10_000) throw new Error('RINGWIRE_BENCH_CALLS is a whole number from 10000')
  return [calls]
}

const sizeOf = (calls: number): Size => ({ calls, ofBusy: OF_BUSY, deliveries: 0, isOnlyCalls: true })

async function fillFile({ directory }: Bench, calls: number): Promise<Record<string, string>> {
  const dataDir = join(directory, `history-${calls}`)
  mkdirSync(dataDir)
  await (await openSqlite({ dataDir, synchronous: 'FULL', exclusive: true })).close()
  fillSqlite(join(dataDir, 'ringwire.db'), sizeOf(calls))
  return { RINGWIRE_DATA_DIR: dataDir }
}

async function start(bench: Bench, settings: Record<string, string>, stops: (() => Promise<void>)[]) {
  const keys = `${productKey.id}:${productKey.secret}:${product}`
  const options = { settings: { ...settings, RINGWIRE_BOOTSTRAP_KEYS: keys } }
  const service = await startSystem('ringwire', bench.placement.serverCore, bench.directory, options)
  stops.push(service.stop)
  return service
}

async function timesOf(port: number, calls: number): Promise<Times> {
  const list = (of: typeof busy) => `/v1/server/calls?limit=100&role=${of.role}&user_id=${of.userId}`
  const paths: Record<Ask, string> = {
    newest: list(busy),
    tenth: await nextPage(port, list(busy), 9),
    few: list(few),
    one: `/v1/server/calls/${uuidOf(Math.round(calls / 2))}`,
  }
  const times = {} as Times
  for (const ask of ASKS) {
    const ms: number[] = []
    for (let n = 0; n < PAGES; n++) ms.push((await askBackend(port, { path: paths[ask] })).ms)
    times[ask] = median(ms)
  }
  return times
}

/** The path of the page that comes `pages` pages after the first one, or of the last page. */
async function nextPage(port: number, first: string, pages: number): Promise<string> {
  let path = first
  for (let n = 0; n < pages; n++) {
    const { text } = await askBackend(port, { path })
    const { next_cursor } = JSON.parse(text) as { next_cursor: string | null }
    if (next_cursor === null) break
    path = `${first}&cursor=${encodeURIComponent(next_cursor)}`
  }
  return path
}

function report(rounds: Rounds<Place, Times>, steps: number[], missing: string | undefined): MeasurementResult {
  const stores = missing === undefined ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const)
  const of = (store: Store, calls: number, ask: Ask) => series(rounds, `${store} ${calls}`, (times) => times[ask])
  const row = (store: Store, calls: number) => [
    `${STORES[store]}, ${count(calls)} calls`,
    ...ASKS.map((ask) => median(of(store, calls, ask)).toFixed(2)),
  ]
  const [least, most] = [Math.min(...steps), Math.max(...steps)]
  const flat = (store: Store, ask: Ask): Comparison => {
    const over = ratios(of(store, most, ask), of(store, least, ask))
    return comparison(`history on ${STORES[store]}, ${TITLES[ask]}`, `with ${count(least)} calls`, over, FLAT)
  }
  const chart: Lines = {
    kind: 'lines',
    name: 'history',
    title: "A page of 100 of a user's calls",
    x: 'calls in the store',
    y: 'ms',
    lines: stores.map((store) => ({
      label: STORES[store],
      points: steps.map((calls) => [calls, median(of(store, calls, 'newest'))] as const),
    })),
  }
  return {
    name: 'history',
    tables: [
      {
        title: `History: ms for an answer, the median of ${PAGES}`,
        head: ['', ...ASKS.map((ask) => TITLES[ask])],
        rows: stores.flatMap((store) => steps.map((calls) => row(store, calls))),
      },
    ],
    comparisons: stores.flatMap((store) => ASKS.map((ask) => flat(store, ask))),
    charts: [chart],
    notes: [...roundNotes(rounds), ...(missing === undefined ? [] : [missing])],
    raw: rounds,
  }
}
