import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { createTransfers, type TransferState, type Transfers, transferCapabilities } from '../src/transfer.ts'
import type { Call } from '../src/types.ts'
import {
  backOnline,
  next,
  online,
  type Person,
  type PersonOptions,
  person,
  ringing,
  stateOf,
  talk,
  until,
} from './support/people.ts'
import { memory } from './support/stage.ts'

/** A side of a call is handed over to somebody else, by clients of the SDK at a running service [XFER1]. */
const service = new Service()
const opened: Person[] = []
beforeAll(() => service.start())
afterEach(() => {
  for (const { client } of opened.splice(0)) client.close()
})
afterAll(() => service.dispose())

interface Talker extends Person {
  readonly transfers: Transfers
  /** To which calls it moved. */
  readonly moves: { readonly from: Call; readonly call: Call; readonly wasOver: boolean }[]
}

function talker(name: string, role: Person['role'], options: PersonOptions = {}): Talker {
  const display_name = name[0]?.toUpperCase() + name.slice(1)
  const peer = role === 'agent' ? { allowed_peer_role: 'agent' } : {}
  const { wish, ...more } = options
  const it = person(service, wish?.user_id ?? someone(name), role, {
    ...{ wish: { device_id: name, display_name, ...peer, ...wish }, can: transferCapabilities },
    ...more,
  })
  opened.push(it)
  const transfers = createTransfers(it.client)
  const moves: Talker['moves'] = []
  transfers.on('moved', ({ from, call }) => moves.push({ from, call, wasOver: from.state.name === 'over' }))
  return { ...it, transfers, moves }
}

/** Once the transfer of a call stands so. */
function stands(it: Talker, call: Call, name: TransferState['name']): Promise<TransferState> {
  return new Promise((resolve) => {
    const look = () => {
      const state = it.transfers.of(call)
      if (state?.name !== name) return
      end()
      resolve(state)
    }
    const end = it.transfers.on('change', look)
    look()
  })
}

/** Ann calls Ben, who transfers her to Eva, at whom it rings. */
async function transferred(ofAnn: PersonOptions = {}) {
  const [ann, ben, eva] = [talker('ann', 'customer', ofAnn), talker('ben', 'agent'), talker('eva', 'agent')]
  await Promise.all([ann, ben, eva].map(online))
  const { out, in: theirs } = await talk(ann, ben)
  await ben.transfers.transfer(theirs, { userId: eva.userId, role: 'agent', displayName: 'Eva' })
  const rings = await ringing(eva)
  return { ann, ben, eva, out, theirs, rings }
}

test('[XFER1] the target answers: who was transferred goes on there, and offers, before the first call ends', async () => {
  const { ann, ben, eva, out, theirs, rings } = await transferred()
  expect(ben.transfers.of(theirs)).toMatchObject({
    name: 'ringing',
    callUuid: rings.callUuid,
    to: { displayName: 'Eva' },
  })
  expect(rings.peer).toEqual({ userId: ann.userId, role: 'customer', displayName: 'Ann' })
  const by = { userId: ben.userId, role: 'agent', displayName: 'Ben' }
  expect(eva.transfers.origin(rings)).toEqual({ callUuid: out.callUuid, by })
  const { call: mine } = await stands(ann, out, 'ringing')
  expect(mine).toMatchObject({ callUuid: rings.callUuid, direction: 'outgoing', peer: { userId: eva.userId } })
  const offered = next(rings, 'offer')
  ann.transfers.on('moved', ({ call }) => void call.sendOffer({ type: 'offer', sdp: 'v=0' }))
  await rings.accept()
  expect(await offered).toMatchObject({ sdp: 'v=0' })
  expect(await stateOf(out, 'over')).toMatchObject({
    status: 'ended',
    reason: 'transferred',
    by: { userId: ben.userId },
  })
  expect(ann.moves).toEqual([{ from: out, call: mine as Call, wasOver: false }])
  expect(mine?.peer.displayName).toBe('Eva')
  expect(await stateOf(theirs, 'over')).toMatchObject({ reason: 'transferred' })
  expect([ann, ben].map((it) => it.transfers.of(it === ann ? out : theirs)?.name)).toEqual(['done', 'done'])
  expect([ann.client.calls, ben.client.calls]).toEqual([[mine as Call], []])
})

