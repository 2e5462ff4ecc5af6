// How long the executable takes until it is ready, and what it takes of memory then.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Bench, comparison, type MeasurementResult } from './measurement.ts'
import { readCpu, readRss } from './proc.ts'
import { startServer } from './process.ts'
import { median } from './statistics.ts'

const READY_MS = 300
const RESIDENT_BYTES = 90e6
const WITHIN_MS = 15_000
const DATA = {
  fresh: 'a new data directory',
  used: 'one in which it has run',
} as const
type Data = keyof typeof DATA

interface Start {
  /** From the start of the process until `/readyz` answers 200, and its CPU time until then. */
  readonly ms: number
  readonly cpuMs: number
  readonly bytes: number
}

export async function measureStart(bench: Bench): Promise<MeasurementResult> {
  const root = join(import.meta.dir, '..', '..', '..')
  const executable = join(bench.directory, 'ringwire')
  const build = Bun.spawnSync([process.execPath, join(root, 'scripts', 'build.ts'), executable], { cwd: root })
  if (!build.success) throw new Error(`npm run build: ${build.stderr}`)
  const starts: Record<Data, Start[]> = { fresh: [], used: [] }
  const data = join(bench.directory, 'start-data')
  for (let round = 0; round < bench.rounds; round++) {
    rmSync(data, { recursive: true, force: true })
    for (const kind of ['fresh', 'used'] as const) starts[kind].push(await startOnce(bench, executable, data))
  }
  const kinds = Object.keys(DATA) as Data[]
  const figures = (kind: Data, figure: (start: Start) => number) => starts[kind].map(figure)
  const row = (kind: Data) => [
    DATA[kind],
    ...[(start: Start) => start.ms, (start: Start) => start.cpuMs].map((it) => median(figures(kind, it)).toFixed(0)),
    (median(figures(kind, ({ bytes }) => bytes)) / 1e6).toFixed(1),
  ]
  const goal = { bound: 'at most', value: 1 } as const
  return {
    name: 'start',
    tables: [
      {
        title: 'Start of the executable',
        head: ['', 'ms until ready', 'ms CPU', 'MB resident'],
        rows: kinds.map(row),
      },
    ],
    comparisons: kinds.flatMap((kind) => [
      comparison(
        `ready, ${DATA[kind]}`,
        `${READY_MS} ms`,
        figures(kind, ({ ms }) => ms / READY_MS),
        goal,
      ),
      comparison(
        `memory, ${DATA[kind]}`,
        '90 MB',
        figures(kind, ({ bytes }) => bytes / RESIDENT_BYTES),
        goal,
      ),
    ]),
    notes: [],
    raw: starts,
  }
}

async function startOnce(bench: Bench, executable: string, dataDir: string): Promise<Start> {
  const env = { RINGWIRE_PORT: '0', RINGWIRE_DATA_DIR: dataDir }
  const begin = performance.now()
  const command = { name: 'start', command: [executable, 'serve'], env }
  const { pid, port, stop } = await startServer(command, bench.placement.serverCore, bench.directory)
  try {
    while (!(await fetch(`http://127.0.0.1:${port}/readyz`)).ok) {
      if (performance.now() - begin > WITHIN_MS) throw new Error('The executable did not become ready')
    }
    const ms = performance.now() - begin
    const { statSeconds, preciseSeconds } = readCpu(pid)
    // No thread has ended: where the precise count is offered it is the whole.
    const cpuMs = 1000 * (Number.isNaN(preciseSeconds) ? statSeconds : Math.max(preciseSeconds, statSeconds))
    return { ms, cpuMs, bytes: readRss(pid) }
  } finally {
    await stop()
  }
}
