import { afterEach, beforeEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { callKey } from '../../src/call/call.ts'
import { decide } from '../../src/call/decide.ts'
import {
  connectPeer,
  type Domain,
  done,
  eventsOf,
  invited,
  openDomain,
  type Peer,
} from '../../src/calls/domain.fixture.ts'
import { somebody } from '../../src/ports/sessions.fixture.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { createSessionNodes, type SessionNode } from './session-nodes.ts'

/** An answer that reaches nobody for a while, over the real store of sessions. */
const nodes = createSessionNodes()
let server: RedisServer
let node: SessionNode
let domain: Domain
let isAway: boolean
/** Called before what was kept until the answer is handed over. */
let onHandOver: () => void
beforeEach(async () => {
  server = await startRedis()
  node = await nodes.start(server.url)
  isAway = false
  onHandOver = () => {}
  const { sessions } = node
  domain = await openDomain({
    isAway: () => isAway,
    sessions: () => ({
      ...sessions,
      apply(id, step) {
        if (step.early !== undefined) onHandOver()
        return sessions.apply(id, step)
      },
    }),
  })
})
afterEach(async () => {
  await nodes.closeAll()
  await domain.close()
  await server.stop()
})

/** A call whose answer nobody has heard, with a candidate that waits; nor is it noted that it rang. */
async function ringUnheard(participant = somebody()) {
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, participant)
  isAway = true
  const callUuid = await invited(domain, caller, callee)
  expect(await send(caller, callUuid, 1)).toBe('ringing')
  const call = done(await domain.calls.verb(callee.actor, 'accept', callUuid, null))
  expect([...domain.delivery.undelivered]).toEqual([callKey(call)])
  return { caller, callee, callUuid, call }
}

const send = ({ actor }: Peer, callUuid: string, n: number) =>
  domain.relay.relay(actor, 'webrtc.ice_candidate', { call_uuid: callUuid, candidate: `candidate:${n}` }, undefined)

const candidatePush = (call: string, n: number) => {
  const text = JSON.stringify({ event: 'webrtc.ice_candidate', data: { candidate: `candidate:${n}` } })
  return { kind: 'relay', call, version: undefined, forPlace: true, text } as const
}

const candidatesOf = ({ socket }: Peer) =>
  socket.told
    .filter(({ event }) => event === 'webrtc.ice_candidate')
    .map(({ data }) => (data as unknown as { candidate: string }).candidate)

test('[REL2] told together with the ring before it, no relay passes what was kept until the answer', async () => {
  const { caller, callee, callUuid, call } = await ringUnheard()
  isAway = false
  const sent: unknown[] = []
  onHandOver = () => {
    // The caller's node is another one, and has heard of the answer.
    if (sent.length === 0) sent.push(node.sessions.append(callee.id, candidatePush(callKey(call), 2)))
  }
  expect(await domain.delivery.catchUp(call)).toBe('done')
  expect(await Promise.all(sent)).toEqual(['kept'])
  expect(await send(caller, callUuid, 3)).toBe('accepted')
  await node.settled()
  expect(candidatesOf(callee)).toEqual(['candidate:1', 'candidate:2', 'candidate:3'])
})

test('[REL2] [PLACE2] told together with the place passing on, what was kept reaches who has the place now', async () => {
  const participant = somebody()
  const { caller, callee, callUuid, call } = await ringUnheard(participant)
  const tab = await connectPeer(domain, participant)
  await domain.sessions.detach(callee.id, callee.socket, false, Date.now())
  const ref = { product: participant.product, callUuid }
  const lost = await domain.calls.run(ref, { type: 'lose', sessionId: callee.id, node: callee.actor.node })
  expect(lost.ok).toBe(true)
  const moved = done(await domain.calls.seat(tab.actor, callUuid))
  expect(moved.version).toBe(call.version + 2)
  isAway = false
  expect(await domain.delivery.catchUp(moved)).toBe('done')
  expect(await send(caller, callUuid, 2)).toBe('accepted')
  await node.settled()
  await until('both are there', () => candidatesOf(tab).length >= 2)
  expect(candidatesOf(tab)).toEqual(['candidate:1', 'candidate:2'])
})

test('[PLACE1] told late, a call that was answered does not ring where nobody has heard of it', async () => {
  const participant = somebody()
  const { call } = await ringUnheard(participant)
  const late = await connectPeer(domain, participant, 'desk')
  isAway = false
  expect(await domain.delivery.catchUp(call)).toBe('done')
  await node.settled()
  expect(eventsOf(late)).toEqual([])
})

test('[ORD2] [END4] a candidate that crosses the end on another node is not delivered, and its sender hears the end', async () => {
  const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(domain, somebody())
  const callUuid = await invited(domain, caller, callee)
  done(await domain.calls.verb(callee.actor, 'accept', callUuid, null))
  expect(await send(callee, callUuid, 1)).toBe('accepted')
  // Another node commits a cancel that crossed the accept; it has told the caller, and nobody else yet.
  const ref = { product: callee.actor.participant.product, callUuid }
  const cancel = { type: 'cancel', actor: caller.actor, reason: null } as const
  const durations = { callerLostMs: 20_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 }
  const decision = await domain.store.transition(ref, (call) => decide(call, cancel, Date.now(), durations))
  const [step] = decision.steps
  if (step === undefined) throw new Error('nothing was committed')
  const text = JSON.stringify({ event: 'call.cancelled', data: { call_uuid: callUuid } })
  const { version } = step.call
  await node.sessions.append(caller.id, { kind: 'final', call: callKey(step.call), version, text })
  expect(domain.delivery.known.get(callKey(step.call))?.status).toBe('accepted')
  expect(await send(callee, callUuid, 2)).toBe('cancelled')
  await node.settled()
  expect(candidatesOf(caller)).toEqual(['candidate:1'])
  expect(eventsOf(caller).at(-1)).toBe('call.cancelled')
  expect(eventsOf(callee).filter((event) => event === 'call.cancelled')).toHaveLength(1)
})