test('[XFER1] the target declines, then who is transferred does: the first call goes on for both', async () => {
  const { ann, ben, eva, out, theirs, rings } = await transferred()
  await rings.reject('in_a_meeting')
  for (const failed of await Promise.all([stands(ann, out, 'failed'), stands(ben, theirs, 'failed')]))
    expect(failed).toMatchObject({ status: 'rejected', reason: 'in_a_meeting' })
  expect([out.state.name, theirs.state.name, ann.client.calls]).toEqual(['accepted', 'accepted', [out]])
  await ben.transfers.transfer(theirs, { userId: eva.userId, role: 'agent' })
  const again = await ringing(eva)
  const { call } = await stands(ann, out, 'ringing')
  await call?.cancel()
  expect(await stands(ben, theirs, 'failed')).toMatchObject({ status: 'cancelled', reason: 'caller_cancelled' })
  expect(await stateOf(again, 'over')).toMatchObject({ status: 'cancelled' })
})

test('[XFER1] [EXT6] a side whose client does not follow transfers stays where it is', async () => {
  const [ann, ben] = [talker('ann', 'customer', { can: [] }), talker('ben', 'agent')]
  await Promise.all([ann, ben].map(online))
  const { out, in: theirs } = await talk(ann, ben)
  const refused = await ben.transfers.transfer(theirs, { userId: 'eva', role: 'agent' }).catch((error) => error)
  expect(refused).toMatchObject({ code: 'NOT_SUPPORTED_BY_PEER' })
  expect(ben.transfers.of(theirs)).toMatchObject({ name: 'failed', error: { code: 'NOT_SUPPORTED_BY_PEER' } })
  expect([out.state.name, theirs.state.name]).toEqual(['accepted', 'accepted'])
})

test('[XFER1] [RES1] the target answers while who is transferred has no network: it goes on when it is back', async () => {
  const sockets: WebSocket[] = []
  class Socket extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      sockets.push(this)
    }
  }
  const { ann, out, rings } = await transferred({ WebSocket: Socket, reconnectBaseMs: 1_000, reconnectMaxMs: 1_000 })
  await stands(ann, out, 'ringing')
  const back = backOnline(ann)
  sockets.at(-1)?.close(3000)
  await rings.accept()
  expect((await back).recovered).toBe(true)
  await stateOf(out, 'over')
  expect(ann.moves).toMatchObject([{ call: { callUuid: rings.callUuid }, wasOver: false }])
})

test('[XFER1] [RES1] a page that is loaded again while the target is rung goes on with both calls', async () => {
  const storage = memory()
  const sockets: WebSocket[] = []
  class Socket extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols)
      sockets.push(this)
    }
  }
  const { ann, out, rings } = await transferred({ storage, WebSocket: Socket })
  await stands(ann, out, 'ringing')
  // The page goes without a word, and the next one has what it left in the storage.
  const kept = new Map(storage.items)
  sockets.at(-1)?.close(3000)
  await until('a loss', ann.client, () => ann.client.state.name === 'waiting')
  ann.client.close()
  for (const [key, value] of kept) storage.items.set(key, value)
  const again = talker('ann', 'customer', { storage, wish: { user_id: ann.userId } })
  await online(again)
  const first = await until('the first call', again.client, () => again.client.find(out.callUuid))
  await stands(again, first, 'ringing')
  await rings.accept()
  await stateOf(first, 'over')
  expect(again.moves).toMatchObject([{ from: { callUuid: out.callUuid }, call: { callUuid: rings.callUuid } }])
  expect(again.client.calls).toMatchObject([{ callUuid: rings.callUuid, state: { name: 'accepted' } }])
})
