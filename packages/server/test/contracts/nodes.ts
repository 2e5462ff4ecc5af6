import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import type { Backend } from '../../src/backend.ts'
import { type Call, callKey } from '../../src/call/call.ts'
import { accepted, held, ringing } from '../../src/ports/call-store.fixture.ts'
import { newNodeName } from '../../src/ports/node-name.ts'
import { type Nodes, outageMs, type Uptime } from '../../src/ports/nodes.ts'

/** A run of the service: what it opens of its stores, and what other runs let it know. */
export interface Run extends Pick<Backend, 'nodes' | 'uptime' | 'clock' | 'serve'> {
  readonly heard: readonly Call[]
  /** The key and version of each call of which another run has told everybody. */
  readonly told: readonly string[]
  /** Takes its stores away, until `mend`. */
  cut(): void
  mend(): void
  close(): Promise<void>
}

/** What a suite needs of an adapter besides its port. */
export interface NodesHarness {
  /** Begins a run of the node with this RINGWIRE_NODE_ID, which says that it has this number of sockets. */
  open(id: string, sockets?: number): Promise<Run>
  close(): Promise<void>
}

const limitMs = 240_000

function useRuns(most: number, openHarness: () => Promise<NodesHarness>) {
  let harness: NodesHarness
  const runs: Run[] = []
  beforeAll(async () => {
    harness = await openHarness()
  })
  const close = async (run: Run) => {
    runs.splice(runs.indexOf(run), 1)
    await run.close()
  }
  afterEach(async () => {
    for (const run of [...runs]) await close(run)
  })
  afterAll(() => harness.close())
  async function open(id: string, sockets?: number): Promise<Run> {
    const run = await harness.open(id, sockets)
    runs.push(run)
    return run
  }
  /** As many runs as can serve at once; they know each other. */
  async function openAll(): Promise<Run[]> {
    const all = await Promise.all(Array.from({ length: most }, (_, n) => open(`node-${n}`, n + 3)))
    await Promise.all(all.map((run) => run.serve()))
    for (const run of all) await until('a run knows the others', () => knows(run, all))
    return all
  }
  return { open, openAll, close }
}

const without = (runs: readonly Run[], run: Run) => runs.filter((each) => each !== run)
const selfOf = ({ nodes }: Run) => nodes.self
const knows = ({ nodes }: Run, all: readonly Run[]) =>
  Bun.deepEquals(
    [...nodes.others()].sort(),
    all
      .map(selfOf)
      .filter((name) => name !== nodes.self)
      .sort(),
  )

/** An answered call with one place on each of two runs. */
function across(one: Run, two: Run): Call {
  const at = ({ nodes }: Run) => ({ ...held(), node: nodes.self })
  return { ...accepted(ringing()).call, callerPlace: at(one), calleePlace: at(two) } as Call
}

