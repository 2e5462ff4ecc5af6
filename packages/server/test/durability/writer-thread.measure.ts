/**
 * The figures of docs/decisions/0003-sqlite-writer-thread.md: the same stores with the writer in a thread of its own
 * and on the main thread. Run with `bun packages/server/test/durability/writer-thread.measure.ts`.
 *
 * A second thread plays the relay traffic: it sends the main thread a message every millisecond or so and measures how
 * long the echo takes. That is what a caller's ICE candidate would wait.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { callLife } from '../../src/call/decide.fixture.ts'
import { createBatchWriter } from '../../src/stores/sqlite/batch.ts'
import { openWriter, type Synchronous } from '../../src/stores/sqlite/connection.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import type { FromWriter, ToWriter } from '../../src/stores/sqlite/write-worker.ts'

/** A writer on the main thread, in the shape of a Worker: a batch is written at the end of the turn. */
function writerOnMainThread(flushMs: number): Worker {
  let write: ReturnType<typeof createBatchWriter> | undefined
  let close = () => {}
  const target = new EventTarget()
  const writer = Object.assign(target, {
    onmessage: null as ((event: { data: FromWriter }) => void) | null,
    onerror: null,
    terminate: () => target.dispatchEvent(new Event('close')),
    postMessage(message: ToWriter) {
      setImmediate(() => {
        if (!('type' in message)) {
          if (flushMs > 0) Bun.sleepSync(flushMs)
          writer.onmessage?.({ data: write?.(message) ?? [] })
        } else if (message.type === 'open') {
          const db = openWriter(message.path, message.synchronous)
          write = createBatchWriter(db)
          close = () => db.close()
          writer.onmessage?.({ data: { type: 'opened' } })
        } else if (message.type === 'close') {
          close()
          writer.onmessage?.({ data: { type: 'closed' } })
        }
      })
    },
  })
  return writer as unknown as Worker
}

function writerInThread(flushMs: number): Worker {
  return new Worker(new URL('./slow-writer.measure.ts', import.meta.url), {
    env: { ...Bun.env, FLUSH_MS: String(flushMs) },
  })
}

interface Load {
  readonly synchronous: Synchronous
  /** How much longer than here the disk takes to flush. */
  readonly flushMs: number
  /** Transitions; undefined: 200 calls at once, each as fast as it goes. */
  readonly perSecond: number | undefined
}

interface Figures {
  delays: number[]
  cpuMicros: number
  transitions: number
  commits: number
  seconds: number
  latencies: number[]
}

async function measure(
  where: 'thread' | 'main',
  { synchronous, flushMs, perSecond }: Load,
  seconds: number,
): Promise<Figures> {
  const dataDir = mkdtempSync(join(tmpdir(), 'ringwire-measure-'))
  const startWorker = () => (where === 'main' ? writerOnMainThread(flushMs) : writerInThread(flushMs))
  const stores = await openSqlite({ dataDir, synchronous, exclusive: true, startWorker })
  const prober = new Worker(new URL('./prober.measure.ts', import.meta.url))
  const delays: number[] = []
  prober.onmessage = ({ data }: MessageEvent<number>) => {
    prober.postMessage(data)
  }
  const latencies: number[] = []
  let stop = false
  let transitions = 0

  async function oneCall(): Promise<void> {
    const life = callLife()
    for (const step of life) {
      const from = performance.now()
      await step(stores.calls)
      latencies.push(performance.now() - from)
      transitions++
    }
  }
  async function run(untilMs: number): Promise<void> {
    stop = false
    if (perSecond === undefined) {
      const caller = async () => {
        while (!stop) await oneCall()
      }
      const callers = Array.from({ length: 200 }, caller)
      await Bun.sleep(untilMs)
      stop = true
      await Promise.all(callers)
      return
    }
    await pace(perSecond / 5, untilMs)
  }
  async function pace(callsPerSecond: number, untilMs: number): Promise<void> {
    const from = performance.now()
    const running = new Set<Promise<void>>()
    let begun = 0
    while (performance.now() - from < untilMs) {
      const due = ((performance.now() - from) / 1000) * callsPerSecond
      for (; begun < due; begun++) {
        const call = oneCall().finally(() => running.delete(call))
        running.add(call)
      }
      await Bun.sleep(1)
    }
    await Promise.all(running)
  }

  await run(1000)
  prober.postMessage('start')
  const idle = await cpuPerSecondOf(() => pace(0, 2000))
  latencies.length = 0
  transitions = 0
  const before = stores.counts()
  const cpu = process.cpuUsage()
  const from = performance.now()
  await run(seconds * 1000)
  const took = (performance.now() - from) / 1000
  const used = process.cpuUsage(cpu)
  const after = stores.counts()
  const probed = new Promise<number[]>((resolve) => {
    prober.onmessage = ({ data }: MessageEvent<number | number[]>) => {
      if (Array.isArray(data)) resolve(data)
      else prober.postMessage(data)
    }
  })
  prober.postMessage('stop')
  delays.push(...(await probed))
  prober.terminate()
  await stores.close()
  rmSync(dataDir, { recursive: true })
  return {
    delays,
    cpuMicros: used.user + used.system - idle * took,
    transitions,
    commits: after.commits - before.commits,
    seconds: took,
    latencies,
  }
}

/** What the probing itself costs. */
async function cpuPerSecondOf(work: () => Promise<void>): Promise<number> {
  const cpu = process.cpuUsage()
  const from = performance.now()
  await work()
  const used = process.cpuUsage(cpu)
  return (used.user + used.system) / ((performance.now() - from) / 1000)
}

function at(values: number[], share: number): number {
  values.sort((a, b) => a - b)
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0
}
const ms = (value: number) => value.toFixed(2)

const loads: Load[] = [
  { synchronous: 'FULL', flushMs: 0, perSecond: 500 },
  { synchronous: 'FULL', flushMs: 0, perSecond: 5000 },
  { synchronous: 'FULL', flushMs: 0, perSecond: undefined },
  { synchronous: 'FULL', flushMs: 3, perSecond: 500 },
  { synchronous: 'FULL', flushMs: 3, perSecond: 5000 },
  { synchronous: 'NORMAL', flushMs: 0, perSecond: 500 },
  { synchronous: 'NORMAL', flushMs: 0, perSecond: 5000 },
  { synchronous: 'NORMAL', flushMs: 0, perSecond: undefined },
]

console.log(
  'sync | flush | load | writer | transitions/s | per commit | CPU µs/transition | commit ms 50/99 % | echo ms 50/99/100 %',
)
for (const load of loads) {
  for (const where of ['thread', 'main'] as const) {
    const it = await measure(where, load, 5)
    console.log(
      [
        load.synchronous.padEnd(6),
        load.flushMs === 0 ? 'real' : `+${load.flushMs} ms`,
        load.perSecond === undefined ? '200 calls' : `${load.perSecond}/s`,
        where.padEnd(6),
        Math.round(it.transitions / it.seconds),
        (it.transitions / it.commits).toFixed(1),
        (it.cpuMicros / it.transitions).toFixed(0),
        `${ms(at(it.latencies, 0.5))} / ${ms(at(it.latencies, 0.99))}`,
        `${ms(at(it.delays, 0.5))} / ${ms(at(it.delays, 0.99))} / ${ms(at(it.delays, 1))}`,
      ].join(' | '),
    )
  }
}
