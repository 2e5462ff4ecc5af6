import { expect, test } from 'bun:test'
import { createCallClient } from '@ringwire/client'
import { createPresence, type PeerPresence } from '@ringwire/client/presence'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { finish } from '../scenarios/calls/composition.ts'
import { watch } from '../scenarios/extended/presence.ts'
import { connectExtended } from '../support/extended-flows.ts'
import { setProduct } from '../support/products.ts'
import { flush } from './lost-keys.ts'
import { becomesReady, worldFor } from './world.ts'

/** As soon as anybody's coming would be: by the next look of that node, a second later, and the way here. */
const seenMs = 1_000 + 2_000

const world = worldFor({ env: { RINGWIRE_PEER_LOST_MS: '6000' } })

test('[PRES1] who comes, closes, comes back at once, or dies with its node is seen by the SDK on another node', async () => {
  const { one, two } = world()
  await setProduct(one, 'shop', '--presence', 'peers')
  const [stays, closes, reloads, dies] = ['stays', 'closes', 'reloads', 'dies'].map(someone) as [
    string,
    string,
    string,
    string,
  ]
  const agent = (user_id: string) => ({ user_id, role: 'agent' })
  const customer = { user_id: someone('watcher'), role: 'customer' }
  // The policy is known there once somebody may.
  const probe = await connectExtended(two, { ...customer, user_id: someone('probe') })
  await watch(probe, { participants: [agent(dies)] })

  const presence = createPresence()
  const client = createCallClient({ getToken: () => two.issue(customer), WebSocket: presence.WebSocket })
  const seen: (readonly PeerPresence[])[] = []
  presence.on('change', (peers) => seen.push(peers))
  presence.on('error', (error) => expect(error).toBeUndefined())
  const historyOf = (userId: string) => {
    const states = seen.map((peers) => peers.find((peer) => peer.userId === userId)?.online)
    return states.filter((state, i) => i === 0 || state !== states[i - 1])
  }
  const isOnline = (userId: string) => presence.peers.find((peer) => peer.userId === userId)?.online

  presence.watch([stays, closes, reloads, dies].map((userId) => ({ role: 'agent', userId })))
  client.connect()
  await until('it is known that nobody is there', () => presence.peers.every(({ online }) => online === false))
  const here = await connectExtended(two, agent(stays))
  const [leaving, back] = [await connectExtended(one, agent(closes)), await connectExtended(one, agent(reloads))]
  const dying = await connectExtended(one, agent(dies))
  await until('all are there', () => presence.peers.every(({ online }) => online === true))

  leaving.stop()
  back.stop()
  const again = await connectExtended(two, agent(reloads))
  await until('who closed is offline', () => isOnline(closes) === false, 20_000)
  await one.kill()
  await until('who died is offline', () => isOnline(dies) === false, 40_000)
  expect([historyOf(closes), historyOf(dies)]).toEqual([
    [undefined, false, true, false],
    [undefined, false, true, false],
  ])
  expect([historyOf(stays), historyOf(reloads)]).toEqual([
    [undefined, false, true],
    [undefined, false, true],
  ])
  for (const each of [probe, here, again, dying]) each.stop()
  client.close()
  await until('nobody knows any more', () => presence.peers.every(({ online }) => online === undefined))
  await one.start()
  await becomesReady(one)
}, 240_000)

test('[PRES1] [INV5] who is in a call is seen from a third node, over an emptied Redis and the death of a node', async () => {
  const { one, two, redis } = world()
  await setProduct(one, 'shop', '--presence', 'peers')
  const three = await new Service({ ...two.env, RINGWIRE_NODE_ID: 'three' }).start()
  const people = { caller: someone('caller'), callee: someone('callee'), other: someone('other') }
  const caller = await connectExtended(one, { user_id: people.caller, role: 'agent', allowed_peer_role: 'agent' })
  const callee = await connectExtended(three, { user_id: people.callee, role: 'agent' })

  const presence = createPresence()
  const watcher = { user_id: someone('watcher'), role: 'customer' }
  const client = createCallClient({ getToken: () => two.issue(watcher), WebSocket: presence.WebSocket })
  const seen: (readonly PeerPresence[])[] = []
  presence.on('change', (peers) => seen.push(peers))
  const historyOf = (userId: string) => {
    const states = seen.map((peers) => peers.find((peer) => peer.userId === userId)?.inCall)
    return states.filter((state, i) => i === 0 || state !== states[i - 1])
  }
  const stateOf = (userId: string) => presence.peers.find((peer) => peer.userId === userId)
  const areInCall = (is: boolean) => [people.caller, people.callee].every((id) => stateOf(id)?.inCall === is)

  presence.watch(Object.values(people).map((userId) => ({ role: 'agent', userId })))
  client.connect()
  await until('it is known that nobody is in a call', () => presence.peers.every(({ inCall }) => inCall === false))
  const call_uuid = crypto.randomUUID()
  await caller.request('call.invite', { call_uuid, callee_user_id: people.callee, callee_role: 'agent' })
  await callee.next('call.ringing')
  await callee.request('call.accept', { call_uuid })
  await until('both are in a call', () => areInCall(true), seenMs)

  await flush(redis)
  // A look after that reports a person who comes now.
  const other = await connectExtended(three, { user_id: people.other, role: 'agent' })
  await until('somebody has come', () => stateOf(people.other)?.online === true)
  expect(areInCall(true)).toBe(true)

  await one.kill()
  await until('the caller is offline', () => stateOf(people.caller)?.online === false, 40_000)
  // Its place is its own until the call is lost.
  await callee.next('call.ended')
  await until('nobody is in a call', () => areInCall(false), seenMs)
  for (const id of [people.caller, people.callee]) expect(historyOf(id)).toEqual([undefined, false, true, false])
  expect(historyOf(people.other)).toEqual([undefined, false])
  for (const each of [caller, callee, other]) each.stop()
  client.close()
  await finish(three)
  await one.start()
  await becomesReady(one)
}, 240_000)
