import { afterEach, expect, test } from 'bun:test'
import { soon } from '@ringwire/testkit/patience'
import type { AnsweredCall, Call, CallRef, LiveCall, Outage } from '../call/call.ts'
import type { CallCommand, Decision } from '../call/command.ts'
import { accepted, ringing } from '../ports/call-store.fixture.ts'
import { pageSize } from '../ports/call-store.ts'
import { StoreError } from '../ports/store-error.ts'
import { createSystemClock } from '../time/clock.ts'
import { createOwnJumps, createSteadyClock } from '../time/steady-clock.ts'
import { createSystemTimers } from '../time/timers.ts'
import { createDeadlines, type Deadlines, type DeadlinesOptions } from './deadlines.ts'

const durations = { callerLostMs: 20_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 }

const started: Deadlines[] = []
afterEach(() => {
  for (const deadlines of started.splice(0)) deadlines.stop()
})

/** A store with these live calls, none of which is a ring that is due. */
const storeOf = (live: readonly LiveCall[]) => ({
  dueRings: () => [],
  async *livePages() {
    yield live
  },
})

/** Deadlines that run, over parts that are as a test says. */
function start(parts: object): Deadlines {
  const deadlines = create(parts)
  deadlines.start()
  return deadlines
}

function create(parts: object): Deadlines {
  const options = {
    store: storeOf([]),
    sessions: { sweep() {}, heldHere: () => undefined },
    nodes: { self: 'one', isDead: () => false, others: () => ['two'], tell() {} },
    clock: createSteadyClock(createSystemClock()),
    durations,
    timers: createSystemTimers(),
    uptime: { outages: () => [], doubt() {} },
    onPage: async () => {},
    onRound: () => {},
    onDeath: async () => {},
    onSweep: async () => {},
    onError: (error: unknown) => {
      throw error
    },
    ...parts,
  }
  const deadlines = createDeadlines(options as unknown as DeadlinesOptions)
  started.push(deadlines)
  return deadlines
}

function answered(now: number): AnsweredCall {
  const { call } = accepted(ringing())
  if (call.status !== 'accepted') throw new Error('unreachable')
  return { ...call, acceptedAt: now, version: 2 }
}

/** A side of it is lost since then. */
function lostSince(call: AnsweredCall, since: number): AnsweredCall {
  return { ...call, version: call.version + 1, calleePlace: { ...call.calleePlace, state: 'vacant', since } }
}

/** The commands to the calls, one after another; `next` resolves with the next. */
function listen(answer: (command: CallCommand) => Call) {
  const asked: CallCommand[] = []
  let heard = Promise.withResolvers<CallCommand>()
  return {
    asked,
    next: () => heard.promise,
    async run(_: CallRef, command: CallCommand): Promise<Decision> {
      asked.push(command)
      const call = answer(command)
      heard.resolve(command)
      heard = Promise.withResolvers()
      return { ok: true, call, steps: [] }
    },
  }
}

test('[END3] a timer of what this node knew last does not fire again and again where another node changed the call', async () => {
  const now = Date.now()
  const current: AnsweredCall = { ...answered(now), version: 4 }
  const { callerPlace } = current
  // Lost, and long over its time, as far as this node knows; it came back elsewhere.
  const old: AnsweredCall = { ...current, version: 3, callerPlace: { ...callerPlace, state: 'vacant', since: 0 } }
  const { asked, next, run } = listen(() => current)
  const first = next()
  start({ run }).watch(old)
  await first
  // A timer without delay would have fired in each of these turns.
  for (let turn = 0; turn < 50; turn++) await Bun.sleep(1)
  expect(asked).toEqual([{ type: 'time' }])
})

