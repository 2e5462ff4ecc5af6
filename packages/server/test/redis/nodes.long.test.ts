import { expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { Redis } from 'ioredis'
import { hangUp, numbersTo, pairOn, stopAll } from '../failures/people.ts'
import { insist, toldOf } from '../failures/world.ts'
import { type Env, finish, nodeStores, openCluster, type PairRedis } from '../scenarios/calls/composition.ts'
import { about, connectedCall, ringingCall } from '../support/extended-flows.ts'
import { type SentinelGroup, startSentinelGroup } from '../support/sentinel.ts'
import { answer, offer, recordOf } from '../support/sessions.ts'

/** Whole nodes on what the other tests here take apart: a cluster, and servers that Sentinel watches. */
let group: SentinelGroup | undefined
async function openGroup(): Promise<PairRedis> {
  const started = await startSentinelGroup()
  group = started
  let pairs = 0
  const next = async () => ({ REDIS_URL: started.url, RINGWIRE_REDIS_PREFIX: `pair-${++pairs}` })
  return { next, stop: started.stop }
}

const onCluster = nodeStores(openCluster)
const onSentinel = nodeStores(openGroup)

async function withNodes(env: Env, body: (one: Service, two: Service) => Promise<void>): Promise<void> {
  const [one, two] = [
    new Service({ ...env, RINGWIRE_NODE_ID: 'one' }),
    new Service({ ...env, RINGWIRE_NODE_ID: 'two' }),
  ]
  try {
    await Promise.all([one.start(), two.start()])
    await body(one, two)
  } finally {
    await Promise.all([finish(one), finish(two)])
  }
}

const endsWith =
  (n: number) =>
  ({ data }: { data: { candidate: { candidate: string } } }) =>
    data.candidate.candidate === `candidate:${n}`

/** Relays up to a number, each in the receiver's log when it is acknowledged [EXT3]. */
async function relay(from: ExtendedClient, call: string, ...numbers: readonly number[]): Promise<void> {
  for (const n of numbers) {
    const { event, data } = await from.request('webrtc.ice_candidate', candidate(call, n))
    expect([event, data.volatile]).toEqual(['call.ack', undefined])
  }
}

/**
 * What each socket brings runs on from where it was opened. What an older socket still brings after that comes again on
 * the next one [RES1].
 */
function runsOn({ entries }: ExtendedClient): void {
  const seqs = new Map<number, number>()
  for (const entry of entries) {
    if (entry.kind === 'opened') seqs.set(entry.socket, Number(entry.resume?.seq ?? 0))
    if (entry.kind !== 'in' || entry.message.seq === undefined) continue
    const seq = (seqs.get(entry.socket) ?? 0) + 1
    expect(entry.message.seq).toBe(seq)
    seqs.set(entry.socket, seq)
  }
}

/** From the invite to the history, with a socket that is cut in between; both sessions go on at the other node. */
async function wholeCall(callerAt: Service, calleeAt: Service): Promise<void> {
  const pair = await pairOn(callerAt, calleeAt)
  const { caller, callee, callerId, calleeId } = pair
  const call = await ringingCall(pair)
  // Nobody waits for the accept: both sides' are kept until then [REL2].
  expect((await caller.request('webrtc.offer', offer(call))).event).toBe('call.ack')
  await relay(caller, call, 0, 1)
  await relay(callee, call, 0)
  expect((await callee.request('call.accept', { call_uuid: call })).data.status).toBe('accepted')
  await callee.next('webrtc.ice_candidate', endsWith(1))
  await caller.next('webrtc.ice_candidate', endsWith(0))
  await callee.request('webrtc.answer', answer(call))
  await caller.next('webrtc.answer')
  await callee.request('call.connected', { call_uuid: call })
  await caller.next('call.status', about(call))
  await Promise.all([relay(caller, call, 2), relay(callee, call, 1)])
  await callee.next('webrtc.ice_candidate', endsWith(2))
  // A message that is still under way to a socket comes again on the next one.
  await caller.next('webrtc.ice_candidate', endsWith(1))

  const { session_id } = callee.point ?? {}
  await callee.die()
  await relay(caller, call, 3, 4, 5)
  callee.url = callerAt.url
  const hello = await callee.connect()
  expect(hello.data).toMatchObject({
    recovered: true,
    session_id,
    active_calls: [{ call_uuid: call, holds_place: true }],
  })
  await callee.next('webrtc.ice_candidate', endsWith(5))
  // The other one changes nodes while it still has a socket: the newest wins.
  const older = caller.closed
  const back = caller.next('auth.ok')
  caller.url = calleeAt.url
  caller.supersede()
  expect((await older).code).toBe(4409)
  expect((await back).data.recovered).toBe(true)
  await relay(callee, call, 2)
  await caller.next('webrtc.ice_candidate', endsWith(2))

  await hangUp(callerAt, pair, call)
  const ended = {
    status: 'ended',
    end_reason: 'hangup',
    accepted_at: expect.any(String),
    connected_at: expect.any(String),
  }
  for (const [user_id, role, node, direction] of [
    [callerId, 'customer', calleeAt, 'outgoing'],
    [calleeId, 'agent', callerAt, 'incoming'],
  ] as const) {
    expect(await recordOf(node, { user_id, role }, call)).toMatchObject({ ...ended, direction })
  }
  // Each once, in one order [ORD2].
  expect(numbersTo(callee, call)).toEqual([0, 1, 2, 3, 4, 5])
  expect(numbersTo(caller, call)).toEqual([0, 1, 2])
  const relayed = (count: number) => Array(count).fill('webrtc.ice_candidate')
  // Whether a socket that is replaced was away for a moment depends on which node is faster [PEER1].
  const heardBy = (client: typeof callee) => client.events().filter((event) => !event.startsWith('call.peer_'))
  expect(heardBy(callee)).toEqual(['call.ringing', 'webrtc.offer', ...relayed(6)])
  expect(heardBy(caller)).toEqual([
    'call.accepted',
    ...relayed(1),
    'webrtc.answer',
    'call.status',
    ...relayed(2),
    'call.ended',
  ])
  for (const client of [caller, callee]) runsOn(client)
  stopAll(pair)
}

/** Several at once, in both directions: on a cluster they are on all of its masters. */
const wholeCalls = (one: Service, two: Service) =>
  Promise.all(Array.from({ length: 12 }, (_, i) => (i % 2 === 0 ? wholeCall(one, two) : wholeCall(two, one))))

test('[EXT3] [REL2] [RES1] [ORD2] [HIST2] two nodes on a cluster: whole calls across them', async () => {
  const env = await onCluster()
  await withNodes(env, async (one, two) => {
    await wholeCalls(one, two)
    const [, hosts = ''] = (env.REDIS_URL ?? '').split('://')
    for (const host of hosts.split(',')) {
      const master = new Redis(`redis://${host}`)
      expect(await master.dbsize()).toBeGreaterThan(0)
      master.disconnect()
    }
  })
}, 240_000)

test('[EXT3] [REL2] [RES1] [ORD2] [HIST2] two nodes on servers that Sentinel watches: whole calls across them', async () => {
  await withNodes(await onSentinel(), async (one, two) => void (await wholeCalls(one, two)))
}, 240_000)

test('[RES4] [END3] two nodes on servers that Sentinel watches: the master dies, a call across them goes on', async () => {
  await withNodes(await onSentinel(), async (one, two) => {
    const pair = await pairOn(one, two)
    const call = await connectedCall(pair)
    await relay(pair.caller, call, 0)
    await pair.callee.next('webrtc.ice_candidate', endsWith(0))
    await group?.master.kill()
    await group?.promoted()
    await until('both nodes are ready', async () => {
      const answers = await Promise.all([one, two].map(({ url }) => fetch(`${url}/readyz`)))
      return answers.every(({ status }) => status === 200)
    })
    await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 1))
    await pair.callee.next('webrtc.ice_candidate', endsWith(1))
    expect(numbersTo(pair.callee, call)).toEqual([0, 1])
    expect(toldOf(pair.caller, 'call.ended', call)).toBe(0)
    // The owners of both have everything that only the master had: nobody hears of it [RES4].
    for (const client of [pair.caller, pair.callee]) {
      expect(client.events()).not.toContain('session.reset')
      runsOn(client)
    }
    await hangUp(two, pair, call)
    stopAll(pair)
  })
}, 240_000)