/** What every adapter of `Nodes` guarantees; `most` runs can serve at once. */
export function registerNodesContract(name: string, most: number, openHarness: () => Promise<NodesHarness>): void {
  describe(`${name}: Nodes`, () => {
    const { open, openAll, close } = useRuns(most, openHarness)
    const bothLooks = async (nodes: Nodes, node: string) => [nodes.isDead(node), await nodes.isStillDead(node)]

    test(
      '[END3] a run has a name of its own, though its node has the same id; the run before it is dead, and itself is not',
      async () => {
        const before = await open('one')
        await before.serve()
        await close(before)
        const { nodes, serve } = await open('one')
        await serve()
        expect(nodes.self).not.toBe(before.nodes.self)
        await until('the run before is dead', () => nodes.isDead(before.nodes.self))
        expect(await bothLooks(nodes, before.nodes.self)).toEqual([true, true])
        expect(await bothLooks(nodes, nodes.self)).toEqual([false, false])
        expect(nodes.others()).not.toContain(before.nodes.self)
      },
      limitMs,
    )

    test(
      '[END3] a run that left no trace is dead in the end',
      async () => {
        const { nodes } = await open('one')
        const gone = newNodeName('gone', Date.now())
        await until('it is dead', () => nodes.isDead(gone))
        expect(await nodes.isStillDead(gone)).toBe(true)
      },
      limitMs,
    )

    test(
      '[END3] [BAL1] runs that serve at once know each other and the number of sockets of each; one that leaves is dead',
      async () => {
        const all = await openAll()
        for (const run of all) {
          const others = without(all, run)
          for (const other of others) expect(await bothLooks(run.nodes, other.nodes.self)).toEqual([false, false])
          const sockets = others.map((other) => all.indexOf(other) + 3)
          await until('it knows their sockets', () => Bun.deepEquals([...run.nodes.loads()].sort(), sockets))
        }
        const [last] = all.slice(-1) as [Run]
        await close(last)
        const left = without(all, last)
        for (const run of left) {
          await until('the one that left is dead', () => run.nodes.isDead(last.nodes.self))
          expect([knows(run, left), run.nodes.loads().length]).toEqual([true, left.length - 1])
        }
      },
      limitMs,
    )

    if (most > 1)
      test(
        '[END3] a run that had no stores for long, and goes on, is not dead any more after another look',
        async () => {
          const [run, ...others] = (await openAll()) as [Run, ...Run[]]
          for (const other of others) {
            const { self } = other.nodes
            other.cut()
            await until('it counts as dead', () => run.nodes.isDead(self))
            expect(run.nodes.others()).not.toContain(self)
            other.mend()
            await until('another look shows that it goes on', async () => !(await run.nodes.isStillDead(self)))
            await until(
              'it is one of the others again',
              () => !run.nodes.isDead(self) && run.nodes.others().includes(self),
            )
          }
        },
        limitMs,
      )

    test(
      '[ORD3] each other run that has a place in a call hears of it, and until which version everybody was told; no third one hears, and nobody hears itself',
      async () => {
        const [run, ...others] = (await openAll()) as [Run, ...Run[]]
        const within = across(run, run)
        run.nodes.tell(within)
        run.nodes.told(within)
        // One run reads in order: in the second round what is not of it would have come.
        for (const other of [...others, ...others]) {
          const call = across(run, other)
          const key = `${callKey(call)} ${call.version}`
          // News may be lost.
          await until('the other one hears', () => {
            run.nodes.tell(call)
            run.nodes.told(call)
            return other.told.includes(key)
          })
          expect(other.heard).toContainEqual(call)
        }
        for (const other of others) {
          const nodes = [...other.heard].flatMap((call) =>
            'calleePlace' in call ? (call.calleePlace?.node ?? []) : [],
          )
          expect(new Set(nodes)).toEqual(new Set([other.nodes.self]))
          expect(new Set(other.told).size).toBe(2)
        }
        expect([run.heard, run.told]).toEqual([[], []])
      },
      limitMs,
    )
  })
}

/** What every adapter of `Uptime` guarantees. */
export function registerUptimeContract(name: string, openHarness: () => Promise<NodesHarness>): void {
  describe(`${name}: Uptime`, () => {
    const { open, close } = useRuns(1, openHarness)
    const goesOn = (uptime: Uptime) => uptime.outages().at(-1)?.to === Number.POSITIVE_INFINITY
    /** Whether an outage that is over lasted from one instant to the other; clocks of two machines differ a little. */
    const isOutage = (uptime: Uptime, since: number, till: number) =>
      uptime
        .outages()
        .some(({ from, to }) => from <= since + soon(500) && to >= till - soon(500) && to < Number.POSITIVE_INFINITY)

    test(
      '[END3] a start that takes long is an outage, and nobody is told of it before its end is known',
      async () => {
        const before = await open('one')
        await before.serve()
        await close(before)
        const { uptime, clock, serve } = await open('one')
        const known = uptime.outages()
        const since = clock.now()
        await until('the start takes long', () => clock.now() - since > outageMs + 1_500)
        expect(uptime.outages()).toEqual(known)
        const till = clock.now()
        await serve()
        await until('its end is known', () => isOutage(uptime, since, till))
        expect(goesOn(uptime)).toBe(false)
      },
      limitMs,
    )

    test(
      '[END3] stores that are away are an outage with an end when they are back; a doubt is none; the oldest comes first',
      async () => {
        const { uptime, clock, serve, cut, mend } = await open('one')
        await serve()
        const began = clock.now()
        await until('nothing is an outage for all the doubts', () => {
          uptime.doubt()
          return clock.now() - began > outageMs + 1_500 && !goesOn(uptime)
        })
        for (let n = 0; n < 2; n++) {
          const since = clock.now()
          cut()
          await until('the outage goes on', () => {
            uptime.doubt()
            return goesOn(uptime) && clock.now() - since > outageMs + 1_500
          })
          expect(uptime.outages().at(-1)?.from).toBeLessThan(since + soon(500))
          const till = clock.now()
          mend()
          await until('its end is known', () => isOutage(uptime, since, till))
        }
        const outages = uptime.outages()
        expect(outages.length).toBeGreaterThanOrEqual(2)
        expect(outages).toEqual([...outages].sort((a, b) => a.from - b.from))
        for (const { from, to } of outages) expect(to - from).toBeGreaterThan(outageMs)
      },
      limitMs,
    )
  })
}
