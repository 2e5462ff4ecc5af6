import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { type Link, TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { SQL } from 'bun'
import { Connections } from '../../src/stores/postgres/connections.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'

/*
 * Two connections to a real server, through a proxy that lets one of them not come about. A statement is under way for as
 * long as a test holds the lock that it waits for.
 */

const limitMs = 2_000
/** Connections that are not refused on purpose may wait for longer: a busy machine takes its time to make connections. */
const patientMs = 10 * limitMs

let server: Databases
let beside: SQL
beforeAll(async () => {
  server = await openDatabases()
  beside = new SQL({ url: server.url(), max: 1, idleTimeout: 0 })
})
afterAll(async () => {
  await beside.close()
  await server.dispose()
})

let proxy: TcpProxy
let pool: Connections
beforeEach(async () => {
  proxy = await new TcpProxy(server.url()).start()
  const url = new URL(server.url())
  url.port = new URL(proxy.url).port
  pool = new Connections({ url: url.href, limitMs, session: {} }, 2)
})
afterEach(async () => {
  proxy.stop()
  await pool.close()
  await beside.unsafe('SELECT pg_advisory_unlock_all()')
})

const hold = (lock: number) => beside.unsafe(`SELECT pg_advisory_lock(${lock})`)
const letGo = (lock: number) => beside.unsafe(`SELECT pg_advisory_unlock(${lock})`)

/** A read that lasts until the lock is free; answers which process of the server it ran in. */
async function read(lock: number, withinMs = patientMs): Promise<number> {
  const text = `SELECT pg_backend_pid() AS pid, pg_advisory_xact_lock_shared(${lock})`
  const deadline = performance.now() + withinMs
  const [row] = await pool.run(text, [], { repeatable: true, deadline })
  return row.pid
}

/** From now on connections are accepted and get no answer; resolves with each that is made. */
function answerNobody(): { next(): Promise<void> } {
  let made = Promise.withResolvers<void>()
  proxy.onLink = (link) => {
    link.stall()
    made.resolve()
    made = Promise.withResolvers()
  }
  return { next: () => made.promise }
}

/** Until `count` statements wait for a lock: in this database, for others have theirs on the same server. */
async function waits(count: number): Promise<void> {
  const waiting = `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
  await until(`${count} wait for the lock`, async () => (await beside.unsafe(waiting))[0].n === count)
}

/** Two connections that rest, in the order in which they came to; each with its process. */
async function openBoth(): Promise<[number, number]> {
  await hold(1)
  await hold(2)
  const [first, second] = [read(1), read(2)]
  await waits(2)
  await letGo(1)
  const pid = await first
  await letGo(2)
  return [pid, await second]
}

test('a statement that waits for a connection to be made is carried out by another one that becomes free', async () => {
  await hold(1)
  const first = read(1)
  await waits(1)
  const second = answerNobody().next()
  const waiting = read(0)
  await second
  await letGo(1)
  expect(await waiting).toBe(await first)
})

test('of connections that rest, one that is open is taken', async () => {
  const [open, ended] = await openBoth()
  answerNobody()
  const gone = Promise.race(proxy.open.map(({ gone }) => gone))
  await beside.unsafe(`SELECT pg_terminate_backend(${ended})`)
  await gone
  expect(await read(0)).toBe(open)
})

test('a read whose connection is lost is carried out by another one that rests', async () => {
  const [resting, ended] = await openBoth()
  answerNobody()
  await hold(1)
  const waiting = read(1)
  await waits(1)
  await beside.unsafe(`SELECT pg_terminate_backend(${ended})`)
  await letGo(1)
  expect(await waiting).toBe(resting)
})

test('while one connection cannot be made, whoever waits for the other is not refused at once', async () => {
  await read(0)
  proxy.onLink = (link: Link) => link.reset()
  // For longer than anybody waits.
  await hold(1)
  const first = read(1)
  for (const _ of [1, 2]) expect(await read(0, limitMs).catch(({ kind }) => kind)).toBe('unavailable')
  await letGo(1)
  const pid = await first
  await hold(1)
  const all = [1, 2, 3].map(() => read(1))
  await waits(1)
  await letGo(1)
  expect(await Promise.all(all)).toEqual([pid, pid, pid])
})
