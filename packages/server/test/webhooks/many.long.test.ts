import { afterAll, beforeAll, expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { openReceiver, type Received, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, type Service } from '@ringwire/testkit/service'
import { startObserved } from '../admin/observed.ts'
import { connectExtendedPair, ringingCall } from '../support/extended-flows.ts'

const pairs = 50
const callsOfEach = 200
const types = ['call.ringing', 'call.rejected']
const count = pairs * callsOfEach * types.length

let service: Service
let steady: Receiver
let flapping: Receiver
beforeAll(async () => {
  service = await startObserved({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1', RINGWIRE_WS_RATE: 'off' })
  ;[steady, flapping] = await Promise.all([openReceiver(), openReceiver()])
})
afterAll(async () => {
  await service?.dispose()
  await Promise.all([steady?.close(), flapping?.close()])
})

// biome-ignore lint/suspicious/noExplicitAny: each endpoint answers its own.
async function asBackend(method: string, below: string, body?: object): Promise<any> {
  const response = await fetch(`${service.url}/v1/server/webhooks${below}`, {
    method,
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.json()
}

const nameOf = ({ type, data }: Pick<Received, 'type' | 'data'>) => `${data.call_uuid} ${type}`

test('[HOOK3] 10,000 calls, beside an endpoint that flaps and one that is dead: each step arrives, in order, under one id', async () => {
  // Nobody listens there, and nobody is given it who asks for any port.
  const dead = 'http://127.0.0.1:1/hook'
  const ids: string[] = []
  for (const url of [steady.url, flapping.url, dead]) ids.push((await asBackend('POST', '', { url, events: types })).id)
  // Each fourth step fails the first time, in one way or the other.
  let turn = 0
  const failures = [500, 'close', 503, 429] as const
  /** What the flapping one has taken, in that order. */
  const taken: string[] = []
  flapping.reply((received, earlier) => {
    const failure = earlier === 0 && turn++ % 4 === 0 ? failures[(turn >> 2) % failures.length] : undefined
    if (failure === undefined) taken.push(nameOf(received))
    return failure ?? 200
  })

  const people = await Promise.all(Array.from({ length: pairs }, () => connectExtendedPair(service)))
  const calls = await Promise.all(
    people.map(async (pair) => {
      const own: string[] = []
      for (let n = 0; n < callsOfEach; n++) {
        const call = await ringingCall(pair)
        expect((await pair.callee.request('call.reject', { call_uuid: call })).event).toBe('call.ack')
        await pair.caller.next('call.rejected')
        own.push(call)
      }
      return own
    }),
  )
  const expected = calls.flat().flatMap((call) => types.map((type) => `${call} ${type}`))
  expect(expected.length).toBe(count)

  // What failed once is tried again within seconds; the dead one keeps nobody waiting.
  await until('the steady one has all', () => steady.received.length >= count, soon(120_000))
  await until('the flapping one has all', () => taken.length >= count, soon(120_000))
  expect(steady.received.map(nameOf).sort()).toEqual(expected.toSorted())
  expect(taken.toSorted()).toEqual(expected.toSorted())
  for (const came of [steady.received.map(nameOf), taken]) {
    const at = new Map(came.map((name, i) => [name, i]))
    const early = calls
      .flat()
      .filter((call) => (at.get(`${call} ${types[1]}`) ?? 0) < (at.get(`${call} ${types[0]}`) ?? 0))
    expect(early).toEqual([])
  }
  for (const { received } of [steady, flapping]) {
    const named = Map.groupBy(received, nameOf)
    expect([...named.values()].filter((all) => new Set(all.map(({ id }) => id)).size > 1)).toEqual([])
  }
  expect(flapping.received.length - count).toBeGreaterThan(count / 5)

  // Nothing of the dead one is lost either, nor given up.
  const pending = new Set<string>()
  for (let query = '?limit=100'; query !== ''; ) {
    const { data, next_cursor: next } = await asBackend('GET', `/${ids[2]}/deliveries${query}`)
    for (const { id, status } of data) if (status === 'pending') pending.add(id)
    query = next === null ? '' : `?limit=100&cursor=${next}`
  }
  expect(pending.size).toBe(count)
  for (const { caller, callee } of people) {
    caller.stop()
    callee.stop()
  }
}, 600_000)
