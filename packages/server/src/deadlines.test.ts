import { expect, test } from 'bun:test'
import { accepted, ringing } from '../test/contracts/calls.ts'
import type { AnsweredCall, Call, CallRef } from './call/call.ts'
import type { CallCommand, Decision } from './call/decide.ts'
import { createDeadlines, type DeadlinesOptions } from './deadlines.ts'

const durations = { callerLostMs: 20_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 }

function answered(now: number): AnsweredCall {
  const { call } = accepted(ringing())
  if (call.status !== 'accepted') throw new Error('unreachable')
  return { ...call, acceptedAt: now, version: 2 }
}

test('[END3] a timer of what this node knew last does not fire again and again where another node changed the call', async () => {
  const now = Date.now()
  const current: AnsweredCall = { ...answered(now), version: 4 }
  const { callerPlace } = current
  // Lost, and long over its time, as far as this node knows; it came back elsewhere.
  const old: AnsweredCall = { ...current, version: 3, callerPlace: { ...callerPlace, state: 'vacant', since: 0 } }
  const asked: CallCommand[] = []
  const { promise: first, resolve } = Promise.withResolvers<void>()
  const run = async (_: CallRef, command: CallCommand): Promise<Decision> => {
    asked.push(command)
    resolve()
    return { ok: true, call: current as Call, steps: [] }
  }
  const options = {
    store: { liveCalls: () => [] },
    sessions: { sweep() {} },
    nodes: { self: 'one', isDead: () => false, others: () => ['two'], tell() {} },
    clock: { now: Date.now, monotonic: () => performance.now(), jumped: () => 0, follow() {} },
    durations,
    pingSessions: async () => {},
    run,
    onSweep: async () => {},
    onError: (error: unknown) => {
      throw error
    },
  }
  const deadlines = createDeadlines(options as unknown as DeadlinesOptions)
  deadlines.start()
  try {
    deadlines.watch(old)
    await first
    // A timer without delay would have fired in each of these turns.
    for (let turn = 0; turn < 50; turn++) await Bun.sleep(1)
    expect(asked).toEqual([{ type: 'time' }])
  } finally {
    deadlines.stop()
  }
})
