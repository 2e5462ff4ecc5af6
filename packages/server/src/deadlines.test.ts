import { afterEach, expect, test } from 'bun:test'
import { accepted, ringing } from '../test/contracts/calls.ts'
import type { AnsweredCall, Call, CallRef, LiveCall } from './call/call.ts'
import type { CallCommand, Decision } from './call/decide.ts'
import { createDeadlines, type Deadlines, type DeadlinesOptions } from './deadlines.ts'

const durations = { callerLostMs: 20_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 }

const started: Deadlines[] = []
afterEach(() => {
  for (const deadlines of started.splice(0)) deadlines.stop()
})

/** Deadlines that run, over parts that are as a test says. */
function start(parts: object): Deadlines {
  const options = {
    store: { liveCalls: () => [], tryWrite: async () => {} },
    sessions: { sweep() {}, heldHere: () => undefined },
    nodes: { self: 'one', isDead: () => false, others: () => ['two'], tell() {} },
    clock: { now: Date.now, monotonic: () => performance.now(), jumped: () => 0, follow() {} },
    durations,
    pingSessions: async () => {},
    onSweep: async () => {},
    onError: (error: unknown) => {
      throw error
    },
    ...parts,
  }
  const deadlines = createDeadlines(options as unknown as DeadlinesOptions)
  started.push(deadlines)
  deadlines.start()
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

/** What is asked of the calls, one after another; `next` resolves with the next. */
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

test('[END3] lost clocks stand still while the sessions are away, and start in full when they are back, also in the middle of a sweep', async () => {
  const peerLostMs = 4_000
  const sweepMs = 2_500
  let now = 1_000_000
  const dueAt = now + 500
  let call: LiveCall = lostSince(answered(now), dueAt - peerLostMs)
  let isAway = true
  let sweeps = 0
  const back = Promise.withResolvers<void>()
  const restarts: number[] = []
  const { asked, next, run } = listen(({ type }) => {
    if (type === 'away') {
      restarts.push(now)
      call = lostSince(answered(now), now)
    }
    return call
  })
  const first = next()
  const deadlines = start({
    run,
    durations: { ...durations, peerLostMs },
    nodes: { self: 'one', isDead: () => false, others: () => [], tell() {} },
    clock: { now: () => now, monotonic: () => now, jumped: () => 0, follow() {} },
    pingSessions: async () => {
      if (isAway) throw new Error('away')
    },
    store: {
      tryWrite: async () => {},
      async liveCalls() {
        now += sweepMs
        if (++sweeps === 3) isAway = false
        // The sessions answer before the calls do.
        await Bun.sleep(5)
        return [call]
      },
    },
    onSweep: async () => {
      if (sweeps === 1) deadlines.watch(call)
      if (!isAway) back.resolve()
    },
  })
  await back.promise
  // The timer and several sweeps found it over its time.
  expect(now).toBeGreaterThan(dueAt + sweepMs)
  expect(asked).toEqual([])
  expect(await first).toEqual({ type: 'away' })
  while ((await next()).type !== 'time');
  expect(now - (restarts.at(-1) ?? 0)).toBeGreaterThanOrEqual(peerLostMs)
}, 90_000)

/** A node of two whose common clock jumps; answers what it asks of a live call in the sweep in which it notices. */
async function commandsOfJump(self: string, others: readonly string[]): Promise<CallCommand[]> {
  let ms = 30_000
  const now = Date.now()
  const call = lostSince(answered(now), now)
  const { asked, run } = listen(() => call)
  const swept = Promise.withResolvers<void>()
  start({
    run,
    nodes: { self, isDead: () => false, others: () => others, tell() {} },
    clock: {
      now: Date.now,
      monotonic: () => performance.now(),
      jumped: () => ms,
      follow() {
        ms = 0
      },
    },
    store: { liveCalls: () => [call], tryWrite: async () => {} },
    onSweep: async () => swept.resolve(),
  })
  await swept.promise
  return asked
}

test('[RING1] [END3] of several nodes one moves the deadlines when the clock of all jumps; the others leave the calls as they are', async () => {
  const commands = await Promise.all([
    commandsOfJump('one', ['three', 'two']),
    commandsOfJump('two', ['one', 'three']),
    commandsOfJump('three', ['one', 'two']),
  ])
  expect(commands).toEqual([[{ type: 'shift', ms: 30_000 }], [], []])
}, 90_000)
