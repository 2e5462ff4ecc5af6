/**
 * What a call costs in the stores, with its rows in the outbox written and removed: whole lives of calls of five steps, as
 * the service drives them, on SQLite and on a PostgreSQL server of its own, with fsync.
 *
 *   bun packages/server/test/durability/outbox.measure.ts [DIR …]
 *
 * Each DIR is another checkout, to compare with: the same calls through its stores, in turn with this one's.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { callLife as CallLife } from '../../src/call/decide.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import type { Outbox } from '../../src/ports/outbox.ts'
import type { openPostgres as OpenPostgres } from '../../src/stores/postgres/open.ts'
import type { openSqlite as OpenSqlite } from '../../src/stores/sqlite/open.ts'
import { Postgres } from '../support/postgres.ts'

interface Opened {
  readonly calls: CallStore
  readonly outbox?: Outbox
  counts(): { commits: number }
  close(): Promise<void>
}

interface Figures {
  readonly stepsPerSecond: number
  readonly perCommit: number
  readonly ownCpu: number
  readonly serverCpu: number
  /** Bytes of the log of PostgreSQL; of SQLite what the process wrote to files. */
  readonly bytes: number
}

const rounds = 5
const stepsPerCall = 5
const removalSize = 500
const sweepMs = 500
const ticksPerSecond = 100

const here = resolve(import.meta.dir, '../../../..')
const checkouts = [here, ...process.argv.slice(2).map((path) => resolve(path))]

async function importFrom<T>(checkout: string, path: string): Promise<T> {
  return import(join(checkout, 'packages/server', path))
}

/** Calls, so many at once, from the invite to the end; their rows go as the service removes them. */
async function drive(checkout: string, { calls, outbox }: Opened, count: number, atOnce: number): Promise<void> {
  const { callLife } = await importFrom<{ callLife: typeof CallLife }>(checkout, 'test/contracts/call-life.ts')
  let told: number[] = []
  const remove = async () => {
    const rows = told
    told = []
    await outbox?.remove(rows)
  }
  const sweeper = setInterval(() => void remove(), sweepMs)
  let left = count
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) {
        for (const send of callLife()) {
          const { steps } = (await send(calls)) as Awaited<ReturnType<CallStore['transition']>>
          for (const step of steps) told.push(outbox?.rowOf(step) ?? 0)
          if (told.length >= removalSize) void remove()
        }
      }
    }),
  )
  clearInterval(sweeper)
  await remove()
}

interface Meters {
  /** Seconds of the server so far. */
  serverCpu(): number
  bytes(): Promise<number>
}

async function measure(
  checkout: string,
  stores: Opened,
  meters: Meters,
  count: number,
  atOnce: number,
): Promise<Figures> {
  const { commits } = stores.counts()
  const [cpu, serverCpu, bytes, startedAt] = [
    process.cpuUsage(),
    meters.serverCpu(),
    await meters.bytes(),
    performance.now(),
  ]
  await drive(checkout, stores, count, atOnce)
  const seconds = (performance.now() - startedAt) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return {
    stepsPerSecond: (count * stepsPerCall) / seconds,
    perCommit: (count * stepsPerCall) / (stores.counts().commits - commits),
    ownCpu: (user + system) / count,
    serverCpu: ((meters.serverCpu() - serverCpu) * 1e6) / count,
    bytes: ((await meters.bytes()) - bytes) / count,
  }
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

function print(store: string, atOnce: number, checkout: string, all: readonly Figures[]): void {
  const of = (name: keyof Figures) => median(all.map((figures) => figures[name]))
  const cells = [
    store,
    atOnce,
    checkout === here ? 'this one' : checkout,
    Math.round(of('stepsPerSecond')).toLocaleString('en'),
    of('perCommit').toFixed(1),
    `${of('ownCpu').toFixed(0)} µs`,
    `${of('serverCpu').toFixed(0)} µs`,
    Math.round(of('bytes')).toLocaleString('en'),
  ]
  console.log(`| ${cells.join(' | ')} |`)
}

/** In turn, so that whatever else the machine does is in all of them. */
async function compare(store: string, meters: Meters, open: (checkout: string) => Promise<Opened>): Promise<void> {
  for (const [atOnce, count] of [
    [1, 300],
    [100, 3000],
  ] as const) {
    const opened = new Map<string, Opened>()
    for (const checkout of checkouts) opened.set(checkout, await open(checkout))
    const figures = new Map<string, Figures[]>(checkouts.map((checkout) => [checkout, []]))
    for (const [checkout, stores] of opened) await drive(checkout, stores, count, atOnce)
    for (let round = 0; round < rounds; round++) {
      for (const [checkout, stores] of opened)
        figures.get(checkout)?.push(await measure(checkout, stores, meters, count, atOnce))
    }
    for (const [checkout, all] of figures) print(store, atOnce, checkout, all)
    for (const stores of opened.values()) await stores.close()
  }
}

/** What this process has written to files. */
async function written(): Promise<number> {
  return Number(/^wchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
}

/** CPU of a server and of its children, in seconds. */
function cpuOf(dataDir: string): number {
  const server = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n', 1)[0] ?? ''
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ')
      if (pid === server || fields[1] === server) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // It has just ended.
    }
  }
  return ticks / ticksPerSecond
}

console.log(
  '| store | calls at once | checkout | steps/s | per commit | CPU per call | CPU of the server | bytes per call |',
)
console.log('|---|---|---|---|---|---|---|---|')
const dirs: string[] = []
const server = await Postgres.start()
try {
  await compare('SQLite', { serverCpu: () => 0, bytes: written }, async (checkout) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'ringwire-outbox-'))
    dirs.push(dataDir)
    const { openSqlite } = await importFrom<{ openSqlite: typeof OpenSqlite }>(checkout, 'src/stores/sqlite/open.ts')
    return openSqlite({ dataDir, synchronous: 'FULL', exclusive: true })
  })
  const bytes = async () => Number((await server.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS bytes"))[0].bytes)
  await compare('PostgreSQL', { serverCpu: () => cpuOf(server.dataDir), bytes }, async (checkout) => {
    const { openPostgres } = await importFrom<{ openPostgres: typeof OpenPostgres }>(
      checkout,
      'src/stores/postgres/open.ts',
    )
    return openPostgres({ url: await server.database() })
  })
} finally {
  await server.dispose()
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true })
}
