import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { finish } from '../scenarios/calls/composition.ts'
import { clockMs } from '../support/clocks.ts'
import { about, answeredCall, connectExtended, type ExtendedPair } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { SharedStores } from '../support/stores.ts'
import { expectAwayOnlyIfLate, jitterOf, lateBackMs } from '../support/told-back.ts'

/** A node stops while another one serves: its clients are away only if they are late at the other one [PEER1]. */
const drainMs = 300
let stores: SharedStores
beforeAll(async () => {
  stores = await SharedStores.start()
}, 240_000)
afterAll(() => stores?.dispose())

async function withNodes(body: (one: Service, two: Service) => Promise<void>): Promise<void> {
  const shared = { ...(await stores.next()), RINGWIRE_DRAIN_MS: String(drainMs), RINGWIRE_WS_RATE: 'off' }
  const one = new Service({ ...shared, RINGWIRE_NODE_ID: 'one' })
  const two = new Service({ ...shared, RINGWIRE_NODE_ID: 'two' })
  try {
    await Promise.all([one.start(), two.start()])
    await body(one, two)
  } catch (error) {
    await Promise.all([one.dispose(), two.dispose()])
    throw error
  }
  await Promise.all([finish(one), finish(two)])
}

async function pairOn(callerAt: Service, calleeAt: Service): Promise<ExtendedPair> {
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const [caller, callee] = await Promise.all([
    connectExtended(callerAt, { user_id: callerId, role: 'customer', device_id: 'desk' }),
    connectExtended(calleeAt, { user_id: calleeId, role: 'agent', device_id: 'phone' }),
  ])
  return { caller, callee, callerId, calleeId }
}

/** The client goes to another node when its own one closes. Answers the jitter in the close reason, and when the client was back. */
async function moves(client: ExtendedClient, to: Service): Promise<{ jitterMs: number; backAt: number }> {
  const jitterMs = jitterOf(await client.closed)
  client.url = to.url
  await client.connect()
  return { jitterMs, backAt: Date.now() }
}

test(
  '[PEER1] who comes to the other node in time was never away: one side, both, and again when that node stops',
  () =>
    withNodes(async (one, two) => {
      const across = await pairOn(one, two)
      const both = await pairOn(one, one)
      const calls = [await answeredCall(across), await answeredCall(both)] as const
      for (const [from, to] of [
        [one, two],
        [two, one],
      ] as const) {
        const leaving = [across, both]
          .flatMap(({ caller, callee }) => [caller, callee])
          .filter(({ url }) => url === from.url)
        const moved = Promise.all(leaving.map((client) => moves(client, to)))
        expect(await from.terminate()).toBe(0)
        const all = await moved
        const [jitterMs, backAt] = [all[0]?.jitterMs ?? 0, Math.max(...all.map((each) => each.backAt))]
        for (const [pair, call] of [[across, calls[0]] as const, [both, calls[1]] as const])
          for (const client of [pair.caller, pair.callee]) {
            await client.settle()
            expectAwayOnlyIfLate(client, call, jitterMs, backAt)
          }
        await from.start()
      }
    }),
  240_000,
)

test(
  '[PEER1] a base client, and one with a new session of its device, were never away either',
  () =>
    withNodes(async (one, two) => {
      const baseId = someone('base')
      const base = await one.connect({ user_id: baseId, role: 'agent' })
      const pair = await pairOn(one, two)
      const there = await connectExtended(two, { user_id: someone('caller'), role: 'customer' })
      const ofBase = (await there.request('call.invite', inviteOf(baseId))).data.call_uuid
      await base.next('call.ringing')
      base.send('call.accept', { call_uuid: ofBase })
      await there.next('call.accepted')
      const ofNew = await answeredCall(pair)
      const exited = one.terminate()
      const jitterMs = Math.max(...(await Promise.all([base.closed, pair.caller.closed])).map(jitterOf))
      await two.connect({ user_id: baseId, role: 'agent' })
      const baseAt = Date.now()
      await connectExtended(two, { user_id: pair.callerId, role: 'customer', device_id: 'desk' })
      const newAt = Date.now()
      expect(await exited).toBe(0)
      await there.settle()
      expectAwayOnlyIfLate(there, ofBase, jitterMs, baseAt)
      await pair.callee.settle()
      expectAwayOnlyIfLate(pair.callee, ofNew, jitterMs, newAt)
    }),
  240_000,
)

test(
  '[PEER1] the node that told it to come back is gone: who is not back by then is away, and back when it comes',
  () =>
    withNodes(async (one, two) => {
      const pair = await pairOn(one, two)
      const call = await answeredCall(pair)
      expect(await one.terminate()).toBe(0)
      const jitterMs = jitterOf(await pair.caller.closed)
      const { data } = await pair.callee.next('call.peer_away', about(call))
      expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(data.since) + jitterMs + lateBackMs - clockMs)
      expect(Date.parse(data.ends_at) - Date.parse(data.since)).toBeGreaterThanOrEqual(120_000)
      pair.caller.url = two.url
      await pair.caller.connect()
      await pair.callee.next('call.peer_back', about(call))
      await one.start()
    }),
  240_000,
)

test(
  '[PEER1] kill -9 of the other node in that time: who stays is told by the next one',
  () =>
    withNodes(async (one, two) => {
      const pair = await pairOn(one, two)
      const call = await answeredCall(pair)
      const exited = one.terminate()
      await pair.caller.closed
      await two.kill()
      await exited
      await one.start()
      pair.callee.url = one.url
      await pair.callee.comeBack()
      await pair.callee.next('call.peer_away', about(call))
      await two.start()
    }),
  240_000,
)
