import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { callKey, type LiveCall, placeOf } from '../call/call.ts'
import { newSessionId } from '../ports/session-id.ts'
import { createSocket, resumeOf, somebody } from '../ports/sessions.fixture.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Arriving } from './arrivals.ts'
import {
  answered,
  connectPeer,
  type DomainOptions,
  done,
  eventsOf,
  invited,
  openDomains,
  type Peer,
} from './domain.fixture.ts'

const openDomain = openDomains()

/** A call that was answered. */
async function setUp(options: DomainOptions = {}) {
  const domain = await openDomain(options)
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, somebody())
  return { domain, caller, callee, call: await answered(domain, caller, callee) }
}

/** Something that is to happen once, in the middle of something else. */
function once() {
  const moment: { run?: (() => Promise<unknown>) | undefined } = {}
  return {
    plan(run: () => Promise<unknown>) {
      moment.run = run
    },
    async happen() {
      const { run } = moment
      moment.run = undefined
      await run?.()
    },
  }
}

/** A new session of somebody's device. */
const again = ({ actor }: Peer): Arriving => ({ ...actor, sessionId: newSessionId(actor.participant), extended: true })

test('an arrival that is turned away leaves nothing that fails unheard', async () => {
  const { promise: failed, reject } = Promise.withResolvers<never>()
  const failure = new StoreError('unavailable', 'away')
  let isAway = false
  const { domain, callee } = await setUp({
    sessions: (real) => ({
      owing: (identity) => (isAway ? ['another'] : real.owing(identity)),
      sinkOf: (id, node) => (isAway ? failed : real.sinkOf(id, node)),
    }),
  })
  isAway = true
  const arriving = domain.arrivals.arrive(again(callee), createSocket(), undefined)
  reject(failure)
  await expect(Promise.resolve(arriving)).rejects.toBe(failure)
})

test('[RES1] a session that is back while its loss is looked into keeps its places', async () => {
  const inBetween = once()
  const { domain, callee, call } = await setUp({
    store: (real) => ({
      async liveCallsOf(participant) {
        const live = await real.liveCallsOf(participant)
        await inBetween.happen()
        return live
      },
    }),
  })
  inBetween.plan(async () => domain.sessions.resume(resumeOf(callee, 0), callee.identity, createSocket(), Date.now()))
  await domain.arrivals.leave(callee.actor, callee.socket, { closed: false, forGood: false, cause: 'lost' })
  expect(domain.sessions.heldHere(callee.id)).toBeDefined()
  expect(await domain.store.load(call)).toMatchObject({ version: call.version, calleePlace: { state: 'held' } })
})

test('[PEER1] a session that is back before anybody saw it leave its node was never away', async () => {
  const { domain, caller, callee, call } = await setUp()
  const onGone = { ...caller.actor, node: 'gone' }
  await domain.calls.run(call, { type: 'arrive', actor: onGone })
  const told = callee.socket.told.length
  await domain.calls.run(call, { type: 'lose', sessionId: caller.id, node: 'gone' })
  expect(await domain.store.load(call)).toMatchObject({ callerPlace: { state: 'held', sessionId: caller.id } })
  expect(callee.socket.told.slice(told)).toEqual([])
  await domain.arrivals.leave(onGone, caller.socket, { closed: false, forGood: false, cause: 'lost' })
  await domain.calls.run(call, { type: 'lose', sessionId: caller.id, node: 'gone' })
  expect(await domain.store.load(call)).toMatchObject({ callerPlace: { state: 'vacant', sessionId: caller.id } })
})

test('[PEER1] nor was one that has a socket at another node by then, whoever reports the loss', async () => {
  let isBack = true
  const { domain, caller, callee, call } = await setUp({
    sessions: (real) => ({ awaitedMs: (id, node) => (isBack ? 'back' : real.awaitedMs(id, node)) }),
  })
  await domain.calls.run(call, { type: 'arrive', actor: { ...caller.actor, node: 'gone' } })
  await domain.sessions.detach(caller.id, caller.socket, false, Date.now())
  const told = callee.socket.told.length
  const lose = () => domain.calls.run(call, { type: 'lose', sessionId: caller.id, node: 'gone' })
  await lose()
  expect(await domain.store.load(call)).toMatchObject({ callerPlace: { state: 'held', node: 'gone' } })
  expect(callee.socket.told.slice(told)).toEqual([])
  // A new session of its device leaves it the place, and asks once.
  await domain.arrivals.arrive(again(caller), createSocket(), undefined)
  expect(await domain.store.load(call)).toMatchObject({ callerPlace: { state: 'held', sessionId: caller.id } })
  isBack = false
  await lose()
  expect(await domain.store.load(call)).toMatchObject({ callerPlace: { state: 'vacant' } })
})

