import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { type CallRef, callKey } from '../call/call.ts'
import { accepted, held } from '../ports/call-store.fixture.ts'
import { somebody } from '../ports/sessions.fixture.ts'
import type { Sessions } from '../ports/sessions.ts'
import { connectPeer, done, eventsOf, invited, openDomains, type Peer } from './domain.fixture.ts'
import { isShareOf } from './holders.ts'

const openDomain = openDomains()

/** Sessions with which a domain sweeps once; `swept` resolves after that. */
function oneSweep() {
  const { promise: swept, resolve } = Promise.withResolvers<void>()
  let sweeps = 0
  const sessions = (real: Sessions): Partial<Sessions> => ({
    sweep(now) {
      if (sweeps++ === 0) return real.sweep(now)
      resolve()
      return new Promise(() => {})
    },
  })
  return { swept, sessions }
}

test('[PUSH2] a call that was answered elsewhere, of which nobody told this node, is quiet here after a sweep', async () => {
  const quiet: string[] = []
  const { swept, sessions } = oneSweep()
  const domain = await openDomain({
    isElsewhere: true,
    onQuiet: (ref) => quiet.push(callKey(ref)),
    sessions,
  })
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, somebody())
  const ref = { product: caller.actor.participant.product, callUuid: await invited(domain, caller, callee) }
  const call = await domain.store.load(ref)
  if (call?.status !== 'ringing') throw new Error('It does not ring.')
  const { call: answered, event } = accepted(call, call.startedAt)
  // A participant on a node that serves is owed nothing.
  const calleePlace = { ...held(callee.id), node: domain.node }
  await domain.store.transition(call, () => ({ steps: [{ call: { ...answered, calleePlace }, event }] }))
  expect(quiet).toEqual([])
  domain.deadlines.start()
  await swept
  expect(quiet).toEqual([callKey(ref)])
  // Messages from before the accept have not gone out: until they have, a relay is kept behind them [REL2].
  expect(domain.delivery.known.get(callKey(ref))?.status).toBe('ringing')
})

test('[PUSH2] after a node died a node looks after its share of the calls that ring, and of no other', async () => {
  const died: string[] = []
  const { swept, sessions } = oneSweep()
  const domain = await openDomain({
    isElsewhere: true,
    sessions,
    onNodeDied: (calls) => died.push(...calls.map(({ callUuid }) => callUuid)),
  })
  const rings: CallRef[] = []
  for (let n = 0; n < 8; n++) {
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const callee = await connectPeer(domain, somebody())
    rings.push({ product: caller.actor.participant.product, callUuid: await invited(domain, caller, callee) })
  }
  domain.deadlines.nodeDied()
  domain.deadlines.start()
  const own = rings.filter((ref) => isShareOf(ref, { self: 'one', others: () => ['two'] }))
  await swept
  expect(died.sort()).toEqual(own.map(({ callUuid }) => callUuid).sort())
  const theirs = rings.filter((ref) => isShareOf(ref, { self: 'two', others: () => ['one'] }))
  expect(own.length + theirs.length).toBe(rings.length)
})

test('[RING1] rings end on time, also while nobody answers for somebody who is to be told of another one', async () => {
  let passed = 0
  let silent = ''
  const from = Date.now()
  const domain = await openDomain({
    // It stands still but for that: the second ring is not over when the first one is, however long this takes.
    clock: { now: () => from + passed, monotonic: () => passed },
    sessions: (real) => ({
      append: (id, push) => (id === silent ? new Promise(() => {}) : real.append(id, push)),
    }),
  })
  const ring = async () => {
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const callee = await connectPeer(domain, somebody())
    const callUuid = await invited(domain, caller, callee)
    return { caller, callee, isMissed: async () => (await callOf(caller, callUuid))?.status === 'missed' }
  }
  const callOf = ({ actor }: Peer, callUuid: string) =>
    domain.store.load({ product: actor.participant.product, callUuid })
  const first = await ring()
  passed += 10_000
  const second = await ring()
  silent = first.caller.id
  domain.deadlines.start()
  passed += 36_000
  await until('the first call is missed', first.isMissed)
  expect(await second.isMissed()).toBe(false)
  passed += 10_000
  await until('the second caller hears of it', () => eventsOf(second.caller).at(-1) === 'call.missed')
  expect(await second.isMissed()).toBe(true)
  expect(eventsOf(first.callee)).toContain('call.missed')
})

test('[RING1] a session that nobody could tell of a ring rings late, once, and hears how the call ended', async () => {
  let passed = 0
  const domain = await openDomain({
    clock: { now: () => Date.now() + passed, monotonic: () => performance.now() + passed },
    // As where its node is cut from the others.
    sessions: (real) => ({ appendLive: (_, push) => (push.kind === 'ringing' ? 0 : real.appendLive(_, push)) }),
  })
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, somebody())
  const callUuid = await invited(domain, caller, callee)
  expect(eventsOf(callee)).toEqual([])
  domain.deadlines.start()
  passed += 5_000
  await until('it rings', () => eventsOf(callee).length > 0)
  done(await domain.calls.verb(caller.actor, 'cancel', callUuid, null))
  await until('it hears of the end', () => eventsOf(callee).length > 1)
  expect(eventsOf(callee)).toEqual(['call.ringing', 'call.cancelled'])
})
