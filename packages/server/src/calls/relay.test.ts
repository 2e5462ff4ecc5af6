import { describe, expect, test } from 'bun:test'
import { type Call, callKey } from '../call/call.ts'
import { type Decision, unchanged } from '../call/command.ts'
import { ringsUntil } from '../call/effects.ts'
import { beginTurn, firstTurn, passTurn } from '../call/turns.ts'
import { created, ringing, there } from '../ports/call-store.fixture.ts'
import type { AppendResult, Push } from '../ports/push.ts'
import { somebody } from '../ports/sessions.fixture.ts'
import {
  answered,
  connectPeer,
  type Domain,
  type DomainOptions,
  done,
  eventsOf,
  invited,
  openDomains,
  type Peer,
} from './domain.fixture.ts'
import type { Waiter } from './request.ts'

const openDomain = openDomains()

interface Pair {
  readonly domain: Domain
  readonly caller: Peer
  readonly callee: Peer
}

async function setUp(options: DomainOptions = {}): Promise<Pair> {
  const domain = await openDomain(options)
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  return { domain, caller, callee: await connectPeer(domain, somebody()) }
}

/** A call in which both have spoken; from now on appends of relays go to `onAppend` first. */
async function setUpRelays(onAppend: (real: () => AppendResult, push: Push) => AppendResult | Promise<AppendResult>) {
  let listens = false
  const pair = await setUp({
    // A holder that cannot be made up for here: what is gone is looked for again.
    isElsewhere: true,
    sessions: (real) => ({
      append(sessionId: string, push: Push) {
        const append = () => real.append(sessionId, push) as AppendResult
        return listens && push.kind === 'relay' ? onAppend(append, push) : append()
      },
    }),
  })
  const { domain, caller, callee } = pair
  const { callUuid } = await answered(domain, caller, callee)
  for (const { actor } of [caller, callee]) done(await domain.calls.seat(actor, callUuid))
  listens = true
  return { ...pair, callUuid }
}

const send = ({ relay }: Domain, { actor }: Peer, callUuid: string, n: number) =>
  relay.relay(actor, 'webrtc.ice_candidate', { call_uuid: callUuid, candidate: `candidate:${n}` }, undefined)

/** The candidates that a session was handed, in order. */
const candidatesOf = ({ socket }: Peer) =>
  socket.told
    .filter(({ event }) => event === 'webrtc.ice_candidate')
    .map(({ data }) => (data as unknown as { candidate: string }).candidate)

test('[ORD2] a step that could not be handed on is told before a relay of who knows of it', async () => {
  let isAway = false
  const { domain, caller, callee } = await setUp({ isAway: () => isAway })
  const callUuid = await invited(domain, caller, callee)
  expect(await send(domain, callee, callUuid, 1)).toBe('ringing')
  isAway = true
  const call = done(await domain.calls.verb(callee.actor, 'accept', callUuid, null))
  expect([...domain.delivery.undelivered]).toEqual([callKey(call)])
  expect(eventsOf(caller)).toEqual([])
  isAway = false
  expect(await send(domain, callee, callUuid, 2)).toBe('accepted')
  expect(eventsOf(caller)).toEqual(['call.accepted', 'webrtc.ice_candidate', 'webrtc.ice_candidate'])
  expect(candidatesOf(caller)).toEqual(['candidate:1', 'candidate:2'])
  expect([...domain.delivery.undelivered]).toEqual([])
})

test('[GROUP1] [REL2] what a member sends early comes after its accept; what the others send goes to nobody', async () => {
  const domain = await openDomain()
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, somebody())
  const other = await connectPeer(domain, somebody())
  const members = [callee, other].map(({ actor }) => actor.participant.userId)
  const { sessionId, deviceId, node } = caller.actor
  const blank = { ...callee.actor.participant, userId: '' }
  const call = ringing(caller.actor.participant, blank, {
    group: { name: 'desk', members, declined: [] },
    callerPlace: { state: 'held', settled: true, sessionId, deviceId, node },
  })
  await domain.store.transition(call, () => ({ steps: [created(call)] }))
  for (const [n, member] of [callee, other, callee].entries())
    expect(await send(domain, member, call.callUuid, n + 1)).toBe('ringing')
  expect(candidatesOf(caller)).toEqual([])
  done(await domain.calls.verb(callee.actor, 'accept', call.callUuid, null))
  expect(candidatesOf(caller)).toEqual(['candidate:1', 'candidate:3'])
  expect(await send(domain, other, call.callUuid, 4)).toMatchObject({ code: 'CALL_NOT_PARTICIPANT' })
})

