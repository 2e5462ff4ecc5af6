// How long requests take in a store with a million calls, and how long everybody else waits meanwhile.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPostgres } from '../../server/src/stores/postgres/open.ts'
import { openSqlite } from '../../server/src/stores/sqlite/open.ts'
import {
  busy,
  days,
  endpointId,
  few,
  fillPostgres,
  fillSqlite,
  million,
  product,
} from '../../server/test/support/million.ts'
import { askBackend, type BackendRequest } from './backend.ts'
import { HttpConnection } from './http-connection.ts'
import { type Bench, comparison, type MeasurementResult } from './measurement.ts'
import { missingForNodes, startPostgres } from './nodes.ts'
import { count } from './report.ts'
import { median } from './statistics.ts'
import { type RunningSystem, startSystem } from './systems.ts'
import { productKey } from './tokens.ts'

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type Store = keyof typeof STORES
const PAGES = 50
const PROBE_PAUSE_MS = 2
/** Nobody waits longer for a request of somebody else. */
const LONGEST_WAIT_MS = 10
const DAY_MS = 86_400_000

interface Ask extends BackendRequest {
  readonly what: string
  readonly times?: number
}

const participant = ({ role, userId }: typeof busy) => `/v1/server/participants/${role}/${userId}`
const calls = `/v1/server/calls?limit=100&role=${busy.role}&user_id=${busy.userId}`
/** In this order: the last ones remove what the others ask for. */
const ASKS: readonly Ask[] = [
  { what: 'a page of 100 calls of that user', path: calls, times: PAGES },
  { what: 'a page of its calls of a rare status', path: `${calls}&status=missed`, times: PAGES },
  {
    what: 'a page of 100 failed deliveries of that endpoint',
    path: `/v1/server/webhooks/${endpointId}/deliveries?status=failed&limit=100`,
    times: PAGES,
  },
  { what: 'exporting that user', path: `${participant(busy)}/export` },
  { what: 'erasing a user with 10 calls', path: participant(few), method: 'DELETE' },
  { what: 'erasing that user', path: participant(busy), method: 'DELETE' },
  { what: 'removing that endpoint', path: `/v1/server/webhooks/${endpointId}`, method: 'DELETE' },
]

interface Taken {
  /** Of each time, in ms. */
  readonly ms: readonly number[]
  /** The longest that another request has waited, in ms; NaN where nobody asked. */
  readonly waitMs: number
}
type ByStore = Record<Store, Record<string, Taken>>

export async function measureLarge(bench: Bench): Promise<MeasurementResult> {
  const missing = missingForNodes('large')
  const taken: Partial<ByStore> = { sqlite: await onSqlite(bench) }
  if (missing === undefined) taken.postgres = await onPostgres(bench)
  const stores = Object.keys(taken) as Store[]
  const names = Object.keys(taken.sqlite ?? {})
  const cells = (store: Store, name: string) => {
    const { ms, waitMs } = taken[store]?.[name] ?? { ms: [], waitMs: Number.NaN }
    return [figure(median([...ms])), ms.length > 1 ? figure(Math.max(...ms)) : '', figure(waitMs)]
  }
  const waits = Object.values(taken.sqlite ?? {}).flatMap(({ waitMs }) => (Number.isNaN(waitMs) ? [] : [waitMs]))
  return {
    name: 'large',
    tables: [
      {
        title: `Large: ${count(million.calls)} calls, a user with ${count(million.ofBusy)}, an endpoint with ${count(million.deliveries)} deliveries; ms`,
        head: ['', ...stores.flatMap((store) => [STORES[store], 'longest', 'others waited'])],
        rows: names.map((name) => [name, ...stores.flatMap((store) => cells(store, name))]),
      },
    ],
    comparisons: [
      comparison(
        'large, the longest that others wait on SQLite',
        `${LONGEST_WAIT_MS} ms`,
        waits.map((ms) => ms / LONGEST_WAIT_MS),
        { bound: 'at most', value: 1 },
      ),
    ],
    notes: [
      `Pages are the median of ${PAGES}; all else was done once. Others: GET /healthz, again and again, without the time that other programs had the processor.`,
      ...(missing === undefined ? [] : [missing]),
    ],
    raw: taken,
  }
}

const figure = (ms: number) => (Number.isNaN(ms) ? '–' : ms < 10 ? ms.toFixed(1) : count(ms))

async function onSqlite(bench: Bench): Promise<Record<string, Taken>> {
  const dataDir = join(bench.directory, 'large')
  mkdirSync(dataDir)
  const open = () => openSqlite({ dataDir, synchronous: 'FULL', exclusive: true })
  await (await open()).close()
  fillSqlite(join(dataDir, 'ringwire.db'))
  const taken = await askAll(bench, { RINGWIRE_DATA_DIR: dataDir })
  const stores = await open()
  return { ...taken, ...(await retention(stores)) }
}

async function onPostgres(bench: Bench): Promise<Record<string, Taken>> {
  const { postgres, stop } = await startPostgres([])
  try {
    const url = await postgres.database()
    await (await openPostgres({ url })).close()
    await fillPostgres(url)
    const taken = await askAll(bench, { DATABASE_URL: url })
    return { ...taken, ...(await retention(await openPostgres({ url }))) }
  } finally {
    await stop()
  }
}

/** Nobody else asks meanwhile. */
async function retention(stores: { prune(before: number): Promise<number>; close(): Promise<void> }) {
  try {
    const began = performance.now()
    const removed = await stores.prune(Date.now() - (days / 2) * DAY_MS)
    const ms = [performance.now() - began]
    if (removed === 0) throw new Error('The retention removed nothing')
    return { 'retention of half of the calls, with its pauses': { ms, waitMs: Number.NaN } }
  } finally {
    await stores.close()
  }
}

async function askAll({ placement, directory, say }: Bench, settings: Record<string, string>) {
  const keys = `${productKey.id}:${productKey.secret}:${product}`
  const service = await startSystem('ringwire', placement.serverCore, directory, {
    settings: { ...settings, RINGWIRE_BOOTSTRAP_KEYS: keys },
  })
  const taken: Record<string, Taken> = {}
  try {
    for (const ask of ASKS) {
      const probe = await startProbe(service)
      const ms: number[] = []
      for (let n = 0; n < (ask.times ?? 1); n++) ms.push((await askBackend(service.port, ask)).ms)
      taken[ask.what] = { ms, waitMs: await probe.stop() }
      say(`${ask.what}: ${figure(median(ms))} ms`)
    }
  } finally {
    await service.stop()
  }
  return taken
}

/**
 * Asks something that reads no store, and answers the longest time that it took, in ms. Time in which a process could have run
 * and had no processor does not count: other programs took it.
 */
async function startProbe({ port, pid }: RunningSystem): Promise<{ stop(): Promise<number> }> {
  const connection = await HttpConnection.open(port)
  const request = Buffer.from('GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n')
  const starved = () => starvedMs(pid) + starvedMs(process.pid)
  let longest = 0
  let isOver = false
  const asking = (async () => {
    while (!isOver) {
      const [began, before] = [performance.now(), starved()]
      await connection.request(request)
      longest = Math.max(longest, performance.now() - began - (starved() - before))
      await Bun.sleep(PROBE_PAUSE_MS)
    }
  })()
  return {
    async stop() {
      isOver = true
      await asking
      connection.close()
      return longest
    },
  }
}

/** Time that the main thread of a process has waited for a processor, in ms. */
const starvedMs = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
