import { afterEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import type { Place } from '../../src/call/call.ts'
import { connectPeer, done, eventsOf, invited, openDomains } from '../../src/calls/domain.fixture.ts'
import { readBatch } from '../../src/cluster/batch.ts'
import type { Frame } from '../../src/cluster/frames.ts'
import { accepted, ringing } from '../../src/ports/call-store.fixture.ts'
import { somebody } from '../../src/ports/sessions.fixture.ts'
import { comeBack } from '../contracts/session-parts.ts'
import { type SessionNode, sendAll, useSessionNodes } from './session-nodes.ts'

const { start } = await useSessionNodes()
const openDomain = openDomains()
/** Before a node is closed. */
let goOn = () => {}
afterEach(() => goOn())

/** What a node asks others for from now on: the frames of each message that it sends. */
function recordMessages(node: SessionNode): string[][] {
  const messages: string[][] = []
  goOn = () => {
    node.onScript = sendAll
  }
  node.onScript = (name, args, send) => {
    if (name === 'post') {
      const batch = readBatch(Buffer.from(String(args[0])))
      const frames = batch.messages.map(([, frame]) => frame as Frame | null).filter((frame) => frame !== null)
      const names = frames.map((frame) => (frame[0] === 'do' ? frame[1] : frame[0]))
      // The domain has not seen the caller's socket go, and asks how it went whenever it looks.
      const told = names.filter((name) => name !== 'wasClosed')
      if (told.length > 0) messages.push(told)
    }
    return send()
  }
  return messages
}

test('[ORD3] [REL2] an answer is told at the other side’s node with one message, and so is the end', async () => {
  const { started, client } = await start(2)
  client.disconnect()
  const [near, far] = started as [SessionNode, SessionNode]
  const domain = await openDomain({ sessions: () => near.sessions })
  const callee = await connectPeer(domain, somebody())
  const here = await connectPeer(domain, { ...somebody(), role: 'customer' })
  await near.sessions.detach(here.id, here.socket, false, 0)
  const there = await comeBack(far.sessions, here, 0)
  if (there === undefined) throw new Error('it did not come back')
  const caller = { ...here, ...there }
  const callUuid = await invited(domain, caller, callee)
  const candidate = { call_uuid: callUuid, candidate: 'candidate:1' }
  expect(await domain.relay.relay(caller.actor, 'webrtc.ice_candidate', candidate, undefined)).toBe('ringing')
  const messages = recordMessages(near)
  done(await domain.calls.verb(callee.actor, 'accept', callUuid, null))
  expect(messages).toEqual([['apply']])
  await until('both have heard', () => eventsOf(callee).includes('webrtc.ice_candidate'))
  expect(eventsOf(callee)).toEqual(['call.ringing', 'webrtc.ice_candidate'])
  expect(eventsOf(caller)).toEqual(['call.accepted'])
  messages.length = 0
  done(await domain.calls.verb(callee.actor, 'end', callUuid, null))
  expect(messages).toEqual([['apply']])
  expect(eventsOf(caller)).toEqual(['call.accepted', 'call.ended'])
  expect(await near.sessions.holdsAny(caller.id)).toBe(false)
}, 60_000)

test('[ORD3] that everybody was told of a step goes along with the next message to the other node, or alone a moment later', async () => {
  const { started, client } = await start(1)
  client.disconnect()
  const [near] = started as [SessionNode]
  const { call } = accepted(ringing())
  if (call.status !== 'accepted') throw new Error('unreachable')
  const far = (place: Place) => ({ ...place, node: 'far' })
  const across = { ...call, callerPlace: far(call.callerPlace), calleePlace: far(call.calleePlace) }
  const messages = recordMessages(near)
  near.told(across)
  // It does not go at the end of this turn.
  await new Promise((resolve) => setImmediate(resolve))
  near.tell(across)
  await until('both are sent', () => messages.length > 0)
  expect(messages).toEqual([['told', 'call']])
  near.told(across)
  await until('it is sent', () => messages.length > 1)
  expect(messages.at(-1)).toEqual(['told'])
}, 60_000)