test('[PLACE2] [RES1] a phone that resumes has its place back from a socket that it gave up, with what came there', async () => {
  const { domain, caller, callee, call } = await setUp()
  const seq = caller.socket.told.length
  await domain.sessions.prove(caller.id, seq)
  await domain.arrivals.leave(caller.actor, caller.socket, { closed: false, forGood: false, cause: 'lost' })
  // It was long on its way, and nobody has found out that its client is gone.
  const stray = again(caller)
  await domain.arrivals.arrive(stray, createSocket(), undefined)
  await domain.sessions.ready(stray.sessionId)
  const data = { call_uuid: call.callUuid, candidate: 'candidate:1' }
  await domain.relay.relay(callee.actor, 'webrtc.ice_candidate', data, undefined)
  const socket = createSocket()
  const back = { ...caller.actor, extended: true }
  const { recovered, activeCalls } = await domain.arrivals.arrive(back, socket, resumeOf(caller, seq))
  await domain.sessions.ready(caller.id)
  expect(recovered).toBe(true)
  expect(activeCalls).toMatchObject([{ call_uuid: call.callUuid, holds_place: true }])
  expect(await domain.store.load(call)).toMatchObject({ callerPlace: { sessionId: caller.id, settled: true } })
  done(await domain.calls.verb(callee.actor, 'end', call.callUuid, null))
  expect(eventsOf({ socket })).toEqual(['webrtc.ice_candidate', 'call.ended'])
})

test('[PLACE2] [RES1] a phone that resumes hears how its call ended while a socket that it gave up had the place', async () => {
  for (const isPassed of [true, false]) {
    const { domain, caller, callee, call } = await setUp()
    const seq = caller.socket.told.length
    await domain.sessions.prove(caller.id, seq)
    await domain.arrivals.leave(caller.actor, caller.socket, { closed: false, forGood: false, cause: 'lost' })
    const stray = { session: again(caller), socket: createSocket() }
    if (isPassed) {
      await domain.arrivals.arrive(stray.session, stray.socket, undefined)
      await domain.sessions.ready(stray.session.sessionId)
    }
    done(await domain.calls.verb(callee.actor, 'end', call.callUuid, null))
    const socket = createSocket()
    const { recovered } = await domain.arrivals.arrive(
      { ...caller.actor, extended: true },
      socket,
      resumeOf(caller, seq),
    )
    await domain.sessions.ready(caller.id)
    expect(recovered).toBe(true)
    await until('it hears the end', () => eventsOf({ socket }).length > 0)
    await domain.sessions.confirm(callKey(call))
    expect([eventsOf({ socket }), eventsOf(stray)]).toEqual([['call.ended'], isPassed ? ['call.ended'] : []])
    expect(socket.told[0]).toMatchObject({ data: { call_uuid: call.callUuid, status: 'ended', reason: 'hangup' } })
  }
})

test('[TAKE1] [PLACE1] a session that heard that its call was taken hears nothing of its end after a resume', async () => {
  const { domain, caller, callee, call } = await setUp()
  const tab = await connectPeer(domain, caller.actor.participant)
  done(await domain.calls.take(tab.actor, call.callUuid))
  expect(eventsOf(caller).at(-1)).toBe('call.cancelled')
  const seq = caller.socket.told.length
  await domain.sessions.prove(caller.id, seq)
  await domain.arrivals.leave(caller.actor, caller.socket, { closed: false, forGood: false, cause: 'lost' })
  done(await domain.calls.verb(callee.actor, 'end', call.callUuid, null))
  const socket = createSocket()
  const back = { ...caller.actor, extended: true }
  expect((await domain.arrivals.arrive(back, socket, resumeOf(caller, seq))).recovered).toBe(true)
  await domain.sessions.ready(caller.id)
  // This ring comes after everything that the resume has begun.
  await invited(domain, callee, caller)
  await until('another call rings', () => eventsOf({ socket }).includes('call.ringing'))
  expect(eventsOf({ socket })).toEqual(['call.ringing'])
})