test('[RING1] the timer of a call that ended elsewhere is forgotten', async () => {
  const now = Date.now()
  const ended = lostSince(answered(now), now - durations.peerLostMs + 20)
  const other = lostSince(answered(now), now - durations.peerLostMs + 60)
  const keys: string[] = []
  const { next, run } = listen(() => answered(now))
  const first = next()
  const deadlines = start({
    run(ref: CallRef, command: CallCommand) {
      keys.push(ref.callUuid)
      return run(ref, command)
    },
  })
  deadlines.watch(ended)
  deadlines.watch(other)
  deadlines.forget(ended)
  await first
  expect(keys).toEqual([other.callUuid])
})

test('[END3] in an outage no lost clock runs out, by its timer or by a sweep; over, it has its whole time again', async () => {
  const peerLostMs = 1_500
  const now = Date.now()
  const call = lostSince(answered(now), now - peerLostMs + 300)
  let outages: readonly Outage[] = [{ from: now - 4_000, to: Number.POSITIVE_INFINITY }]
  let sweeps = 0
  const swept = Promise.withResolvers<void>()
  const { asked, next, run } = listen(() => call)
  const first = next()
  start({
    run,
    durations: { ...durations, peerLostMs },
    uptime: { outages: () => outages, doubt() {} },
    nodes: { self: 'one', isDead: () => false, others: () => [], tell() {} },
    store: storeOf([call]),
    onSweep: async () => {
      if (++sweeps === 2) swept.resolve()
    },
  }).watch(call)
  await swept.promise
  expect(Date.now()).toBeGreaterThan(now + 300)
  expect(asked).toEqual([])
  const to = Date.now()
  outages = [{ from: now - 4_000, to }]
  expect(await first).toEqual({ type: 'time' })
  expect(Date.now() - to).toBeWithin(peerLostMs - 10, peerLostMs + soon(1_000))
}, 240_000)

test('[END3] after an outage many clocks run again, so many in a turn of the event loop', async () => {
  const now = Date.now()
  const calls = Array.from({ length: 2_000 }, () => ({
    ...lostSince(answered(now), now),
    callUuid: crypto.randomUUID(),
  }))
  let outages: readonly Outage[] = [{ from: now - 4_000, to: Number.POSITIVE_INFINITY }]
  /** How many deadlines are worked out in this turn of the event loop, at most in one, and in all. */
  let looked = { now: 0, most: 0, all: 0 }
  let all = Promise.withResolvers<void>()
  let turns: ReturnType<typeof setImmediate> | undefined
  const turn = () => {
    looked.now = 0
    turns = setImmediate(turn)
  }
  const deadlines = start({
    uptime: {
      outages() {
        looked.all++
        looked.most = Math.max(looked.most, ++looked.now)
        if (looked.all === calls.length) all.resolve()
        return outages
      },
      doubt() {},
    },
  })
  for (const call of calls) deadlines.watch(call)
  outages = [{ from: now - 4_000, to: now }]
  looked = { now: 0, most: 0, all: 0 }
  all = Promise.withResolvers<void>()
  turn()
  await all.promise
  clearImmediate(turns)
  expect(looked.most).toBeLessThanOrEqual(210)
}, 240_000)

test('[END3] a store that fails again and again restarts no lost clock and keeps no dead call alive', async () => {
  const now = Date.now()
  const peerLostMs = 2_200
  const call = lostSince(answered(now), now)
  let sweeps = 0
  const { asked, next, run } = listen(() => call)
  const first = next()
  const errors: unknown[] = []
  start({
    run,
    durations: { ...durations, peerLostMs },
    store: {
      // One error a second, from the first sweep on: on a busy machine there may be no second one in time.
      dueRings: () => [],
      async *livePages() {
        if (sweeps++ % 2 === 0) throw new StoreError('unavailable', 'just now')
        yield [call]
      },
    },
    onError: (error: unknown) => void errors.push(error),
  }).watch(call)
  expect(await first).toEqual({ type: 'time' })
  expect(Date.now() - now).toBeWithin(peerLostMs - 10, peerLostMs + soon(1_000))
  expect(errors.length).toBeGreaterThan(0)
  expect(asked).toEqual([{ type: 'time' }])
}, 240_000)

