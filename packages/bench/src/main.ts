// `npm run bench`: runs the measurements one after another and prints tables and ratios.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { CoreDistance } from './core-distance.ts'
import { Generator } from './generators.ts'
import { measureCall } from './measure-call.ts'
import { measureCapacity } from './measure-capacity.ts'
import { measureClients } from './measure-clients.ts'
import { measureConnect } from './measure-connect.ts'
import { measureExtended } from './measure-extended.ts'
import { measureFloods } from './measure-floods.ts'
import { measureGroup } from './measure-group.ts'
import { measureHistory } from './measure-history.ts'
import { measureHook } from './measure-hook.ts'
import { measureLarge } from './measure-large.ts'
import { measureLoad } from './measure-load.ts'
import { measureMedia } from './measure-media.ts'
import { measureMemory } from './measure-memory.ts'
import { measureMetrics } from './measure-metrics.ts'
import { measureNetwork } from './measure-network.ts'
import { measureNodes } from './measure-nodes.ts'
import { measurePush } from './measure-push.ts'
import { measureRelay } from './measure-relay.ts'
import { measureResume } from './measure-resume.ts'
import { measureRing } from './measure-ring.ts'
import { measureScale } from './measure-scale.ts'
import { measureSip } from './measure-sip.ts'
import { measureStart } from './measure-start.ts'
import { measureTimeline } from './measure-timeline.ts'
import { measureTls } from './measure-tls.ts'
import { measureToken } from './measure-token.ts'
import { measureTraces } from './measure-traces.ts'
import { measureTrips } from './measure-trips.ts'
import { measureWebhooks } from './measure-webhooks.ts'
import { measureWorkers } from './measure-workers.ts'
import type { Bench, MeasurementName, MeasurementResult } from './measurement.ts'
import { type Options, parseOptions, USAGE } from './options.ts'
import { PICTURES, pageWith } from './page.ts'
import { plotOf } from './plot.ts'
import { chartOf } from './plot-charts.ts'
import { placement } from './process.ts'
import { formatComparisons, formatMeasurement } from './report.ts'
import { nodeBinary } from './systems.ts'

const run: Record<MeasurementName, (bench: Bench) => Promise<MeasurementResult>> = {
  relay: measureRelay,
  extended: measureExtended,
  connect: measureConnect,
  resume: measureResume,
  memory: measureMemory,
  clients: measureClients,
  call: measureCall,
  sip: measureSip,
  token: measureToken,
  media: measureMedia,
  nodes: measureNodes,
  ring: measureRing,
  group: measureGroup,
  hook: measureHook,
  scale: measureScale,
  workers: measureWorkers,
  capacity: measureCapacity,
  trips: measureTrips,
  start: measureStart,
  floods: measureFloods,
  metrics: measureMetrics,
  webhooks: measureWebhooks,
  push: measurePush,
  timeline: measureTimeline,
  traces: measureTraces,
  large: measureLarge,
  history: measureHistory,
  load: measureLoad,
  tls: measureTls,
  network: measureNetwork,
}

const MOST_GENERATORS = 3

interface Failure {
  name: MeasurementName
  message: string
}

async function measureAll(bench: Bench, options: Options, onMeasured: (result: MeasurementResult) => void) {
  const results: MeasurementResult[] = []
  const failures: Failure[] = []
  for (const name of options.only) {
    bench.say(`${name} …`)
    const start = performance.now()
    try {
      const result = await run[name](bench)
      results.push(result)
      console.log(`\n${formatMeasurement(result)}`)
      onMeasured(result)
    } catch (error) {
      failures.push({ name, message: String(error) })
      console.log(`\n${name}: NOT MEASURED. ${String(error)}`)
    }
    bench.say(`${name} took ${((performance.now() - start) / 1000).toFixed(0)} s`)
  }
  return { results, failures }
}

/** Draws what was measured, each picture into a file of its own. */
function plot(directory: string, results: readonly MeasurementResult[], about: string): void {
  mkdirSync(directory, { recursive: true })
  // Memory that shrank while clients came has no place on an axis of ratios.
  const comparisons = results
    .flatMap((result) => result.comparisons)
    .filter(({ ratio }) => ratio.min > 0 && Number.isFinite(ratio.max))
  if (comparisons.length > 0) writeFileSync(join(directory, 'ratios.svg'), plotOf(comparisons, about))
  drawCharts(directory, results)
}

function drawCharts(directory: string, results: readonly MeasurementResult[]): void {
  mkdirSync(directory, { recursive: true })
  for (const chart of results.flatMap(({ charts = [] }) => charts)) {
    writeFileSync(join(directory, `${chart.name}.svg`), chartOf(chart))
  }
}

/** The chapter of what was measured, and its pictures. */
function writeDocument(result: MeasurementResult, about: readonly string[]): void {
  const docs = join(import.meta.dir, '..', '..', '..', 'docs')
  const page = join(docs, 'benchmark-results.md')
  const date = new Date().toISOString().slice(0, 10)
  writeFileSync(page, pageWith(existsSync(page) ? readFileSync(page, 'utf8') : '', { results: [result], about, date }))
  drawCharts(join(docs, PICTURES), [result])
}

function machine(note: string): string[] {
  const { stdout } = Bun.spawnSync([nodeBinary(), '--version'])
  return [
    `${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}); ${note}.`,
    `Bun ${Bun.version}; PeerServer and Socket.IO on Node ${stdout.toString().trim().slice(1)}.`,
  ]
}

async function main(): Promise<number> {
  const parsed = parseOptions(process.argv.slice(2))
  if (!parsed.ok) {
    console.error(`${parsed.message}\n${USAGE}`)
    return 2
  }
  const { options } = parsed
  const directory = mkdtempSync(join(tmpdir(), 'ringwire-bench-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
  const place = placement()
  const [generatorCore, ...moreCores] = place.generatorCores
  const generators: [Generator, ...Generator[]] = [new Generator(generatorCore ?? null)]
  for (const core of moreCores.slice(0, MOST_GENERATORS - 1)) generators.push(new Generator(core))
  const pinnedBoth = place.serverCore !== null && generatorCore !== undefined
  const distance = pinnedBoth ? new CoreDistance(place.serverCore!, generatorCore, directory) : null
  const { seconds, rounds } = options
  const say = (progress: string) => console.error(progress)
  const about = machine(place.note)
  console.log(about.join('\n'))
  const bench: Bench = { seconds, rounds, placement: place, generators, distance, directory, say }
  const { results, failures } = await measureAll(bench, options, (result) => {
    // At once: a run takes most of an hour, and may be stopped.
    if (options.write) writeDocument(result, [...about, `${rounds} rounds of ${seconds} s`])
  })
  const comparisons = results.flatMap((result) => result.comparisons)
  if (comparisons.length > 0) console.log(`\n${formatComparisons(comparisons)}`)
  for (const generator of generators) await generator.stop()
  await distance?.stop()
  if (options.plot !== null) plot(options.plot, results, about.join(' '))
  if (options.json !== null) writeFileSync(options.json, JSON.stringify({ about, options, results, failures }, null, 2))
  // Once more, at the end, where whoever reads only that finds it.
  for (const { name, message } of failures) say(`${name}: NOT MEASURED. ${message}`)
  return failures.length === 0 ? 0 : 1
}

process.exit(await main())
