import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Call, LiveCall } from '../call/call.ts'
import { newSessionId } from '../ports/session-id.ts'
import { createSocket, resumeOf, somebody } from '../ports/sessions.fixture.ts'
import type { Arriving } from './arrivals.ts'
import { answered, connectPeer, type Domain, done, openDomains, type Peer } from './domain.fixture.ts'

/** The call is transferred at the very moment at which the device of somebody in it comes back [XFER1]. */
const openDomain = openDomains()

/** Ben talks to Ann, and to Cy. */
async function setUp() {
  /** What happens after the next arrival has read its live calls, and before it takes a place. */
  let meanwhile: (() => Promise<unknown>) | undefined
  const domain = await openDomain({
    store: (real) => ({
      async liveCallsOf(participant) {
        const live = await real.liveCallsOf(participant)
        const run = meanwhile
        meanwhile = undefined
        await run?.()
        return live
      },
    }),
  })
  const come = () => connectPeer(domain, { ...somebody(), role: 'customer' }, 'phone', ['transfer'])
  const [ann, ben, cy, dee] = [await come(), await come(), await come(), await come()]
  const first = await answered(domain, ann, ben)
  const second = await answered(domain, cy, ben)

  async function transfer(how: 'joins' | 'rings'): Promise<void> {
    const { userId, role } = dee.actor.participant
    const to = how === 'joins' ? { to_call_uuid: second.callUuid } : { to_user_id: userId, to_role: role }
    const outcome = await domain.calls.transfer(ben.actor, { call_uuid: first.callUuid, ...to })
    if (outcome.ok) await outcome.handedOn
    done(outcome)
  }

  const leave = ({ actor, socket }: Peer) =>
    domain.arrivals.leave(actor, socket, { closed: false, forGood: false, cause: 'lost' })
  /** Ann's place in the call that the transfer made. */
  async function placeNow() {
    const one = (await domain.store.load(first)) as Call
    const callUuid = one.transferring?.to ?? one.transferredTo ?? ''
    return ((await domain.store.load({ ...first, callUuid })) as LiveCall).callerPlace
  }
  const plan = (run: () => Promise<unknown>) => {
    meanwhile = run
  }
  return { domain, ann, cy, first, transfer, leave, placeNow, plan }
}

/** A new session of somebody's device. */
const again = ({ actor }: Peer, extended: boolean): Arriving => ({
  ...actor,
  sessionId: newSessionId(actor.participant),
  extended,
})

for (const how of ['joins', 'rings'] as const) {
  for (const extended of [true, false]) {
    test(`[XFER1] [PLACE2] a call that ${how} meanwhile: a new ${extended ? '' : 'base '}session takes the place in it`, async () => {
      const { domain, ann, transfer, leave, placeNow, plan } = await setUp()
      await leave(ann)
      plan(() => transfer(how))
      const session = again(ann, extended)
      const { activeCalls } = await domain.arrivals.arrive(session, createSocket(), undefined)
      expect(await placeNow()).toMatchObject({ state: 'held', sessionId: session.sessionId })
      if (extended) expect(activeCalls.filter(({ holds_place }) => !holds_place)).toEqual([])
    })
  }

  test(`[XFER1] [PLACE4] a call that ${how} while its holder is asked: the new session takes the place of a dead one`, async () => {
    const { domain, ann, transfer, placeNow } = await setUp()
    const verdict = Promise.withResolvers<boolean>()
    ann.socket.probe = () => verdict.promise
    const session = again(ann, true)
    await domain.arrivals.arrive(session, createSocket(), undefined)
    await transfer(how)
    expect(await placeNow()).toMatchObject({ state: 'held', sessionId: ann.id })
    verdict.resolve(false)
    await until('the place passed on', async () => (await placeNow()).sessionId === session.sessionId)
  })

  test(`[XFER1] [RES1] a call that ${how} meanwhile: a session that resumes has the place in it at once`, async () => {
    const { domain, ann, transfer, leave, placeNow, plan } = await setUp()
    await leave(ann)
    plan(() => transfer(how))
    await domain.arrivals.arrive({ ...ann.actor, extended: true }, createSocket(), resumeOf(ann, 0))
    expect(await placeNow()).toMatchObject({ state: 'held', sessionId: ann.id })
  })

  test(`[XFER1] [PLACE2] a call that ${how} meanwhile: a session that resumes has its place back from one that only came`, async () => {
    const { domain, ann, transfer, leave, placeNow, plan } = await setUp()
    const seq = await loseToStray(domain, ann, leave)
    plan(() => transfer(how))
    const back = { ...ann.actor, extended: true }
    const { recovered } = await domain.arrivals.arrive(back, createSocket(), resumeOf(ann, seq))
    expect(recovered).toBe(true)
    expect(await placeNow()).toMatchObject({ state: 'held', sessionId: ann.id })
  })

  test(`[XFER1] [PLACE2] a call that ${how} before: a session that resumes has its place back from one that only came`, async () => {
    const { domain, ann, transfer, leave, placeNow } = await setUp()
    const seq = await loseToStray(domain, ann, leave)
    await transfer(how)
    const back = { ...ann.actor, extended: true }
    const { recovered, activeCalls } = await domain.arrivals.arrive(back, createSocket(), resumeOf(ann, seq))
    expect(recovered).toBe(true)
    expect(activeCalls.filter(({ holds_place }) => !holds_place)).toEqual([])
    expect(await placeNow()).toMatchObject({ state: 'held', sessionId: ann.id })
  })
}

test('[XFER1] [PLACE2] the callee of a call that two calls became before has its place back, too', async () => {
  const { domain, cy, first, transfer, leave } = await setUp()
  const seq = await loseToStray(domain, cy, leave)
  await transfer('joins')
  await domain.arrivals.arrive({ ...cy.actor, extended: true }, createSocket(), resumeOf(cy, seq))
  const callUuid = ((await domain.store.load(first)) as Call).transferredTo ?? ''
  expect(await domain.store.load({ ...first, callUuid })).toMatchObject({ calleePlace: { sessionId: cy.id } })
})

/** Somebody loses the socket, and another socket of the device, which nobody uses any more, takes the places. */
async function loseToStray(
  { sessions, arrivals }: Domain,
  peer: Peer,
  leave: (peer: Peer) => Promise<void>,
): Promise<number> {
  const seq = peer.socket.told.length
  await sessions.prove(peer.id, seq)
  await leave(peer)
  const stray = again(peer, true)
  await arrivals.arrive(stray, createSocket(), undefined)
  await sessions.ready(stray.sessionId)
  return seq
}
