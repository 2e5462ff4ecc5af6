// Calls established and ended through a SIP proxy, as RFC 7502 counts them, beside Ringwire's durable calls.
import { AFTERMATH_MS } from './jobs/call.ts'
import { MESSAGES_PER_CALL } from './jobs/call-script.ts'
import { type Bench, comparison, type MeasurementResult, targetOf } from './measurement.ts'
import { type Part, partsBetween, readParts } from './parts.ts'
import { sized } from './quick.ts'
import { count } from './report.ts'
import { alternate, disturbance, type Rounds, roundNotes, series } from './rounds.ts'
import { callThrough, checkAccounts, missingForSip, type SipProxy, startCallee, startProxy } from './sip.ts'
import { SIP_MESSAGES } from './sip-scenarios.ts'
import { median, ratios } from './statistics.ts'
import { startSystem } from './systems.ts'

const CALLS = sized(1000)
const AT_A_TIME = 50
const WARMUP_RUNS = sized(4)
const COMPARED = ['ringwire', 'accounting', 'proxy'] as const
type Compared = (typeof COMPARED)[number]
const NAMES: Record<Compared, string> = {
  ringwire: 'Ringwire, durable calls',
  accounting: 'Kamailio, accounting to SQLite',
  proxy: 'Kamailio, no accounting',
}
const UNTIL_DONE = { window: 0, warmupMs: 0, measureMs: 0 }

interface Slice {
  /** From the first message to the last one. */
  callSeconds: number
  cpuSeconds: number
  othersShare: number
}

export async function measureSip(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForSip()
  if (missing !== undefined) return { name: 'sip', tables: [], comparisons: [], notes: [missing], raw: null }
  const { serverCore, generatorCores } = bench.placement
  const [generator] = bench.generators
  const running: { stop(): Promise<void> }[] = []
  try {
    const service = await startSystem('ringwire', serverCore, bench.directory)
    running.push(service)
    const callee = await startCallee(generatorCores[0] ?? null, bench.directory)
    running.push(callee)
    const accounting = await startProxy('accounting', callee.port, true, serverCore, bench.directory)
    running.push(accounting)
    const proxy = await startProxy('proxy', callee.port, false, serverCore, bench.directory)
    running.push(proxy)
    const job = await generator.prepare({ kind: 'call', target: targetOf(service), calls: CALLS, pairs: AT_A_TIME })
    for (let i = 0; i < WARMUP_RUNS; i++) await generator.run(job, UNTIL_DONE)
    let accounted = 0
    const measure = async (which: Compared): Promise<Slice> => {
      if (which === 'proxy') return slice(bench, proxy)
      if (which === 'accounting') {
        accounted += CALLS
        return slice(bench, accounting)
      }
      const { load, callSeconds } = await generator.run(job, UNTIL_DONE)
      return { callSeconds: callSeconds!, cpuSeconds: load.serverCpuSeconds, othersShare: load.othersShare }
    }
    for (const which of ['accounting', 'proxy'] as const) await measure(which)
    const rounds = await alternate(bench, bench.rounds, COMPARED, measure, othersShares)
    await checkAccounts(accounting.accounts!, accounted)
    await generator.release(job)
    return report(rounds)
  } finally {
    for (const process of running) await process.stop()
  }
}

async function slice(bench: Bench, proxy: SipProxy): Promise<Slice> {
  const cores = proxy.core === null ? [] : [proxy.core]
  const parts: Part[] = [{ name: 'nodes', pid: proxy.pid, cores }]
  const before = readParts(parts)
  const callSeconds = await callThrough(
    proxy,
    CALLS,
    AT_A_TIME,
    bench.placement.generatorCores[0] ?? null,
    bench.directory,
  )
  await Bun.sleep(AFTERMATH_MS)
  const { cpuSeconds, othersShare } = partsBetween(before, readParts(parts))
  return { callSeconds, cpuSeconds: cpuSeconds.nodes, othersShare }
}

const cpuPerCall = (value: Slice) => value.cpuSeconds / CALLS
const perCoreSecond = (value: Slice) => CALLS / value.cpuSeconds
const perSecond = (value: Slice) => CALLS / value.callSeconds
const othersShares = (value: Slice) => [value.othersShare]

function report(rounds: Rounds<Compared, Slice>): MeasurementResult {
  const middle = (which: Compared, figure: (value: Slice) => number) => median(series(rounds, which, figure))
  const over = (which: Compared, figure: (value: Slice) => number) =>
    ratios(series(rounds, 'ringwire', figure), series(rounds, which, figure))
  const proxies = ['accounting', 'proxy'] as const
  return {
    name: 'sip',
    tables: [
      {
        title: `SIP: ${CALLS} calls a round over TCP, ${AT_A_TIME} at a time`,
        head: ['', 'messages of clients', 'µs CPU per call', 'calls per second of a core', 'calls/s'],
        rows: COMPARED.map((which) => [
          NAMES[which],
          String(which === 'ringwire' ? MESSAGES_PER_CALL : SIP_MESSAGES),
          count(middle(which, cpuPerCall) * 1e6),
          count(middle(which, perCoreSecond)),
          count(middle(which, perSecond)),
        ]),
      },
    ],
    comparisons: [
      ...proxies.map((which) => comparison('CPU time of a call', NAMES[which], over(which, cpuPerCall), null)),
      ...proxies.map((which) => comparison('calls per second', NAMES[which], over(which, perSecond), null)),
    ],
    notes: [
      ...roundNotes(rounds),
      disturbance(rounds, othersShares),
      'Every SIP call was answered and ended, and is in the accounts.',
    ],
    raw: rounds,
  }
}