test('[REL2] [GROUP1] what a member sends before the turn in which it accepts goes to nobody', async () => {
  const domain = await openDomain()
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, somebody())
  const { sessionId, deviceId, node } = caller.actor
  const { participant } = callee.actor
  const member = participant.userId
  const call = ringing(
    caller.actor.participant,
    { ...participant, userId: '' },
    {
      group: { name: 'desk', members: [member], declined: [], turns: firstTurn(60_000, 0) },
      callerPlace: { state: 'held', settled: true, sessionId, deviceId, node },
    },
  )
  await domain.store.transition(call, () => ({ steps: [created(call)] }))
  const happens = async (decide: (call: Call) => Decision) => {
    const { steps } = await domain.store.transition(call, (found) => decide(there(found)))
    expect(steps).toHaveLength(1)
    for (const step of steps) await domain.delivery.apply(step)
  }
  const turnBegins = () => happens((call) => beginTurn(call, member, call.version, Date.now()))
  await turnBegins()
  expect(await send(domain, callee, call.callUuid, 1)).toBe('ringing')
  await happens((call) => passTurn(call, ringsUntil(call)) ?? unchanged(call))
  expect(await send(domain, callee, call.callUuid, 2)).toBe('ringing')
  await happens((call) => beginTurn(call, null, call.version, ringsUntil(call)))
  await turnBegins()
  expect(await send(domain, callee, call.callUuid, 3)).toBe('ringing')
  done(await domain.calls.verb(callee.actor, 'accept', call.callUuid, null))
  expect(candidatesOf(caller)).toEqual(['candidate:3'])
})

test('[ORD2] a relay waits for a step that waits for a lost log, and is refused for now where that takes too long', async () => {
  let isLost = false
  let looks = 0
  const { domain, caller, callee } = await setUp({
    isElsewhere: true,
    sessions: (real) => ({
      apply(...how) {
        if (isLost) looks++
        return isLost ? undefined : real.apply(...how)
      },
    }),
  })
  const callUuid = await invited(domain, caller, callee)
  isLost = true
  done(await domain.calls.verb(callee.actor, 'accept', callUuid, null))
  looks = 0
  expect(await send(domain, callee, callUuid, 1)).toMatchObject({ code: 'SERVICE_UNAVAILABLE', retryable: true })
  expect(looks).toBeGreaterThan(2)
  expect(candidatesOf(caller)).toEqual([])
  isLost = false
  expect(await send(domain, callee, callUuid, 2)).toBe('accepted')
  expect(eventsOf(caller)).toEqual(['call.accepted', 'webrtc.ice_candidate'])
  expect(candidatesOf(caller)).toEqual(['candidate:2'])
})

describe('a place that is not where it was', () => {
  for (const answer of ['elsewhere', 'gone'] as const) {
    test(`[PLACE2] a relay is sent again, until the answer is another one than ${answer}`, async () => {
      const answers = [answer, answer, answer]
      const { domain, caller, callee, callUuid } = await setUpRelays((append) => answers.shift() ?? append())
      expect(await send(domain, caller, callUuid, 1)).toBe('accepted')
      expect(answers).toEqual([])
      expect(candidatesOf(callee)).toEqual(['candidate:1'])
    })

    test(`[PLACE2] it is refused for now where the answer is ${answer} each time, and is not sent any more`, async () => {
      let appends = 0
      let isOld = true
      const { domain, caller, callee, callUuid } = await setUpRelays((append) => {
        appends++
        return isOld ? answer : append()
      })
      expect(await send(domain, caller, callUuid, 1)).toMatchObject({ code: 'SERVICE_UNAVAILABLE', retryable: true })
      expect(appends).toBeGreaterThan(1)
      isOld = false
      expect(await send(domain, caller, callUuid, 2)).toBe('accepted')
      expect(candidatesOf(callee)).toEqual(['candidate:2'])
    })
  }

  test('[PLACE2] a relay follows a place that passes on while it is sent', async () => {
    const moves: (() => Promise<void>)[] = []
    const { domain, caller, callee, callUuid } = await setUpRelays(async (append) => {
      const move = moves.shift()
      if (move === undefined) return append()
      await move()
      return 'elsewhere'
    })
    const other = await connectPeer(domain, callee.actor.participant, 'phone')
    moves.push(async () => {
      await domain.sessions.detach(callee.id, callee.socket, false, Date.now())
      const ref = { product: callee.actor.participant.product, callUuid }
      await domain.calls.run(ref, { type: 'lose', sessionId: callee.id, node: callee.actor.node })
      done(await domain.calls.seat(other.actor, callUuid))
    })
    expect(await send(domain, caller, callUuid, 1)).toBe('accepted')
    expect(moves).toEqual([])
    expect(candidatesOf(other)).toEqual(['candidate:1'])
    expect(candidatesOf(callee)).toEqual([])
  })
})

