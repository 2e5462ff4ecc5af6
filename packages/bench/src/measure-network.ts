// A whole call and the relay over networks with delay and loss: how many round trips each step takes.
import { Generator } from './generators.ts'
import { type Result, STEPS, type Step, type Target, type Times } from './jobs/job.ts'
import { type Bench, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNetwork, type Network, startNetwork } from './network.ts'
import type { Conditions } from './network-carrier.ts'
import { startServer } from './process.ts'
import { sized } from './quick.ts'
import { count } from './report.ts'
import { LatencyHistogram, median, percentile } from './statistics.ts'
import { commandOf } from './systems.ts'

const PAIRS = 10
const CALLS_MS = sized(6000)
const RELAY_PAIRS = 20
const RELAY = { window: 0, warmupMs: 1000, measureMs: 4000, perSecond: 1000 }
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: CALLS_MS }
const NETWORKS: readonly (Conditions & { name: string })[] = [
  { name: '40 ms', delayMs: 20, loss: 0 },
  { name: '40 ms, 1 % lost', delayMs: 20, loss: 0.01 },
  { name: '100 ms', delayMs: 50, loss: 0 },
]

const TITLES: Record<Step, string> = {
  roundTrip: 'round trip (TCP connects)',
  inviteToRinging: 'invite to ringing',
  acceptToAccepted: 'accept to accepted',
  offerToAnswer: 'offer to answer',
  wholeSetup: 'invite to answer, the whole set-up',
}

interface Measured {
  calls: Times
  relay: Result
}

export async function measureNetwork(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNetwork()
  if (missing !== undefined) return { name: 'network', tables: [], comparisons: [], notes: [missing], raw: null }
  const measured: Measured[] = []
  for (const conditions of NETWORKS) {
    const network = await startNetwork(conditions)
    try {
      measured.push(await measureOver(network, bench))
    } finally {
      await network.stop()
    }
  }
  return report(measured)
}

async function measureOver(network: Network, { directory, placement }: Bench): Promise<Measured> {
  const { name, command, env } = commandOf('distant', directory)
  const server = await startServer(
    { name, command: [...network.service, ...command], env: { ...env, RINGWIRE_HOST: '0.0.0.0' } },
    placement.serverCore,
    directory,
  )
  const generator = new Generator(placement.generatorCores[0] ?? null, network.clients)
  try {
    const target: Target = { system: 'distant', port: server.port, pid: server.pid, core: server.core }
    const calls = await generator.prepare({ kind: 'distant-call', target, pairs: PAIRS, firstPair: 0 })
    // The first calls compile the code.
    await generator.run(calls, { ...UNTIL_DONE, measureMs: 0 })
    const { times } = await generator.run(calls, UNTIL_DONE)
    await generator.release(calls)
    const relay = await generator.prepare({ kind: 'relay', target, pairs: RELAY_PAIRS, firstPair: PAIRS })
    return { calls: times!, relay: await generator.run(relay, RELAY) }
  } finally {
    await generator.stop()
    await server.stop()
  }
}

function report(measured: readonly Measured[]): MeasurementResult {
  const tables = measured.map(({ calls, relay }, i) => {
    const { name } = NETWORKS[i]!
    const title = `Network, ${name}: ${calls.wholeSetup.length} calls of ${PAIRS} pairs; ${count(RELAY.perSecond)} candidates a second between ${RELAY_PAIRS} pairs`
    const rows = (['roundTrip', ...STEPS] as const).map((step) => row(TITLES[step], calls[step], roundTripOf(calls)))
    const hops = new LatencyHistogram(relay.latencies)
    const hop = (share: number) => hops.percentile(share) / 1000
    const relayed = cells('a candidate, to the peer', hop(0.5), hop(0.99), roundTripOf(calls))
    return { title, head: ['', 'p50, ms', 'p99, ms', 'round trips, p50', 'p99'], rows: [...rows, relayed] }
  })
  const over = (step: Step) =>
    measured.map(({ calls }, i) =>
      comparison(
        `${TITLES[step]}, ${NETWORKS[i]!.name}`,
        'a round trip',
        [median(calls[step]) / roundTripOf(calls)],
        null,
      ),
    )
  return {
    name: 'network',
    tables,
    comparisons: [...over('inviteToRinging'), ...over('offerToAnswer')],
    notes: ['Each packet passed through a process that delays and loses it. Nothing that was sent was lost for good.'],
    raw: measured,
  }
}

const roundTripOf = ({ roundTrip }: Times) => median(roundTrip)

const row = (title: string, ms: readonly number[], roundTrip: number) =>
  cells(title, percentile(ms, 0.5), percentile(ms, 0.99), roundTrip)

function cells(title: string, p50: number, p99: number, roundTrip: number): string[] {
  return [title, p50.toFixed(1), p99.toFixed(1), (p50 / roundTrip).toFixed(2), (p99 / roundTrip).toFixed(2)]
}
