import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, Service } from '@ringwire/testkit/service'
import { pairOn, stopAll } from '../failures/people.ts'
import { becomesReady, worldFor } from '../failures/world.ts'
import { answeredCall } from '../support/extended-flows.ts'

const world = worldFor({ env: { RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' } })
let three: Service
beforeAll(async () => {
  three = await new Service({ ...world().one.env, RINGWIRE_NODE_ID: 'three' }).start()
})
afterAll(() => three?.dispose())

/** What the calls of these tests do, one after the other. */
const types = ['call.ringing', 'call.accepted', 'call.ended']
const typeOf: Readonly<Record<string, string>> = {
  invited: 'call.ringing',
  accepted: 'call.accepted',
  ended: 'call.ended',
}
/** A claim of a node that is dead ends after 30 s. */
const takenOverMs = 60_000

const dead = new Set<Service>()
async function kill(node: Service): Promise<void> {
  dead.add(node)
  await node.kill()
}

async function startDead(): Promise<void> {
  const nodes = [...dead]
  dead.clear()
  await Promise.all(nodes.map((node) => node.start()))
  await becomesReady(...nodes)
}

const endpoints: string[] = []
beforeEach(async () => {
  for (const id of endpoints.splice(0)) await asBackend('DELETE', `/${id}`)
})

// biome-ignore lint/suspicious/noExplicitAny: each answers its own.
async function asBackend(method: string, below: string, body?: object): Promise<any> {
  const response = await fetch(`${three.url}/v1/server/webhooks${below}`, {
    method,
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response.status === 204 ? undefined : response.json()
}

/** Endpoints that every node knows, for each has delivered to one of them: it reads all of them at once. */
async function subscribe(...urls: readonly string[]): Promise<void> {
  for (const url of urls) endpoints.push((await asBackend('POST', '', { url, events: types })).id)
  const probe = await openReceiver()
  const { id } = await asBackend('POST', '', { url: probe.url, events: ['call.ringing'] })
  for (const node of [world().one, world().two, three]) {
    // A step of a node that does not know it yet is not told to it.
    await until(`${node.env.RINGWIRE_NODE_ID} tells it`, async () => {
      const [call] = await callsOn(1, node, node)
      await Bun.sleep(200)
      return probe.received.some(({ data }) => data.call_uuid === call)
    })
  }
  await asBackend('DELETE', `/${id}`)
  await probe.close()
}

/** Whole calls at once, from one node to another; they are committed when this resolves. */
function callsOn(count: number, callerAt: Service, calleeAt: Service): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const pair = await pairOn(callerAt, calleeAt)
      const call = await answeredCall(pair)
      await pair.callee.request('call.end', { call_uuid: call })
      stopAll(pair)
      return call
    }),
  )
}

/** What the database has of these calls: `call version type`. */
async function stepsOf(calls: readonly string[]): Promise<string[]> {
  const uuids = calls.map((call) => `'${call}'`).join()
  const rows: { call_uuid: string; version: number; type: string }[] = await world().postgres.query(
    `SELECT call_uuid, e.version, e.type FROM call_events e JOIN calls ON id = call_id
     WHERE call_uuid IN (${uuids}) ORDER BY call_uuid, e.version`,
    world().databaseUrl,
  )
  return rows.flatMap(({ call_uuid, version, type }) =>
    typeOf[type] === undefined ? [] : [`${call_uuid} ${version} ${typeOf[type]}`],
  )
}

const nameOf = ({ type, data }: Receiver['received'][number]) => `${data.call_uuid} ${data.version} ${type}`
const hasAll = ({ received }: Receiver, steps: readonly string[]) => {
  const came = new Set(received.map(nameOf))
  return steps.every((step) => came.has(step))
}

/** Every step at least once, those of a call in order; what came again is the same. */
function expectComplete({ received }: Receiver, steps: readonly string[], calls: readonly string[]): void {
  const ours = received.filter(({ data }) => calls.includes(data.call_uuid))
  expect([...new Set(ours.map(nameOf))].sort()).toEqual([...steps].sort())
  for (const [call, all] of Map.groupBy(ours, ({ data }) => data.call_uuid)) {
    const versions = all.map(({ data }) => data.version)
    expect([call, versions]).toEqual([call, versions.toSorted((a, b) => a - b)])
  }
  for (const [step, all] of Map.groupBy(ours, nameOf))
    expect([step, new Set(all.map(({ id, text }) => `${id} ${text}`)).size]).toEqual([step, 1])
  expect(new Set(ours.map(({ id }) => id)).size).toBe(steps.length)
}

test('[HOOK3] kill -9 of two of three nodes, while deliveries hang and steps wait for theirs, loses and reorders none', async () => {
  const { one, two } = world()
  const [slow, good] = await Promise.all([openReceiver(), openReceiver()])
  try {
    await subscribe(slow.url, good.url)
    slow.reply(() => 'hang')
    const calls = await callsOn(6, one, two)
    await until('the first events are under way', () => slow.unanswered() >= 6)
    const before = slow.unanswered()
    await kill(one)
    await until('some were of the node that is dead', () => slow.unanswered() < before)
    // Of each call the first event hangs; the later ones are committed, and nobody has sent them.
    expect(new Set(slow.received.filter(({ data }) => calls.includes(data.call_uuid)).map(({ type }) => type))).toEqual(
      new Set(['call.ringing']),
    )
    calls.push(...(await callsOn(6, two, three)))
    await until('those of the second node are under way', () => slow.unanswered() >= 6)
    await kill(two)
    slow.reply(() => 200)
    const steps = await stepsOf(calls)
    expect(steps).toHaveLength(types.length * calls.length)
    await until('all came', () => hasAll(slow, steps) && hasAll(good, steps), takenOverMs)
    for (const receiver of [slow, good]) expectComplete(receiver, steps, calls)
  } finally {
    await startDead()
    await Promise.all([slow.close(), good.close()])
  }
}, 240_000)

test('[HOOK3] on two nodes, what an endpoint has lost the answer of comes again from whichever is left', async () => {
  const { one, two } = world()
  const receiver = await openReceiver()
  try {
    await subscribe(receiver.url)
    await kill(three)
    // It takes each event, and says so to nobody: both nodes die in turn with what they know of that.
    receiver.reply((_, earlier) => (earlier === 0 ? 'hang' : 200))
    const calls = await callsOn(4, one, two)
    await until('they are under way', () => receiver.unanswered() >= 4)
    await kill(two)
    calls.push(...(await callsOn(4, one, one)))
    await kill(one)
    dead.delete(two)
    await two.start()
    const steps = await stepsOf(calls)
    expect(steps).toHaveLength(types.length * calls.length)
    receiver.reply(() => 200)
    await until('all came', () => hasAll(receiver, steps), takenOverMs)
    expectComplete(receiver, steps, calls)
  } finally {
    await startDead()
    await receiver.close()
  }
}, 240_000)

test('[HOOK3] an endpoint that hangs and one that is dead delay no other one', async () => {
  const { one, two } = world()
  const [hanging, good] = await Promise.all([openReceiver(), openReceiver()])
  hanging.reply(() => 'hang')
  try {
    // Nobody listens there, and nobody is given it who asks for any port.
    await subscribe(hanging.url, 'http://127.0.0.1:1/dead', good.url)
    const calls = (await Promise.all([callsOn(20, one, two), callsOn(20, two, three)])).flat()
    const steps = await stepsOf(calls)
    await until('the good one has all', () => hasAll(good, steps))
    expectComplete(good, steps, calls)
    // Nothing was ever answered there: had anything to wait for it, it would wait still.
    expect(hanging.received.filter(({ data, type }) => calls.includes(data.call_uuid) && type !== types[0])).toEqual([])
    expect(hanging.mostAtOnce()).toBeLessThanOrEqual(30)
  } finally {
    await Promise.all([hanging.close(), good.close()])
  }
}, 240_000)
