import { expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { candidate } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { upTo } from '../contracts/session-parts.ts'
import { answeredCall, connectedCall, type ExtendedPair } from '../support/extended-flows.ts'
import { hangUp, numbersTo, pairOn, stopAll } from './people.ts'
import { becomesReady, insist, storedCalls, toldOf, worldFor } from './world.ts'

/** Nodes that stand still for long, as machines do that are paused, and wake. */
const world = worldFor()

/** Longer than it takes to be taken for dead, and to lose everything to others, in ms. */
const oneStopMs = 60_000
/** Just longer than it takes to be taken for dead, in ms. */
const shortStopMs = 8_000
/** Longer than any lost clock runs, in ms. */
const allStopMs = 150_000

const signal = (node: Service, name: NodeJS.Signals) => void process.kill(node.pid, name)

/** Each candidate comes before the next one is sent, both ways in turn. */
async function relay({ caller, callee }: ExtendedPair, call: string, n: number): Promise<void> {
  const [from, to] = n % 2 === 0 ? [caller, callee] : [callee, caller]
  await insist(from, 'webrtc.ice_candidate', candidate(call, n))
  await to.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(`:${n}`))
}

function expectEachOnce({ caller, callee }: ExtendedPair, call: string, count: number): void {
  const all = upTo(count).map((n) => n - 1)
  expect(numbersTo(callee, call)).toEqual(all.filter((n) => n % 2 === 0))
  expect(numbersTo(caller, call)).toEqual(all.filter((n) => n % 2 === 1))
}

async function moveTo(at: Service, ...clients: readonly ExtendedClient[]): Promise<void> {
  await Promise.all(
    clients.map(async (client) => {
      await client.die()
      client.url = at.url
      expect((await client.connect()).data).toMatchObject({ recovered: true })
    }),
  )
}

test('[RES1] [EXT4] [CLOSE] a node stands still for a minute, and its people go on at the other one: it wakes, and nobody hears anything twice', async () => {
  const { one, two } = world()
  const [across, alone] = [await pairOn(one, two), await pairOn(one, one)]
  const pairs = [across, alone]
  const calls = [await connectedCall(across), await connectedCall(alone)]
  let count = 0
  const relayAll = async () => {
    await Promise.all(pairs.map((pair, i) => relay(pair, calls[i] as string, count)))
    count++
  }
  await relayAll()
  await relayAll()
  signal(one, 'SIGSTOP')
  const stoppedAt = performance.now()
  try {
    await moveTo(two, across.caller, alone.caller, alone.callee)
    while (performance.now() - stoppedAt < oneStopMs) {
      await relayAll()
      await Bun.sleep(100)
    }
  } finally {
    signal(one, 'SIGCONT')
  }
  await becomesReady(one, two)
  await relayAll()
  // A client that comes to it finds what the other node has.
  await moveTo(one, alone.callee)
  await relayAll()
  await relayAll()
  for (const [i, pair] of pairs.entries()) {
    const call = calls[i] as string
    expectEachOnce(pair, call, count)
    await hangUp(two, pair, call)
    expect([toldOf(pair.caller, 'call.accepted', call), toldOf(pair.caller, 'call.ended', call)]).toEqual([1, 1])
  }
  stopAll(...pairs)
}, 300_000)

for (const round of [1, 2, 3]) {
  test(`[INV4] [RES1] a node that stood still, and goes on, keeps what comes to it at once (${round})`, async () => {
    const { one, two } = world()
    const before = await pairOn(one, two)
    const call = await connectedCall(before)
    signal(one, 'SIGSTOP')
    try {
      await moveTo(two, before.caller)
      for (const since = performance.now(); performance.now() - since < shortStopMs; await Bun.sleep(100)) {
        await relay(before, call, 0)
        await relay(before, call, 1)
      }
    } finally {
      signal(one, 'SIGCONT')
    }
    await becomesReady(one)
    // Who comes back, who comes for the first time, and who is rung there, before the other node can have looked again.
    const came = [pairOn(one, two), pairOn(two, one)]
    await moveTo(one, before.caller)
    await relay(before, call, 2)
    const pairs = await Promise.all(came)
    const calls = await Promise.all(pairs.map((pair) => connectedCall(pair)))
    await Promise.all(pairs.map((pair, i) => relay(pair, calls[i] as string, 0)))
    await relay(before, call, 3)
    const all = [before, ...pairs].flatMap(({ caller, callee }) => [caller, callee])
    // Nobody was sent away in between: what closed were sockets that died.
    const closes = all.flatMap(({ entries }) => entries.flatMap((each) => (each.kind === 'closed' ? [each.code] : [])))
    expect(closes.filter((code) => code !== 1006)).toEqual([])
    // Nor told that somebody was away.
    const people = pairs.flatMap(({ caller, callee }) => [caller, callee])
    expect(people.flatMap((client) => client.events().filter((event) => event === 'call.peer_away'))).toEqual([])
    stopAll(before, ...pairs)
  }, 300_000)
}

test('[END3] all nodes stand still for longer than a lost clock runs: they wake, and every call goes on', async () => {
  const { one, two } = world()
  // A node that wakes seconds before the other one takes it for dead: it closes its sockets with 1013 then, and its clients
  // come back [ORD1].
  const [across, lost] = [await pairOn(one, two, true), await pairOn(two, one)]
  const [call, alsoKept] = [await connectedCall(across), await answeredCall(lost)]
  await relay(across, call, 0)
  // Its place is vacant, and its clock runs, when nobody can come back any more.
  await lost.caller.die()
  await lost.callee.next('call.peer_away', ({ data }) => data.call_uuid === alsoKept)
  for (const node of [one, two]) signal(node, 'SIGSTOP')
  try {
    await Bun.sleep(allStopMs)
  } finally {
    for (const node of [one, two]) signal(node, 'SIGCONT')
  }
  await becomesReady(one, two)
  expect((await lost.caller.connect()).data).toMatchObject({ session_id: expect.any(String) })
  await relay(across, call, 1)
  await relay(across, call, 2)
  expectEachOnce(across, call, 3)
  expect((await storedCalls(world(), call, alsoKept)).map(({ status }) => status).sort()).toEqual([
    'accepted',
    'connected',
  ])
  await hangUp(one, across, call)
  stopAll(across, lost)
}, 400_000)
