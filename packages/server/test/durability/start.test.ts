import { expect, test } from 'bun:test'
import { openSqlite } from '../../src/adapters/sqlite/open.ts'
import type { AnsweredCall, Place } from '../../src/call/call.ts'
import { created, event, ringing } from '../contracts/calls.ts'
import { Service } from '../support/service.ts'

const many = 6_000

/** Answered an hour ago, and both lost soon after. */
function lostCall(startedAt: number): AnsweredCall {
  const vacant = (): Place => {
    const sessionId = crypto.randomUUID()
    return { state: 'vacant', sessionId, deviceId: null, node: 'before', settled: true, since: startedAt + 9_000 }
  }
  const { silenced: _, ...rest } = ringing(undefined, undefined, { startedAt, ringExpiresAt: startedAt + 45_000 })
  const places = { callerPlace: vacant(), calleePlace: vacant() }
  return { ...rest, ...places, status: 'accepted', version: 2, acceptedAt: startedAt + 5_000, connectedAt: null }
}

test(`[END3] [RES3] a service that was away for an hour comes back with ${many} calls: none ends before its people had their time`, async () => {
  const service = new Service()
  const options = { dataDir: service.dataDir, synchronous: 'NORMAL', exclusive: true } as const
  const before = await openSqlite(options)
  const startedAt = Date.now() - 3_600_000
  await Promise.all(
    Array.from({ length: many }, async () => {
      const call = ringing(undefined, undefined, { startedAt, ringExpiresAt: startedAt + 45_000 })
      await before.calls.transition(call, () => ({ steps: [created(call)] }))
      const { product, callUuid, caller, callee } = call
      const next = { ...lostCall(startedAt), product, callUuid, caller, callee }
      await before.calls.transition(call, () => ({ steps: [{ call: next, event: event('accepted', startedAt) }] }))
    }),
  )
  await before.close()
  await service.start()
  // A sweep has passed.
  await Bun.sleep(1_000)
  await service.terminate()
  const after = await openSqlite(options)
  expect((await after.calls.liveCalls()).length).toBe(many)
  await after.close()
  await service.dispose()
}, 60_000)