test('[EXT4] what is refused because later ones were taken is refused as it was before, at once', async () => {
  let asked = 0
  const { domain, caller, callUuid } = await setUpRelays(() => {
    asked++
    return 'late'
  })
  expect(await send(domain, caller, callUuid, 1)).toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
  expect(asked).toBe(1)
})

describe('[ORD1] while one is on its way to another node', () => {
  /** The first append is answered when the test says so, and as it says. */
  async function setUpUnderWay() {
    const first = Promise.withResolvers<AppendResult>()
    const asked: (Push['source'] | undefined)[] = []
    const answers: (() => AppendResult | Promise<AppendResult>)[] = [() => first.promise, () => 'early']
    const pair = await setUpRelays((append, { source }) => {
      asked.push(source)
      return answers.shift()?.() ?? append()
    })
    const waiter = (ahead?: Waiter['ahead']) => {
      const said: number[] = []
      return {
        said,
        ahead,
        waitsFor() {},
        waitsOutside: () => AbortSignal.any([]),
        nextNumber: () => 100,
        isUnderWayAs: (n: number) => void said.push(n),
      }
    }
    return { ...pair, first, asked, waiter }
  }
  const sendAs = ({ relay }: Domain, { actor }: Peer, callUuid: string, n: number | undefined, waiter: Waiter) =>
    relay.relay(actor, 'webrtc.ice_candidate', { call_uuid: callUuid, candidate: `candidate:${n}` }, n, waiter)

  test('[PLACE2] what waited for it is not passed in the name of who lost the place meanwhile', async () => {
    const { domain, caller, callee, callUuid, first, waiter } = await setUpUnderWay()
    const one = waiter()
    const sent = sendAs(domain, caller, callUuid, 1, one)
    expect(one.said).toEqual([1])
    const done = Promise.resolve(sent).then(() => {})
    const two = sendAs(domain, caller, callUuid, 2, waiter({ n: 1, done }))
    const other = await connectPeer(domain, caller.actor.participant, 'phone')
    await domain.sessions.detach(caller.id, caller.socket, false, Date.now())
    const ref = { product: caller.actor.participant.product, callUuid }
    await domain.calls.run(ref, { type: 'lose', sessionId: caller.id, node: caller.actor.node })
    expect((await domain.calls.seat(other.actor, callUuid)).ok).toBe(true)
    first.resolve('sent')
    expect(await sent).toBe('accepted')
    expect(await two).toMatchObject({ code: expect.any(String) })
    expect(candidatesOf(callee)).toEqual([])
  })

  test('[EXT4] one that its client did not number waits for it, and nothing follows it at once', async () => {
    const { domain, caller, callee, callUuid, first, asked, waiter } = await setUpUnderWay()
    const sent = sendAs(domain, caller, callUuid, 1, waiter())
    const done = Promise.resolve(sent).then(() => {})
    const unnumbered = { ...waiter({ n: 1, done }), nextNumber: () => undefined }
    const two = sendAs(domain, caller, callUuid, undefined, unnumbered)
    await Bun.sleep(0)
    expect(asked.map((source) => source?.n ?? 0)).toEqual([1])
    first.resolve('sent')
    expect([await sent, await two]).toEqual(['accepted', 'accepted'])
    expect(unnumbered.said).toEqual([])
    expect(candidatesOf(callee)).toHaveLength(1)
  })
})

test('[REL2] [EXT4] base sessions are numbered each by its socket: what others relay meanwhile makes nothing old', async () => {
  const sources: Push['source'][] = []
  const domain = await openDomain({
    isShared: true,
    sessions: (real) => ({
      append(id: string, push: Push) {
        if (push.kind === 'relay') sources.push(push.source)
        return real.append(id, push)
      },
    }),
  })
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, somebody())
  const { callUuid } = await answered(domain, caller, callee)
  for (const { actor } of [caller, callee]) done(await domain.calls.seat(actor, callUuid))
  const waiterOf = () => {
    let last = 0
    return {
      ahead: undefined,
      waitsFor() {},
      waitsOutside: () => AbortSignal.any([]),
      nextNumber: () => ++last,
      isUnderWayAs() {},
    }
  }
  const [one, two] = [waiterOf(), waiterOf()]
  const relay = ({ actor }: Peer, waiter: Waiter) =>
    domain.relay.relay(actor, 'webrtc.ice_candidate', { call_uuid: callUuid, candidate: 'x' }, undefined, waiter)
  for (const [peer, waiter] of [
    [caller, one],
    [callee, two],
    [callee, two],
    [caller, one],
  ] as const)
    await relay(peer, waiter)
  expect(sources.map((source) => source?.n ?? 0)).toEqual([1, 1, 2, 2])
})
