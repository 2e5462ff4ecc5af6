import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { createTake, type Take, takeCapabilities } from '../src/take.ts'
import type { Call, CallClient } from '../src/types.ts'
import { next, online, type Person, person, until } from './support/people.ts'

/** Calls that go on at another device, by clients of the SDK at a running service [TAKE1]. */
const service = new Service()
const clients: CallClient[] = []
beforeAll(() => service.start())
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
})
afterAll(() => service.dispose())

function at(userId: string, role: Person['role'], device_id: string, can: typeof takeCapabilities = []): Person {
  const it = person(service, userId, role, { wish: { device_id }, can })
  clients.push(it.client)
  return it
}

/** The next list that is so. */
function listed(take: Take, isSo: () => boolean): Promise<void> {
  if (isSo()) return Promise.resolve()
  return new Promise((resolve) => {
    const end = take.on('change', () => {
      if (!isSo()) return
      end()
      resolve()
    })
  })
}

async function talking(): Promise<{ ann: Person; phone: Person; desk: Person; call: Call; theirs: Call }> {
  const [annId, benId] = [someone('ann'), someone('ben')]
  const ann = at(annId, 'customer', 'phone')
  const phone = at(benId, 'agent', 'phone')
  const desk = at(benId, 'agent', 'desk', takeCapabilities)
  await Promise.all([ann, phone, desk].map(online))
  const call = ann.client.call({ userId: benId, role: 'agent' })
  const theirs = await until('it rings', phone.client, () => phone.incoming[0])
  await theirs.accept()
  await until('it is accepted', ann.client, () => call.state.name === 'accepted')
  return { ann, phone, desk, call, theirs }
}

test('[TAKE1] a call goes on at another device: over here, and the peer begins anew with the one that took it', async () => {
  const { ann, phone, desk, call, theirs } = await talking()
  const takes = createTake(desk.client)
  await listed(takes, () => takes.calls.length === 1)
  expect(takes.calls).toMatchObject([
    { callUuid: call.callUuid, direction: 'incoming', peer: { userId: ann.userId, role: 'customer' } },
  ])
  const anew = next(call, 'resynced')
  const mine = takes.calls[0]!.take()
  const begun = next(mine, 'resynced')
  expect(takes.calls[0]!.take()).toBe(mine)
  expect(desk.client.calls).toEqual([mine])
  expect(await begun).toEqual({ restored: true })
  expect(await anew).toEqual({ restored: false })
  await until('it is over at the phone', phone.client, () => theirs.state.name === 'over')
  expect(theirs.state).toMatchObject({ reason: 'taken_elsewhere', status: 'accepted' })
  const offered = next(mine, 'offer')
  await call.sendOffer({ type: 'offer', sdp: 'v=0' })
  expect(await offered).toMatchObject({ sdp: 'v=0' })
  await listed(takes, () => takes.calls.length === 0)
  await mine.end()
  await until('it is over', ann.client, () => call.state.name === 'over')
  takes.close()
})

test('[TAKE1] a call that was taken is listed no more, also if the service was asked before', async () => {
  const { desk, phone, theirs } = await talking()
  const takes = createTake(desk.client)
  await listed(takes, () => takes.calls.length === 1)
  const asked = takes.refresh()
  const mine = takes.calls[0]!.take()
  await asked
  expect(takes.calls).toEqual([])
  await until('it is over at the phone', phone.client, () => theirs.state.name === 'over')
  await mine.end()
  takes.close()
})

test('[TAKE1] a call that has just ended is over here, with what the service said', async () => {
  const { desk, phone, theirs } = await talking()
  const takes = createTake(desk.client)
  await listed(takes, () => takes.calls.length === 1)
  const [found] = takes.calls
  await theirs.end()
  await until('it is over at the phone', phone.client, () => theirs.state.name === 'over')
  const mine = found!.take()
  await until('it is over here', desk.client, () => mine.state.name === 'over')
  expect(mine.state).toMatchObject({ name: 'over' })
  await takes.refresh()
  expect(takes.calls).toEqual([])
  takes.close()
})

test('[EXT6] without the capability there is nothing to take', async () => {
  const { phone } = await talking()
  const takes = createTake(phone.client)
  await takes.refresh()
  expect(takes.calls).toEqual([])
  takes.close()
})