test('[EXT1] a call that a snapshot says rings does ring there: who is told of it hears of its end', async () => {
  for (const resumes of [true, false]) {
    let reads = 0
    const inBetween = once()
    const { domain, callee } = await setUp({
      store: (real) => ({
        async liveCallsOf(participant) {
          // After the rings were sent, and before the snapshot.
          if (++reads === 2) await inBetween.happen()
          return real.liveCallsOf(participant)
        },
      }),
      // Nobody could tell of it in time.
      sessions: (real) => ({
        appendLive: () => Promise.reject(new StoreError('unavailable', 'away')),
        appendRung: real.appendRung,
      }),
    })
    const other = await connectPeer(domain, { ...somebody(), role: 'customer' })
    await domain.sessions.detach(callee.id, callee.socket, false, Date.now())
    reads = 0
    inBetween.plan(() => invited(domain, other, callee))
    const arriving = resumes ? { ...callee.actor, extended: true } : again(callee)
    const socket = createSocket()
    const { activeCalls, sessionId } = await domain.arrivals.arrive(
      arriving,
      socket,
      resumes ? resumeOf(callee, 0) : undefined,
    )
    await domain.sessions.ready(sessionId)
    const ringing = activeCalls.filter(({ status }) => status === 'ringing')
    expect(ringing).toHaveLength(1)
    expect(socket.told.map(({ event }) => event)).toContain('call.ringing')
  }
})

test('[WS4] a session at which a call rang when it was over, and that went before it could be told so, is told when it resumes', async () => {
  let isAway = false
  const inBetween = once()
  const { domain, callee } = await setUp({
    store: (real) => ({
      load: (ref) => (isAway ? Promise.reject(new StoreError('unavailable', 'away')) : real.load(ref)),
    }),
    sessions: (real) => ({
      async append(id, push) {
        if (push.kind === 'ringing') await inBetween.happen()
        return real.append(id, push)
      },
    }),
  })
  const other = await connectPeer(domain, { ...somebody(), role: 'customer' })
  await domain.sessions.detach(callee.id, callee.socket, false, Date.now())
  const callUuid = await invited(domain, other, callee)
  const resume = (socket = createSocket()) =>
    domain.arrivals.arrive({ ...callee.actor, extended: true }, socket, resumeOf(callee, 0))
  // The one who cancels looks for whom it rings, and then the database is away.
  inBetween.plan(async () => {
    await domain.calls.verb(other.actor, 'cancel', callUuid, null)
    isAway = true
  })
  const failure = await Promise.resolve(resume()).catch((error) => error)
  expect(failure).toBeInstanceOf(StoreError)
  isAway = false
  const socket = createSocket()
  const { sessionId } = await resume(socket)
  await domain.sessions.ready(sessionId)
  expect(socket.told.map(({ event }) => event)).toContain('call.cancelled')
})

test('[PLACE1] whoever answered is never told that somebody else did, also where the place has passed on since', async () => {
  const inBetween = once()
  let isAway = false
  const { domain, caller, callee } = await setUp({
    isAway: () => isAway,
    store: (real) => ({
      async load(ref) {
        await inBetween.happen()
        return real.load(ref)
      },
    }),
  })
  const callUuid = await invited(domain, caller, callee)
  const socket = createSocket()
  const next = again(callee)
  // It was read that the call rings, and is to be read whether it still does.
  inBetween.plan(async () => {
    // Nobody has the answer yet.
    isAway = true
    await domain.calls.verb(callee.actor, 'accept', callUuid, null)
    await domain.arrivals.leave(callee.actor, callee.socket, { closed: false, forGood: false, cause: 'lost' })
    await domain.arrivals.arrive(next, socket, undefined)
    await domain.sessions.ready(next.sessionId)
  })
  await domain.arrivals.renew(callee.actor, Date.now() + 60_000)
  isAway = false
  const { product } = callee.actor.participant
  const passedOn = (await domain.store.load({ product, callUuid })) as LiveCall
  expect(passedOn).toMatchObject({ calleePlace: { sessionId: next.sessionId, state: 'held' } })
  expect(await domain.delivery.catchUp(passedOn)).toBe('done')
  expect(eventsOf({ socket })).toEqual([])
})

