import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { acceptedCall, someone } from '@ringwire/testkit/flows'
import { overdue } from '@ringwire/testkit/patience'
import { productKey, Service, type TokenWish } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { setProduct } from '../../server/test/support/products.ts'
import { createPresence, type PeerPresence, type Presence } from '../src/presence.ts'
import type { CallClient, RingwireErrorShape } from '../src/types.ts'
import { backOnline, online, type PersonOptions, person } from './support/people.ts'

/** Who is there, by a client of the SDK at a running service. Participants of `shop` see each other, those of `quiet` do not. */
const service = new Service({ RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:shop,quiet` })
let network: TcpProxy
const clients: CallClient[] = []
beforeAll(async () => {
  await setProduct(service, 'shop', '--presence', 'peers')
  await service.start()
  network = await new TcpProxy(() => service.url).start()
})
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
  network.mend()
})
afterAll(async () => {
  await network?.stop()
  await service.dispose()
})

/** A customer who looks at agents; `shown` has every change. */
function watcher(wish: Partial<TokenWish> = {}, options: PersonOptions = {}) {
  const presence = createPresence()
  const shown: (readonly PeerPresence[])[] = []
  const errors: RingwireErrorShape[] = []
  presence.on('change', (peers) => shown.push(peers))
  presence.on('error', (error) => errors.push(error))
  const it = person(service, someone('watcher'), 'customer', {
    wish: { product: 'shop', ...wish },
    WebSocket: presence.WebSocket,
    ...options,
  })
  clients.push(it.client)
  return { it, presence, shown, errors }
}

const agent = (userId: string) => ({ role: 'agent', userId })
const join = (userId: string) => service.connect({ user_id: userId, role: 'agent', product: 'shop' })

/** A bound for failures, never a pace. */
const patienceMs = 30_000

/** Until each of them is so; what is not named is of no matter. */
function sees(presence: Presence, wanted: Readonly<Record<string, Partial<PeerPresence>>>): Promise<void> {
  const isSo = () =>
    Object.entries(wanted).every(([userId, wish]) => {
      const found = presence.peers.find((peer) => peer.userId === userId)
      return found !== undefined && Object.entries(wish).every(([key, is]) => found[key as keyof PeerPresence] === is)
    })
  if (isSo()) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const cancel = overdue(patienceMs, () => reject(new Error(`it sees ${JSON.stringify(presence.peers)}`)))
    const end = presence.on('change', () => {
      if (!isSo()) return
      cancel()
      end()
      resolve()
    })
  })
}

test('[PRES1] who is watched is not known, then offline or online, and in a call while there is one', async () => {
  const { it, presence, shown, errors } = watcher()
  const [ben, eva] = [someone('ben'), someone('eva')]
  await join(ben)
  presence.watch([agent(ben), agent(eva)])
  const unknown = { role: 'agent', online: undefined, inCall: undefined }
  expect(presence.peers).toEqual([
    { ...unknown, userId: ben },
    { ...unknown, userId: eva },
  ])
  await online(it)
  await sees(presence, { [ben]: { online: true, inCall: false }, [eva]: { online: false, inCall: false } })
  const before = presence.peers
  expect(presence.peers).toBe(before)
  await join(eva)
  await sees(presence, { [eva]: { online: true } })
  expect(presence.peers).not.toBe(before)
  // A person who did not change is the same object.
  expect(presence.peers[0]).toBe(before[0] as PeerPresence)
  expect([shown.at(-1), errors]).toEqual([presence.peers, []])
})

test('[PRES1] a callee is in a call from the accept to the end', async () => {
  const { it, presence } = watcher()
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const caller = await service.connect({ user_id: callerId, role: 'customer', product: 'shop' })
  const pair = { caller, callee: await join(calleeId), calleeId }
  presence.watch([agent(calleeId)])
  await online(it)
  await sees(presence, { [calleeId]: { online: true, inCall: false } })
  const callUuid = await acceptedCall(pair)
  await sees(presence, { [calleeId]: { online: true, inCall: true } })
  pair.caller.send('call.end', { call_uuid: callUuid })
  await sees(presence, { [calleeId]: { online: true, inCall: false } })
})

test('[PRES1] others are watched: who was known stays so, and who is not watched any more is not told of', async () => {
  const { it, presence, shown, errors } = watcher()
  const [ben, eva, zoe] = [someone('ben'), someone('eva'), someone('zoe')]
  await Promise.all([ben, eva, zoe].map(join))
  await online(it)
  presence.watch([agent(ben)])
  await sees(presence, { [ben]: { online: true } })
  // More than one a second: the last one counts, and no limit shows.
  presence.watch([agent(ben), agent(eva)])
  expect(presence.peers).toMatchObject([{ online: true }, { online: undefined }])
  presence.watch([agent(zoe)])
  await sees(presence, { [zoe]: { online: true } })
  expect(presence.peers.map(({ userId }) => userId)).toEqual([zoe])
  expect(shown.flat().filter((peer) => peer.userId === eva && peer.online)).toEqual([])
  presence.watch([])
  expect([presence.peers, errors]).toEqual([[], []])
})

test('[PRES1] while the connection is away nobody is known; it goes on by itself', async () => {
  const { it, presence, shown } = watcher({}, { url: network.wsUrl })
  const [ben, eva] = [someone('ben'), someone('eva')]
  await join(ben)
  presence.watch([agent(ben), agent(eva)])
  await online(it)
  await sees(presence, { [ben]: { online: true }, [eva]: { online: false } })
  const again = backOnline(it)
  network.refuse()
  await sees(presence, { [ben]: { online: undefined, inCall: undefined }, [eva]: { online: undefined } })
  await join(eva)
  const heard = shown.length
  network.mend()
  await again
  await sees(presence, { [ben]: { online: true }, [eva]: { online: true } })
  // Never that she was offline, as it was before.
  expect(shown.slice(heard).map((peers) => peers[1]?.online)).not.toContain(false)
})

test('[PRES1] where the product or the token does not let them, an error says so', async () => {
  const peers = [agent(someone('ben'))]
  const quiet = watcher({ product: 'quiet' })
  const customers = watcher()
  for (const [{ it, presence, errors }, watched] of [
    [quiet, peers],
    [customers, [{ role: 'customer', userId: someone('ann') }]],
  ] as const) {
    await online(it)
    const refused = new Promise<void>((resolve) => presence.on('error', () => resolve()))
    presence.watch(watched)
    await refused
    expect(errors.map(({ code }) => code)).toEqual(['ACTION_NOT_ALLOWED'])
    expect(presence.peers).toMatchObject([{ online: undefined, inCall: undefined }])
  }
})
