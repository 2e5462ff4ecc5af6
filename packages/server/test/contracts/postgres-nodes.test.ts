import { afterAll, beforeAll, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { SQL } from 'bun'
import type { Outage } from '../../src/call/call.ts'
import { newNodeName } from '../../src/ports/node-name.ts'
import type { NodeDeath } from '../../src/ports/nodes.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { createSteadyClock } from '../../src/time/steady-clock.ts'
import { jumpTo, makeSkewed } from '../failures/skewed-database.ts'
import { clockMs } from '../support/clocks.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openPostgresNodes, type PostgresNodes, type PostgresNodesOptions } from '../support/postgres-nodes.ts'

let server: Databases
let url = ''
beforeAll(async () => {
  server = await openDatabases()
  url = await makeSkewed(server)
  await (await openPostgres({ url })).close()
})
afterAll(() => server.dispose())

const errors: unknown[] = []
const quiet = {
  isGone: () => true,
  saysItLives: () => false,
  isReady: () => true,
  sockets: () => null as number | null,
  keptMs: 86_400_000,
  onDeath() {},
  onError(error: unknown) {
    // A beat that is answered too late does not count, and the next one comes: on a busy machine that is nobody's fault.
    if (!(error instanceof StoreError)) errors.push(error)
  },
}
async function openNode(nodeId: string, options: Partial<PostgresNodesOptions> = {}): Promise<PostgresNodes> {
  const nodes = await openPostgresNodes({ ...quiet, url, nodeId, ...options })
  await nodes.start()
  await nodes.serve()
  return nodes
}

test('[END3] a node that has just started is not dead to one that has not looked since; one that left no trace is', async () => {
  const one = await openNode('one')
  const gone = newNodeName('gone', Date.now())
  await until('the one has looked for long enough', () => one.isDead(gone))
  const other = await openNode('other')
  expect(one.isDead(other.self)).toBe(false)
  await until('the one knows the other', () => one.others().includes(other.self))
  expect(one.isDead(other.self)).toBe(false)
  await other.stop()
  // Nobody has asked about it before.
  const unknown = newNodeName('unknown', Date.now())
  expect(one.isDead(unknown)).toBe(false)
  await until('another look has not shown it', () => one.isDead(unknown))
  await one.stop()
  expect(errors).toEqual([])
}, 240_000)

test('[END3] a node that was dead, and says in the other store that it goes on, is not dead before the next look shows it here', async () => {
  const saying = new Set<string>()
  const one = await openNode('one', { saysItLives: (node) => saying.has(node) })
  // It counts once, and stands still.
  const other = await openPostgresNodes({ ...quiet, url, nodeId: 'other' })
  await other.serve()
  await until('it is dead', () => one.isDead(other.self))
  saying.add(other.self)
  expect(one.isDead(other.self)).toBe(false)
  // Who has left, or was started again, says nothing that counts.
  await other.stop()
  await until('it has left', () => one.isDead(other.self))
  await one.stop()
  expect(errors).toEqual([])
}, 240_000)

test('[ORD3] nobody waits for a node of the version before to write its sessions again: it owns none', async () => {
  const [one, two] = await Promise.all([openNode('one'), openNode('two')])
  const before = newNodeName('before', Date.now())
  const sql = new SQL(url, { max: 1 })
  // As that version says that it lives.
  await sql`INSERT INTO nodes (name, beats, seen_at) VALUES (${before}, 1, clock_timestamp())`
  await until('the one knows both', () => [two.self, before].every((name) => one.others().includes(name)))
  expect(one.owners()).toEqual([two.self])
  await sql.close()
  await Promise.all([one.stop(), two.stop()])
  expect(errors).toEqual([])
}, 240_000)

test('[BAL1] a node knows how many sockets each other one has that takes clients and says so', async () => {
  let sockets: number | null = 7
  const one = await openNode('one')
  const two = await openNode('two', { sockets: () => sockets })
  // It could take nobody: it has lost the other store.
  const cut = await openNode('cut', { sockets: () => 3, isReady: () => false })
  const before = newNodeName('before', Date.now())
  const sql = new SQL(url, { max: 1 })
  // As the previous version says that it lives.
  await sql`INSERT INTO nodes (name, beats, seen_at, owns_sessions) VALUES (${before}, 1, clock_timestamp(), true)`
  await until('the one knows all', () => [two.self, cut.self, before].every((name) => one.others().includes(name)))
  await until('the one knows the sockets', () => one.loads().length > 0)
  expect(one.loads()).toEqual([7])
  sockets = 0
  await until('the one knows that they are gone', () => one.loads()[0] === 0)
  // It drains.
  sockets = null
  await until('the one knows that it drains', () => one.loads().length === 0)
  await sql.close()
  await Promise.all([one.stop(), two.stop(), cut.stop()])
  expect(errors).toEqual([])
}, 240_000)

test('[END3] the clock of the database jumps, and its answers take longer: the one of before is not believed any more, and nodes do not count as gone', async () => {
  const [one, two] = await Promise.all([openNode('one'), openNode('two')])
  const off = () => one.clock.now() - Date.now()
  const knowEachOther = () => one.others().includes(two.self) && two.others().includes(one.self)
  await until('they know each other', knowEachOther)
  expect(Math.abs(off())).toBeLessThan(soon(500))
  await jumpTo(server, url, -30_000, 0.02)
  // Two beats; the better earlier samples would last sixteen.
  await until('the jump is known', () => off() < -29_000, 4_000)
  await jumpTo(server, url, 0)
  // Both go on counting: neither takes the other's last word for an old one, and itself for the only node.
  const knew: boolean[] = []
  const isKnown = ({ clock }: PostgresNodes) => Math.abs(clock.now() - Date.now()) < 500
  await until('the jump back is known', () => knew.push(knowEachOther()) > 0 && isKnown(one) && isKnown(two), 4_000)
  expect(knew).not.toContain(false)
  await Promise.all([one.stop(), two.stop()])
  expect(errors).toEqual([])
}, 240_000)

test('[END3] a database that is slow while a node starts: its clock is right all the same, and nobody takes that for a jump', async () => {
  const proxy = await new TcpProxy(url).start()
  const { host } = proxy
  const own = new URL(url)
  own.host = host
  const nodes = await openPostgresNodes({ ...quiet, url: own.href, nodeId: 'slow' })
  const [link] = proxy.links
  // The answer to its first beat takes longer than what counts as a jump, and what comes after it takes no time.
  link?.delay(3_000, 'client')
  link?.observe('server', () => link.delay(0, 'client'))
  await nodes.start()
  const clock = createSteadyClock(nodes.clock)
  expect(Math.abs(clock.now() - Date.now())).toBeLessThan(soon(200))
  await until('it has looked again', async () => {
    const [row] = await server.query(`SELECT beats FROM nodes WHERE name = '${nodes.self}'`, url)
    return Number(row.beats) > 2
  })
  expect(clock.jumped()).toBe(0)
  await nodes.stop()
  await proxy.stop()
  expect(errors).toEqual([])
}, 240_000)

test('[END3] the own clock of a node stands still: that is no jump of the clock that all go by, and the time has passed', async () => {
  let frozenAt: number | undefined
  let lost = 0
  const ticks = () => (frozenAt ?? performance.now()) - lost
  const [paused, other] = await Promise.all([openNode('paused', { ticks }), openNode('other')])
  await until('they know each other', () => paused.others().includes(other.self))
  const beats = async () => {
    const [row] = await server.query(`SELECT beats FROM nodes WHERE name = '${other.self}'`, url)
    return Number(row.beats)
  }
  const count = 5
  let [steady, beganAt, realAt] = [createSteadyClock(paused.clock), 0, 0]
  const jumps = new Set<number>()
  const isRight = () => jumps.add(steady.jumped()) && Math.abs(steady.now() - Date.now()) < 500
  do {
    await until('its clock is right', () => Math.abs(paused.clock.now() - Date.now()) < 500)
    jumps.clear()
    steady = createSteadyClock(paused.clock)
    ;[beganAt, realAt] = [steady.monotonic(), performance.now()]
    const from = await beats()
    frozenAt = performance.now()
    await until('the other one counted on', async () => isRight() !== undefined && (await beats()) >= from + count)
    lost += performance.now() - frozenAt
    frozenAt = undefined
    // By one that hardly counts nobody can tell whose clock it was.
  } while (performance.now() - realAt > (count + 1.5) * 1_000)
  await until('it is right again', isRight)
  expect([...jumps]).toEqual([0])
  expect(Math.abs(steady.monotonic() - beganAt - (performance.now() - realAt))).toBeLessThan(soon(1_500))
  await Promise.all([paused.stop(), other.stop()])
  expect(errors).toEqual([])
}, 240_000)

test('[END3] an outage is when no node has both stores for 3 s; the first that has writes it down, and all see the same', async () => {
  const has = { one: true, two: true }
  const one = await openNode('one', { isReady: () => has.one })
  const two = await openNode('two', { isReady: () => has.two })
  const outagesOf = ({ uptime }: PostgresNodes) => uptime.outages()
  const before = outagesOf(one).length
  // Before it is over it has no end.
  has.one = false
  const beganAt = Date.now()
  await until('one alone was without for long enough', () => Date.now() - beganAt > 4_500)
  expect([outagesOf(one).length, outagesOf(two).length]).toEqual([before, before])
  has.two = false
  await until('both see that it goes on', () => [one, two].every((node) => outagesOf(node).at(-1)?.to === Infinity))
  has.one = true
  await until('both see that it is over', () =>
    [one, two].every((node) => outagesOf(node).length === before + 1 && Number.isFinite(outagesOf(node).at(-1)?.to)),
  )
  expect(outagesOf(one)).toEqual(outagesOf(two))
  const { from, to } = outagesOf(one).at(-1) ?? { from: 0, to: 0 }
  expect(to - from).toBeGreaterThan(3_000)
  // It began when the second one was without, too, and is over by now.
  expect(from).toBeGreaterThan(beganAt + 1_500)
  expect(to).toBeLessThan(Date.now() + clockMs)
  await Promise.all([one.stop(), two.stop()])
  // Nobody serves, and then somebody does.
  await Bun.sleep(3_200)
  const three = await openNode('three')
  expect(outagesOf(three)).toHaveLength(before + 2)
  await three.stop()
  expect(errors).toEqual([])
}, 240_000)

test('[END3] a node serves from when it says so: until then nobody could come back, and all see the same outage', async () => {
  const serving = await openNode('serving')
  await serving.stop()
  const first = await openPostgresNodes({ ...quiet, url, nodeId: 'first' })
  await first.start()
  const before = first.uptime.outages()
  const beganAt = Date.now()
  // Before its end is known, no end follows from it.
  await until('the first was at its start for long enough', () => Date.now() - beganAt > 3_500)
  expect(first.uptime.outages()).toEqual(before)
  const second = await openNode('second')
  const [outage] = second.uptime.outages().slice(-1)
  expect(second.uptime.outages()).toHaveLength(before.length + 1)
  expect(outage?.from).toBeLessThan(beganAt)
  expect(outage?.to).toBeGreaterThan(beganAt + 3_500)
  await until('the first knows it, too', () => first.uptime.outages().length > before.length)
  await first.serve()
  expect(first.uptime.outages()).toEqual(second.uptime.outages())
  await Promise.all([first.stop(), second.stop()])
  expect(errors).toEqual([])
}, 240_000)

/** Outages of 4 s, of which the first began `agoMs` ago, and each other one 5 s after the previous one. */
async function writeOutages(agoMs: number, count = 1): Promise<readonly Outage[]> {
  const first = Date.now() - agoMs
  const outages = Array.from({ length: count }, (_, n) => ({ from: first + n * 5_000, to: first + n * 5_000 + 4_000 }))
  await server.query(
    `INSERT INTO outages (began_at, ended_at)
     SELECT at, at + interval '4 s' FROM generate_series(0, ${count - 1}) AS n, to_timestamp(${first / 1_000} + n * 5) AS at`,
    url,
  )
  return outages
}

/** To the ms. Besides them it may know others: a machine that stands still for long enough is an outage, too. */
function knows({ uptime }: PostgresNodes, outages: readonly Outage[]): boolean {
  const known = new Set(uptime.outages().map(text))
  return outages.every((outage) => known.has(text(outage)))
}
const text = ({ from, to }: Outage) => `${Math.round(from)} ${Math.round(to)}`

test('[END3] however often the stores came and went, a node knows every outage that may matter, the oldest first, and asks for what is new', async () => {
  const proxy = await new TcpProxy(url).start()
  const own = new URL(url)
  own.host = proxy.host
  const [many, hourMs] = [300, 3_600_000]
  const early = await writeOutages(hourMs, many)
  const one = await openNode('one', { url: own.href })
  expect(knows(one, early)).toBe(true)
  let read = 0
  for (const link of proxy.open) link.observe('server', ({ length }) => (read += length))
  const beats = async () => {
    const [row] = await server.query(`SELECT beats FROM nodes WHERE name = '${one.self}'`, url)
    return Number(row.beats)
  }
  const from = await beats()
  const late = await writeOutages(0)
  await until('it has looked again', () => knows(one, late))
  await until('it looks on', async () => (await beats()) > from + 3)
  // Two times of 13 digits each are the least that an outage is.
  expect(read).toBeLessThan(many * 26)
  const outages = one.uptime.outages()
  expect(outages).toEqual([...outages].sort((a, b) => a.from - b.from))
  const two = await openNode('two')
  expect(knows(two, [...early, ...late])).toBe(true)
  await until('both know the same', () => Bun.deepEquals(two.uptime.outages(), one.uptime.outages()))
  // And each of them once.
  const texts = one.uptime.outages().map(text)
  expect([knows(one, early), new Set(texts).size]).toEqual([true, texts.length])
  await Promise.all([one.stop(), two.stop()])
  await proxy.stop()
  expect(errors).toEqual([])
}, 240_000)

test('[END3] the clock of the database is put back: an outage by it is heard of, though one that is known began later', async () => {
  const [minuteMs, hourMs] = [60_000, 3_600_000]
  const later = await writeOutages(20 * minuteMs)
  const one = await openNode('one')
  expect(knows(one, later)).toBe(true)
  await jumpTo(server, url, -hourMs)
  await until('the jump is known', () => one.clock.now() - Date.now() < -hourMs / 2)
  const earlier = await writeOutages(hourMs)
  await until('it is heard of', () => knows(one, [...earlier, ...later]))
  const outages = one.uptime.outages()
  expect(outages).toEqual([...outages].sort((a, b) => a.from - b.from))
  await one.stop()
  await jumpTo(server, url, 0)
  expect(errors).toEqual([])
}, 240_000)

test('the clock of the database is put back, and a node starts again: its new run is the one that lives', async () => {
  const other = await openNode('other')
  const first = await openNode('put-back')
  await until('the first run is seen', () => other.others().includes(first.self))
  await jumpTo(server, url, -3_600_000)
  // As after kill -9: nobody says that the first run is over.
  const second = await openNode('put-back')
  await until('the first run is over', () => other.isDead(first.self))
  await until('the second run is seen', () => other.others().includes(second.self))
  expect(other.isDead(second.self)).toBe(false)
  await Promise.all([other.stop(), first.stop(), second.stop()])
  await jumpTo(server, url, 0)
  expect(errors).toEqual([])
}, 240_000)

test('[END3] nodes agree on what the clock of the database has jumped: one says it, and known outages move along', async () => {
  // Well before the nodes began, who write down an outage of their own at first: each of them when it serves.
  const known = await writeOutages(20 * 60_000, 3)
  const [one, two] = await Promise.all([openNode('one'), openNode('two')])
  expect([knows(one, known), knows(two, known)]).toEqual([true, true])
  await Promise.all([one.jumps.add(-30_000, 0), two.jumps.add(-30_002, 0)])
  await until('both know the one sum', () => one.jumps.sum() !== 0 && two.jumps.sum() === one.jumps.sum())
  const sum = one.jumps.sum()
  expect([-30_000, -30_002]).toContain(sum)
  const moved = known.map(({ from, to }) => ({ from: from + sum, to: to + sum }))
  const old = new Set(known.map(text))
  const hasMoved = (node: PostgresNodes) =>
    knows(node, moved) && !node.uptime.outages().some((outage) => old.has(text(outage)))
  for (const node of [one, two]) await until('the outages have moved', () => hasMoved(node))
  // They are read again with the next beats, and are the same.
  const later = await openNode('later')
  expect([later.jumps.sum(), hasMoved(later)]).toEqual([sum, true])
  await until('all know the same', () =>
    [one, two].every(({ uptime }) => Bun.deepEquals(uptime.outages(), later.uptime.outages())),
  )
  expect([one, two].map(hasMoved)).toEqual([true, true])
  await one.jumps.add(-sum, sum)
  await until('the clock was put right', () => [two, later].every(({ jumps }) => jumps.sum() === 0))
  await Promise.all([one.stop(), two.stop(), later.stop()])
  expect(errors).toEqual([])
}, 240_000)

test('[END3] an outage is kept for as long as a call may last, and then forgotten', async () => {
  const [hourMs, dayMs] = [3_600_000, 86_400_000]
  const old = async () => {
    const [{ n }] = await server.query(
      `SELECT count(*)::int AS n FROM outages WHERE began_at < now() - interval '1 day'`,
      url,
    )
    return n
  }
  const knowsOld = ({ uptime }: PostgresNodes) => uptime.outages().some(({ to }) => to < Date.now() - dayMs)
  await writeOutages(30 * hourMs)
  const long = await openNode('long', { keptMs: 2 * dayMs })
  await writeOutages(29 * hourMs)
  await long.serve()
  expect([await old(), knowsOld(long)]).toEqual([2, true])
  await long.stop()
  const short = await openNode('short')
  await short.serve()
  expect([await old(), knowsOld(short)]).toEqual([0, false])
  await short.stop()
  expect(errors).toEqual([])
}, 240_000)

test('runs that were over before this node began are told of as past; one that ends later is not', async () => {
  const sql = new SQL(url)
  const past = ['left', 'silent', 'again'].map((id) => newNodeName(id, Date.now() - 3_600_000))
  const insert = (name: string, hasLeft: boolean, age: string) =>
    sql.unsafe(
      `INSERT INTO nodes (name, beats, seen_at, ready_at, has_left, owns_sessions)
       VALUES ($1, 9, now() - $3::interval, now() - $3::interval, $2, true)`,
      [name, hasLeft, age],
    )
  for (const name of past) await insert(name, name.startsWith('left'), '1 hour')
  const deaths = new Map<string, NodeDeath>()
  const onDeath = (death: NodeDeath) => void deaths.set(death.node, death)
  const again = await openNode('again')
  const leaves = await openNode('leaves')
  const watching = await openNode('watching', { onDeath })
  await until('the runs of an hour ago are known to be over', () => past.every((name) => deaths.has(name)))
  expect(past.map((name) => deaths.get(name)?.isPast)).toEqual([true, true, true])
  await leaves.stop()
  await until('the one that leaves is missed', () => deaths.has(leaves.self))
  expect(deaths.get(leaves.self)).toEqual({ node: leaves.self, hasLeft: true, isPast: false })
  await Promise.all([again.stop(), watching.stop(), sql.close()])
  expect(errors).toEqual([])
}, 240_000)