test('[PLACE4] of many that connect while a holder is asked, those that are gone by then do not pass its place around', async () => {
  let isCounting = false
  let transitions = 0
  const { domain, callee, call } = await setUp({
    store: (real) => ({
      transition(ref, decide) {
        if (isCounting) transitions++
        return real.transition(ref, decide)
      },
    }),
  })
  const verdict = Promise.withResolvers<boolean>()
  callee.socket.probe = () => verdict.promise
  const others = Array.from({ length: 40 }, () => {
    const socket = Object.assign(createSocket(), { isClosed: false })
    return { socket, session: { ...again(callee), extended: false } }
  })
  const arrivals = others.map(async ({ session, socket }) => {
    await domain.arrivals.arrive(session, socket, undefined)
    await domain.sessions.ready(session.sessionId)
  })
  await Promise.all(arrivals)
  for (const { socket } of others.slice(0, -1)) {
    socket.isClosed = true
    socket.probe = async () => false
  }
  isCounting = true
  verdict.resolve(false)
  const last = others.at(-1)!.session.sessionId
  await until('the place has passed on', async () => {
    const now = (await domain.store.load(call)) as LiveCall
    return placeOf(now, 'callee')?.sessionId === last
  })
  // Each of them hears the verdict, and then it is over.
  expect(transitions).toBeWithin(2, 2 * others.length)
})

for (const how of ['lost', 'replaced'] as const) {
  test(`[PLACE4] [RES1] a session whose socket is ${how} while a holder is asked gets the place on its next socket`, async () => {
    const { domain, callee, call } = await setUp()
    const verdict = Promise.withResolvers<boolean>()
    callee.socket.probe = () => verdict.promise
    const session = again(callee)
    const first = Object.assign(createSocket(), { isClosed: false })
    first.retire = async () => {
      first.isClosed = true
    }
    const { epoch } = await domain.arrivals.arrive(session, first, undefined)
    await domain.sessions.ready(session.sessionId)
    if (how === 'lost') {
      first.isClosed = true
      await domain.arrivals.leave(session, first, { closed: false, forGood: false, cause: 'lost' })
    }
    const { recovered } = await domain.arrivals.arrive(again(callee), createSocket(), {
      sessionId: session.sessionId,
      epoch,
      seq: 0,
    })
    expect([recovered, first.isClosed]).toEqual([true, true])
    verdict.resolve(false)
    await until('it has the place', async () => {
      const now = (await domain.store.load(call)) as LiveCall
      return placeOf(now, 'callee')?.sessionId === session.sessionId
    })
  })
}

test('[PLACE4] [WS4] a store that is away when a holder is found dead is asked again, for the place and for what was missed', async () => {
  const away = new StoreError('unavailable', 'away')
  let failures = 0
  let isAway = false
  function orAway<T>(work: () => T): T {
    if (isAway) {
      failures++
      throw away
    }
    return work()
  }
  const { domain, callee, call } = await setUp({
    store: (real) => ({ transition: (ref, decide) => orAway(() => real.transition(ref, decide)) }),
    sessions: (real) => ({ collectFinals: (identity) => orAway(() => real.collectFinals(identity)) }),
  })
  const verdict = Promise.withResolvers<boolean>()
  callee.socket.probe = () => verdict.promise
  const session = again(callee)
  await domain.arrivals.arrive(session, Object.assign(createSocket(), { isClosed: false }), undefined)
  await domain.sessions.ready(session.sessionId)
  isAway = true
  verdict.resolve(false)
  await until('the store was asked', () => failures > 0)
  isAway = false
  await until('it has the place', async () => {
    const now = (await domain.store.load(call)) as LiveCall
    return placeOf(now, 'callee')?.sessionId === session.sessionId
  })
  expect(failures).toBeGreaterThan(0)
})