test('[END3] many calls that are due at once are ended so many at a time', async () => {
  const now = Date.now()
  const calls = Array.from({ length: 1_000 }, () => lostSince(answered(now), 0))
  let underWay = 0
  let most = 0
  let ended = 0
  const all = Promise.withResolvers<void>()
  const deadlines = start({
    async run(): Promise<Decision> {
      most = Math.max(most, ++underWay)
      await Bun.sleep(1)
      underWay--
      if (++ended === calls.length) all.resolve()
      return { ok: false, code: 'CALL_NOT_FOUND', details: {}, steps: [] }
    },
  })
  for (const call of calls) deadlines.watch(call)
  await all.promise
  expect(most).toBeLessThanOrEqual(100)
}, 240_000)

test('[END3] a sweep takes no place from a node that was dead at the last look, and has gone on since', async () => {
  const call = answered(Date.now())
  const live = [{ ...call, calleePlace: { ...call.calleePlace, state: 'held', node: 'dead' } as const }]
  let isGone = false
  let rounds = 0
  const seen = Promise.withResolvers<void>()
  const { asked, next, run } = listen(() => call)
  const lost = next()
  start({
    run,
    nodes: { self: 'one', isDead: () => true, isStillDead: async () => isGone, others: () => [], tell() {} },
    sessions: { sweep() {}, heldHere: () => ({}) },
    store: storeOf(live),
    onRound() {
      if (++rounds === 2) seen.resolve()
    },
  })
  await seen.promise
  expect(asked).toEqual([])
  isGone = true
  expect(await lost).toMatchObject({ type: 'lose' })
}, 240_000)

test('[END3] a node that dies leaves many calls: living nodes read them page by page, and each ends what is its share; the others step in later', async () => {
  const call = answered(Date.now())
  const held = { ...call.calleePlace, state: 'held', node: 'dead' } as const
  const live = Array.from({ length: 1_200 }, () => ({ ...call, callUuid: crypto.randomUUID(), calleePlace: held }))
  let pages = 0
  const lostBy = async (self: string, isAlone: boolean) => {
    const lost = new Set<string>()
    const round = Promise.withResolvers<ReadonlySet<string>>()
    let rounds = 0
    let isKnown = false
    const { nodeDied } = start({
      // Others step in when the machine stood still for long: only where they are to.
      timers: isAlone ? createSystemTimers() : { ...createSystemTimers(), monotonic: () => 0 },
      async run({ callUuid }: CallRef, { type }: CallCommand): Promise<Decision> {
        if (type === 'lose') lost.add(callUuid)
        return { ok: true, call, steps: [] }
      },
      nodes: {
        self,
        isDead: (node: string) => node === 'dead',
        isStillDead: async (node: string) => node === 'dead',
        others: () => ['one', 'two', 'three'].filter((each) => each !== self),
        tell() {},
      },
      sessions: {
        // As the first sweep begins: what a sweep is late by would be taken off the time in which each does its share.
        sweep() {
          if (!isKnown) nodeDied()
          isKnown = true
        },
        heldHere: () => ({}),
      },
      store: {
        dueRings: () => [],
        async *livePages() {
          for (let from = 0; from < live.length; from += pageSize) {
            pages++
            yield live.slice(from, from + pageSize)
          }
          yield []
        },
      },
      onPage: async (page: readonly Call[]) => {
        expect(page.length).toBeLessThanOrEqual(pageSize)
      },
      onRound() {
        rounds++
        if (isAlone ? lost.size === live.length : rounds === 1) round.resolve(new Set(lost))
      },
    })
    return { lost: await round.promise, rounds }
  }
  const shares = await Promise.all(['one', 'two', 'three'].map((self) => lostBy(self, false)))
  expect(shares.reduce((sum, { lost }) => sum + lost.size, 0)).toBe(live.length)
  expect(new Set(shares.flatMap(({ lost }) => [...lost])).size).toBe(live.length)
  for (const { lost } of shares) expect(lost.size).toBeGreaterThan(live.length / 4)
  expect(pages).toBeGreaterThanOrEqual(9)
  // Nobody else does its share.
  const { lost } = await lostBy('two', true)
  expect(lost.size).toBe(live.length)
}, 240_000)

