import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { productKey, Service } from '@ringwire/testkit/service'
import { next, online, type Person, person, ringing, stateOf } from './support/people.ts'

/** Calls to groups, by clients of the SDK at a running service [GROUP1]. */
const service = new Service()
const opened: Person[] = []
beforeAll(() => service.start())
afterEach(() => {
  for (const { client } of opened.splice(0)) client.close()
})
afterAll(() => service.dispose())

async function group(members: readonly Person[], strategy = 'all'): Promise<string> {
  const name = someone('group')
  const response = await fetch(`${service.url}/v1/server/groups/agent/${name}`, {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      'x-svc-product-key-id': productKey.id,
      'x-svc-product-secret': productKey.secret,
    },
    body: JSON.stringify({ members: members.map(({ userId }) => userId), strategy }),
  })
  expect(response.status).toBe(200)
  return name
}

function somebody(name: string, role: Person['role']): Person {
  const it = person(service, someone(name), role, { can: ['group'], wish: { display_name: name } })
  opened.push(it)
  return it
}

test('[GROUP1] it rings at all, the caller knows who answered and talks to that member, the others stop', async () => {
  const [ann, ben, eva] = [somebody('Ann', 'customer'), somebody('Ben', 'agent'), somebody('Eva', 'agent')]
  await Promise.all([ann, ben, eva].map(online))
  const support = await group([ben, eva])
  const call = ann.client.call({ group: support, role: 'agent', displayName: 'Support' })
  const [atBen, atEva] = await Promise.all([ringing(ben), ringing(eva)])
  expect(atBen).toMatchObject({ group: support, peer: { userId: ann.userId, displayName: 'Ann' } })
  expect(call).toMatchObject({ group: support, peer: { userId: null, displayName: 'Support' } })
  await atEva.accept()
  await stateOf(call, 'accepted')
  expect(call.peer).toEqual({ userId: eva.userId, role: 'agent', displayName: 'Eva' })
  expect(await stateOf(atBen, 'over')).toMatchObject({ status: 'accepted', reason: 'answered_elsewhere' })
  const offered = next(atEva, 'offer')
  await call.sendOffer({ type: 'offer', sdp: 'v=0' })
  expect(await offered).toMatchObject({ sdp: 'v=0' })
})

test('[GROUP1] all members decline: the call is rejected, and there is no group of any other name', async () => {
  const [ann, ben] = [somebody('Ann', 'customer'), somebody('Ben', 'agent')]
  await Promise.all([ann, ben].map(online))
  const call = ann.client.call({ group: await group([ben]), role: 'agent' })
  await (await ringing(ben)).reject()
  expect(await stateOf(call, 'over')).toMatchObject({ status: 'rejected', reason: 'all_declined' })
  const unknown = ann.client.call({ group: someone('nobody'), role: 'agent' })
  expect(await stateOf(unknown, 'over')).toMatchObject({ error: { code: 'GROUP_NOT_FOUND' } })
})