test('[END3] with no node dead a sweep reads one page of the live calls, however many there are', async () => {
  const call = answered(Date.now())
  const live = Array.from({ length: 5_000 }, () => ({ ...call, callUuid: crypto.randomUUID() }))
  let read = 0
  let sweeps = 0
  const round = Promise.withResolvers<ReadonlySet<string>>()
  start({
    run: listen(() => call).run,
    sessions: { sweep() {}, heldHere: () => ({}) },
    store: {
      dueRings: () => [],
      async *livePages() {
        for (let from = 0; from < live.length; from += pageSize) {
          read++
          yield live.slice(from, from + pageSize)
        }
      },
    },
    onSweep: async () => {
      sweeps++
      expect(read).toBeLessThanOrEqual(sweeps)
    },
    onRound: (_: number, found: ReadonlySet<string>) => round.resolve(found),
  })
  expect((await round.promise).size).toBe(live.length)
}, 240_000)

/** A node of several whose common clock jumps; answers what it asks of two live calls, one of which is by the new clock. */
async function commandsOfJump(self: string, others: readonly string[]): Promise<[CallRef, CallCommand][]> {
  const ms = 30_000
  const now = Date.now()
  const old = lostSince(answered(now), now)
  const young: Call = { ...lostSince(answered(now + ms), now + ms), clock: { of: 'shared', jumpedMs: ms } }
  const asked: [CallRef, CallCommand][] = []
  const swept = Promise.withResolvers<void>()
  // It stands still but for the jump: what a clock that runs measures on a busy machine is some ms off.
  let wall = now
  const clock = createSteadyClock({ now: () => wall, monotonic: () => 0 }, createOwnJumps('shared'))
  wall += ms
  start({
    async run(ref: CallRef, command: CallCommand): Promise<Decision> {
      asked.push([ref, command])
      return { ok: true, call: old, steps: [] }
    },
    nodes: { self, isDead: () => false, others: () => others, tell() {} },
    clock,
    store: storeOf([old, young]),
    onSweep: async () => swept.resolve(),
  })
  await swept.promise
  expect(asked.every(([ref]) => ref === old)).toBe(true)
  return asked
}

test('[RING1] [END3] of several nodes one writes the calls by the clock of all after a jump: those that are not yet', async () => {
  const asked = await Promise.all([
    commandsOfJump('one', ['three', 'two']),
    commandsOfJump('two', ['one', 'three']),
    commandsOfJump('three', ['one', 'two']),
  ])
  const commands = asked.map((each) => each.map(([, command]) => command))
  expect(commands).toEqual([[{ type: 'shift', ms: 0 }], [], []])
}, 240_000)

test('[RING1] rings that run out while the store is away are missed at the next sweep once it is back, however many live calls there are', async () => {
  const now = Date.now()
  const rings = Array.from({ length: 250 }, () =>
    ringing(undefined, undefined, { startedAt: now, ringExpiresAt: now + 50 }),
  )
  const live = [
    ...Array.from({ length: 10_000 }, () => ({ ...answered(now), callUuid: crypto.randomUUID() })),
    ...rings,
  ] as LiveCall[]
  let isAway = true
  const sweeps = { away: 0, back: 0 }
  const stayedAway = Promise.withResolvers<void>()
  const tried = Promise.withResolvers<void>()
  const all = Promise.withResolvers<void>()
  const missed = new Set<string>()
  const reach = <T>(value: T): T => {
    if (isAway) throw new StoreError('unavailable', 'away')
    return value
  }
  const deadlines = start({
    async run(call: CallRef, { type }: CallCommand): Promise<Decision> {
      if (isAway) tried.resolve()
      reach(call)
      if (type === 'time') missed.add(call.callUuid)
      if (missed.size === rings.length) all.resolve()
      return { ok: true, call: answered(now), steps: [] }
    },
    nodes: { self: 'one', isDead: () => false, others: () => [], tell() {} },
    sessions: { sweep: () => void sweeps[isAway ? 'away' : 'back']++, heldHere: () => ({}) },
    store: {
      dueRings: () => reach([]),
      async *livePages() {
        for (let from = 0; from < live.length; from += pageSize) yield reach(live.slice(from, from + pageSize))
      },
    },
    onSweep: async () => {
      if (sweeps.away === 3) stayedAway.resolve()
    },
    onError() {},
  })
  for (const ring of rings) deadlines.watch(ring)
  // Sweeps that find the store away let go of nothing.
  await Promise.all([tried.promise, stayedAway.promise])
  expect(missed.size).toBe(0)
  isAway = false
  await all.promise
  expect(missed).toEqual(new Set(rings.map(({ callUuid }) => callUuid)))
  expect(sweeps.back).toBeLessThanOrEqual(2)
}, 240_000)

test('[RING1] of several nodes each looks back to the last look that found the store: what another one that died left ran out in the outage', async () => {
  let skippedMs = 0
  const seen: number[] = []
  const looked: number[] = []
  const back = Promise.withResolvers<void>()
  let looks = 0
  const now = () => Date.now() + skippedMs
  const ring = () => ringing(undefined, undefined, { startedAt: now(), ringExpiresAt: seen[0] as number })
  let left: LiveCall[] = []
  const missed: string[] = []
  start({
    clock: createSteadyClock({ now, monotonic: () => performance.now() + skippedMs }),
    async run(call: CallRef): Promise<Decision> {
      missed.push(call.callUuid)
      left = []
      return { ok: true, call: answered(now()), steps: [] }
    },
    store: {
      ...storeOf([]),
      dueRings(from: number, to: number) {
        looks++
        // The store goes after the first look, and is away for 30 s.
        if (looks === 2) {
          left = [ring()]
          skippedMs = 30_000
        }
        if (looks === 2 || looks === 3) throw new StoreError('unavailable', 'away')
        seen.push(now())
        looked.push(from)
        if (looks === 5) back.resolve()
        return left.filter(({ ringExpiresAt }) => ringExpiresAt > from && ringExpiresAt <= to)
      },
    },
    onError() {},
  })
  await back.promise
  expect(missed).toHaveLength(1)
  // Found, and not looked for again: the next look is as short as any.
  expect(looked[1]).toBeLessThan(seen[0] as number)
  expect(looked[2]).toBeGreaterThan((seen[1] as number) - 10_100)
}, 240_000)

test('[RING1] a node that has just started looks at all rings that are due, however long ago they were', async () => {
  const first = Promise.withResolvers<number>()
  start({
    store: {
      ...storeOf([]),
      dueRings(from: number) {
        first.resolve(from)
        return []
      },
    },
  })
  expect(await first.promise).toBeLessThanOrEqual(0)
})

test('[RING1] a ring that ran out before the service looked after any is missed at the first sweep', async () => {
  const now = Date.now()
  const ring = ringing(undefined, undefined, { startedAt: now, ringExpiresAt: now })
  const others = Array.from({ length: pageSize }, () => ({ ...answered(now), callUuid: crypto.randomUUID() }))
  const { next, run } = listen(() => answered(now))
  const missed = next()
  let sweeps = 0
  const deadlines = create({
    run,
    nodes: { self: 'one', isDead: () => false, others: () => [], tell() {} },
    sessions: { sweep: () => void sweeps++, heldHere: () => ({}) },
    store: {
      dueRings: () => [],
      async *livePages() {
        for (let page = 0; page < 5; page++) yield others
        yield [ring]
      },
    },
  })
  deadlines.watch(ring)
  // Its timer has fired by then: those fire in their order.
  await new Promise((resolve) => setTimeout(resolve, 1))
  deadlines.start()
  expect(await missed).toEqual({ type: 'time' })
  expect(sweeps).toBeLessThanOrEqual(1)
}, 240_000)
