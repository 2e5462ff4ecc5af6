import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { callHookTypes } from '@ringwire/protocol/backend'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Received, type Receiver } from '@ringwire/testkit/receiver'
import { Webhook } from 'standardwebhooks'
import type { LiveCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { createAddressGuard } from '../outgoing/addresses.ts'
import { createPost, noConnection } from '../outgoing/post.ts'
import { accepted, created, ended, participant, ringing } from '../ports/call-store.fixture.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Attempted, Claimed, FailedDelivery } from '../ports/webhooks.ts'
import { openHarness, type SqliteHarness, unhurried } from '../stores/sqlite/open.fixture.ts'
import type { DeliveryResult } from './attempts.ts'
import { createWebhookEndpoints, type WebhookEndpoints } from './endpoints.ts'
import { pauseMs } from './rounds.ts'
import type { WakeHook } from './wake-hook.ts'
import { createWebhooks, type Webhooks } from './webhooks.ts'

const { product } = ringing()
const begun = () => ringing(undefined, undefined, { startedAt: now, ringExpiresAt: now + 45_000 })
const stepTypes = callHookTypes.filter((type) => !type.startsWith('call.wake'))
const dayMs = 86_400_000

let harness: SqliteHarness
let now: number
let webhooks: Webhooks
let endpoints: WebhookEndpoints
let receivers: Receiver[]
let results: DeliveryResult[]
let failures: FailedDelivery[]
let errors: unknown[]
let wake: (body: string) => ReturnType<WakeHook>

beforeEach(async () => {
  // The library that verifies goes by the clock of the machine.
  now = Date.now()
  receivers = []
  results = []
  failures = []
  errors = []
  wake = async (body) => ({ body, ticket: 'ticket' })
  harness = await openHarness({ ...unhurried, clock: { now: () => now } })
  await begin()
})
afterEach(async () => {
  await webhooks.stop()
  for (const receiver of receivers) await receiver.close()
  await harness.close()
  expect(errors).toEqual([])
})

/** Requests are real; after a failure the next attempt comes at once, unless the clock that a test moves says otherwise. */
/** How often they let calls go first. */
let pauses = 0

async function begin(backoffMs: readonly number[] = [0], store = harness.stores().webhooks): Promise<void> {
  const guard = createAddressGuard(['127.0.0.1'])
  webhooks = createWebhooks({
    store,
    post: createPost({ guard }),
    wakeHook: (_, body) => wake(body),
    now: () => now,
    backoffMs,
    onResult: (result) => results.push(result),
    onFailed: (failed) => failures.push(failed),
    onError: (error) => errors.push(error),
    pause() {
      pauses++
      return Bun.sleep(pauseMs)
    },
  })
  endpoints = createWebhookEndpoints({ store, guard, now: () => now, onChanged: webhooks.changed })
  await webhooks.start()
}

async function endpointAt({ url }: Receiver, input: object = {}): Promise<{ id: string; secret: string }> {
  const made = await endpoints.create(product, { url, events: stepTypes, ...input })
  if (!made.ok) throw new Error(made.message)
  return made.endpoint
}
async function receiver(): Promise<Receiver> {
  const one = await openReceiver()
  receivers.push(one)
  return one
}
async function commit(step: Step): Promise<Step> {
  await harness.store().transition(step.call, () => ({ steps: [step] }))
  webhooks.committed(step)
  return step
}
/** From the invite to the end. */
async function wholeCall(): Promise<string> {
  const call = begun()
  await commit(created(call))
  const answer = await commit(accepted(call))
  await commit(ended(answer.call as LiveCall))
  return call.callUuid
}
const verified = (secret: string, { text, headers }: Received) =>
  new Webhook(secret).verify(text, headers as Record<string, string>)
const statusesOf = async (id: string) =>
  (await endpoints.deliveries(product, id, { status: undefined, limit: 100, before: undefined }))?.records.map(
    ({ status }) => status,
  )
/** Whether the first of a call waits for its next attempt. */
const isPutOff = async (id: string) =>
  (
    await harness.stores().webhooks.deliveries({ endpointId: id, status: 'pending', limit: 100, before: undefined })
  ).some(({ dueAt }) => dueAt !== null && dueAt > now)

test('[HOOK2] the steps of a call arrive in order, signed, each once', async () => {
  const one = await receiver()
  const { id, secret } = await endpointAt(one)
  const callUuid = await wholeCall()
  const got = await one.until(3)
  expect(got.map(({ type, data }) => [type, data.call_uuid, data.version, data.status])).toEqual([
    ['call.ringing', callUuid, 1, 'ringing'],
    ['call.accepted', callUuid, 2, 'accepted'],
    ['call.ended', callUuid, 3, 'ended'],
  ])
  for (const received of got) {
    expect(verified(secret, received)).toMatchObject({ type: received.type, data: received.data })
    expect(received.headers['content-type']).toBe('application/json')
  }
  await until('all are delivered', async () => (await statusesOf(id))?.every((status) => status === 'delivered'))
  expect([got.length, results]).toEqual([3, ['delivered', 'delivered', 'delivered']])
})

test('[HOOK3] what fails comes again with the same id and body; what comes after it in its call waits, and no other call', async () => {
  const one = await receiver()
  await endpointAt(one)
  const first = begun()
  const replies: (number | 'close')[] = [500, 'close', 302, 429]
  one.reply(({ data }, earlier) =>
    data.call_uuid === first.callUuid && data.version === 1 ? (replies[earlier] ?? 204) : 200,
  )
  await commit(created(first))
  await commit(accepted(first))
  const other = await wholeCall()
  const got = await one.until(5 + 1 + 3)
  const ofFirst = got.filter(({ data }) => data.call_uuid === first.callUuid)
  expect(ofFirst.map(({ data }) => data.version)).toEqual([1, 1, 1, 1, 1, 2])
  expect(new Set(ofFirst.slice(0, 5).map(({ id, text }) => `${id} ${text}`)).size).toBe(1)
  expect(got.filter(({ data }) => data.call_uuid === other).map(({ data }) => data.version)).toEqual([1, 2, 3])
})

test('[HOOK2] a call that rings wakes, once its devices can be read; no answer keeps the ticket', async () => {
  const one = await receiver()
  const { id } = await endpointAt(one, { events: ['call.wake', 'call.wake_cancelled'] })
  let attempts = 0
  wake = async (body) => {
    if (attempts++ === 0) throw new StoreError('unavailable', 'away')
    return { body: body.replace('"data":{', '"data":{"ring_ticket":"answer",'), ticket: 'answer' }
  }
  await wholeCall()
  // As long as the backoff of an endpoint that failed is, it is not waited for.
  await until('one is put off', () => isPutOff(id))
  now += 1_000
  const got = await one.until(2)
  expect(got.map(({ type, data }) => [type, data.version, data.status])).toEqual([
    ['call.wake', 1, 'ringing'],
    ['call.wake_cancelled', 2, 'accepted'],
  ])
  expect(got[0]?.data).toMatchObject({ ring_ticket: 'answer', expires_at: new Date(now + 44_000).toISOString() })
  await until('all are delivered', async () => (await statusesOf(id))?.every((status) => status === 'delivered'))
  const page = await endpoints.deliveries(product, id, { status: undefined, limit: 9, before: undefined })
  expect(page?.records.map(({ type, attempts, response }) => [type, attempts, response])).toEqual([
    ['call.wake_cancelled', 1, 'answer 200'],
    ['call.wake', 1, '[ring ticket] 200'],
  ])
  // What could not be read is no attempt that failed.
  expect(results).toEqual(['delivered', 'delivered'])
  expect(errors.splice(0)).toMatchObject([{ message: 'away' }])
})

test('[HOOK3] what is to wake for a ring that is over is not sent, says so, and holds nothing back', async () => {
  const one = await receiver()
  const { id } = await endpointAt(one, { events: ['call.wake', 'call.ended'] })
  let reads = 0
  wake = async () => {
    reads++
    throw new StoreError('unavailable', 'away')
  }
  await wholeCall()
  await until('one is put off', () => isPutOff(id))
  expect(one.received).toEqual([])
  now += 45_000
  await webhooks.changed(id)
  expect((await one.until(1)).map(({ type }) => type)).toEqual(['call.ended'])
  await until('one result is counted', () => results.length === 1)
  const page = await endpoints.deliveries(product, id, { status: 'failed', limit: 9, before: undefined })
  expect(page?.records.map(({ type, response }) => [type, response])).toEqual([['call.wake', 'the ring was over']])
  expect([reads, results, failures, errors.splice(0).length]).toEqual([1, ['delivered'], [], 1])
})

test('[HOOK3] of what is to wake no attempt is put off until after the ring', async () => {
  await webhooks.stop()
  await begin([0, 100_000])
  const one = await receiver()
  const { id } = await endpointAt(one, { events: ['call.wake', 'call.ended'] })
  one.reply(({ type }) => (type === 'call.wake' ? 500 : 200))
  await wholeCall()
  expect((await one.until(3)).map(({ type }) => type)).toEqual(['call.wake', 'call.wake', 'call.ended'])
  await until('none is pending', async () => (await statusesOf(id))?.every((status) => status !== 'pending'))
  expect(results).toEqual(['repeated', 'failed', 'delivered'])
  expect(failures).toMatchObject([{ cause: 'status 500', delivery: { type: 'call.wake' } }])
})

test('[HOOK3] a poll claims nothing for endpoints that have nothing due', async () => {
  await webhooks.stop()
  const stored = harness.stores().webhooks
  let polls = 0
  const claimed = new Set<string>()
  await begin([0], {
    ...stored,
    due() {
      polls++
      return stored.due()
    },
    claim(wanted) {
      for (const id of wanted.keys()) claimed.add(id)
      return stored.claim(wanted)
    },
  })
  const one = await receiver()
  for (let n = 0; n < 10; n++) await endpointAt(one)
  await until('each new endpoint was looked at once', () => claimed.size === 10)
  // A round that was asked for meanwhile, as by a poll that came across the last of them, is over by the second poll.
  const polled = (times: number, from = polls) => until(`it has polled ${times} times`, () => polls >= from + times)
  await polled(2)
  claimed.clear()
  await polled(3)
  expect([...claimed]).toEqual([])
})

test('[HOOK3] an endpoint that hangs, one that flaps and one that is gone delay no other', async () => {
  const [hanging, flapping, alive] = [await receiver(), await receiver(), await receiver()]
  const gone = await receiver()
  await gone.close()
  hanging.reply(() => 'hang')
  flapping.reply((_, earlier) => (earlier < 2 ? 'close' : 200))
  for (const one of [hanging, flapping, gone, alive]) await endpointAt(one)
  for (let n = 0; n < 15; n++) await wholeCall()
  await alive.until(45)
  // Each came twice in vain, and then once more.
  await flapping.until(135)
  const versions = Map.groupBy(flapping.received, ({ data }) => data.call_uuid)
  for (const [, got] of versions) expect(got.map(({ data }) => data.version)).toEqual([1, 1, 1, 2, 2, 2, 3, 3, 3])
  // Of what waits for it, so many are under way and no more, while none is answered.
  expect(hanging.mostAtOnce()).toBe(10)
}, 240_000)

test('[HOOK3] a connection that was kept and is closed under a request: it goes at once on a new one, and that is counted', async () => {
  await webhooks.stop()
  await begin([dayMs])
  const one = await receiver()
  const { id } = await endpointAt(one)
  one.reply(({ data }, earlier) => (data.version === 2 && earlier === 0 ? 'close' : 200))
  await wholeCall()
  expect((await one.until(4)).map(({ data }) => data.version)).toEqual([1, 2, 2, 3])
  await until('all are delivered', async () => (await statusesOf(id))?.every((status) => status === 'delivered'))
  expect(results).toEqual(['delivered', 'repeated', 'delivered', 'delivered'])
  const page = await endpoints.deliveries(product, id, { status: undefined, limit: 9, before: undefined })
  expect(page?.records.map(({ attempts }) => attempts)).toEqual([1, 2, 1])
})

test('[HOOK3] 5 s after the first failure, 24 h after the ninth and each later one, each 20 % more or less', async () => {
  await webhooks.stop()
  const hourMs = 3_600_000
  const pauses = [5_000, 30_000, 120_000, 600_000, hourMs, 3 * hourMs, 6 * hourMs, 12 * hourMs, dayMs, dayMs, dayMs]
  const ofEach = 300
  const endpoint = await endpointAt(await receiver())
  const claimed = pauses.flatMap((_, attempts) =>
    Array.from({ length: ofEach }, (_, n): Claimed => {
      const id = `${attempts}-${n}`
      const about = { id, endpointId: endpoint.id, subject: id, version: 1 }
      return { ...about, type: 'x', body: '', createdAt: now, attempts, isAskedFor: false }
    }),
  )
  const settled: Attempted[] = []
  const all = Promise.withResolvers<void>()
  const store = harness.stores().webhooks
  webhooks = createWebhooks({
    store: {
      ...store,
      claim: () => ({ claimed: claimed.splice(0), isMore: false }),
      settle(attempted) {
        settled.push(...attempted)
        if (settled.length === pauses.length * ofEach) all.resolve()
      },
    },
    post: async () => ({ ok: true, status: 500, body: '' }),
    wakeHook: (_, body) => wake(body),
    now: () => now,
    onResult: () => {},
    onFailed: (failed) => failures.push(failed),
    onError: (error) => errors.push(error),
  })
  await webhooks.start()
  await all.promise
  expect([failures, new Set(settled.map(({ outcome }) => outcome))]).toEqual([[], new Set(['pending'])])
  for (const [attempts, pauseMs] of pauses.entries()) {
    const parts = settled.flatMap(({ id, afterMs }) => (id.startsWith(`${attempts}-`) ? [afterMs / pauseMs] : []))
    const [least, most] = [Math.min(...parts), Math.max(...parts)]
    // That none of 300 comes so near to an end happens once in 10^15 runs.
    for (const [at, end] of [
      [least, 0.8],
      [most, 1.2],
    ] as const)
      expect([attempts, Math.abs(at - end) < 0.05]).toEqual([attempts, true])
    expect([attempts, least >= 0.799, most <= 1.201]).toEqual([attempts, true, true])
  }
})

test('[HOOK3] the service removes what arrived after three days, and what failed after thirty, by itself', async () => {
  await webhooks.stop()
  const one = await receiver()
  const { id } = await endpointAt(one, { events: ['call.ringing'] })
  const store = harness.stores().webhooks
  await store.refresh()
  const ends = [
    ['delivered', 3.1],
    ['delivered', 2.9],
    ['failed', 30.1],
    ['failed', 29.9],
  ] as const
  for (const [outcome, daysAgo] of ends) {
    const call = begun()
    await harness.store().transition(call, () => ({ steps: [created(call)] }))
    const [claimed] = (await store.claim(new Map([[id, 1]]))).claimed
    const at = now - daysAgo * dayMs
    const settled = { id: claimed?.id ?? '', outcome, afterMs: 0, at, responseStatus: 200, response: String(daysAgo) }
    await store.settle([settled])
  }
  const left = async () =>
    (await store.deliveries({ endpointId: id, status: undefined, limit: 9, before: undefined }))
      .map(({ response }) => response)
      .toSorted()
  expect(await left()).toEqual(['2.9', '29.9', '3.1', '30.1'])
  const { now: monotonic } = performance
  let laterMs = 0
  const clock = spyOn(performance, 'now').mockImplementation(() => monotonic.call(performance) + laterMs)
  try {
    await begin()
    laterMs = 10 * 60_000
    await until('two steps are left', async () => (await left()).length <= 2)
  } finally {
    clock.mockRestore()
  }
  expect(await left()).toEqual(['2.9', '29.9'])
})

test('[HOOK3] an endpoint that answers 410 is disabled, and hears of nothing more', async () => {
  const one = await receiver()
  const { id } = await endpointAt(one)
  one.reply(() => 410)
  await commit(created(begun()))
  await until('the endpoint is off', async () => (await endpoints.find(product, id))?.enabled === false)
  // It is stored a moment before this process goes by it.
  await until('the service knows it', () => !webhooks.hearsEnds(product))
  await until('one failure is counted', () => failures.length === 1)
  expect(failures).toMatchObject([{ endpoint: { id }, cause: 'status 410', delivery: { type: 'call.ringing' } }])
  await wholeCall()
  await until('none is pending', async () => !(await statusesOf(id))?.includes('pending'))
  expect(await statusesOf(id)).toEqual(['failed'])
  one.reply(() => 200)
  await endpoints.change(product, id, { enabled: true })
  await wholeCall()
  await one.until(4)
})

test('[HOOK3] after three days it has failed, is said once, and can be attempted again by hand', async () => {
  await webhooks.stop()
  await begin([dayMs])
  const one = await receiver()
  const { id } = await endpointAt(one)
  one.reply(() => 500)
  await commit(created(begun()))
  for (let attempts = 1; failures.length === 0; attempts++) {
    await one.until(attempts)
    await until('each attempt is counted', () => results.length === attempts)
    await until(
      'each attempt is stored',
      async () =>
        (
          await harness.stores().webhooks.deliveries({ endpointId: id, status: undefined, limit: 1, before: undefined })
        )[0]?.attempts === attempts,
    )
    now += 1.25 * dayMs
    await webhooks.changed(id)
  }
  expect(one.received.length).toBeGreaterThanOrEqual(3)
  expect(one.received.length).toBeLessThanOrEqual(4)
  expect(new Set(one.received.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(one.received.length)
  await until('it has failed', async () => (await statusesOf(id))?.[0] === 'failed')
  const count = one.received.length
  expect([results.filter((result) => result === 'failed').length, failures.length]).toEqual([1, 1])
  one.reply(() => 200)
  expect(await endpoints.retry(product, id, one.received[0]?.id ?? '')).toBe(true)
  await one.until(count + 1)
  await until('it is delivered', async () => (await statusesOf(id))?.[0] === 'delivered')
})

test('[HOOK3] what is attempted again by hand, however old, is not lost on a kept connection that ends under it', async () => {
  await webhooks.stop()
  await begin([dayMs])
  const one = await receiver()
  const { id } = await endpointAt(one)
  const replies = [500, 'close', 200] as const
  one.reply((_, earlier) => replies[earlier] ?? 204)
  await commit(created(begun()))
  await one.until(1)
  await until('one is put off', () => isPutOff(id))
  now += 4 * dayMs
  await webhooks.changed(id)
  await until('it has failed', async () => (await statusesOf(id))?.[0] === 'failed')
  expect(await endpoints.retry(product, id, one.received[0]?.id ?? '')).toBe(true)
  await until('it is not pending', async () => (await statusesOf(id))?.[0] !== 'pending')
  expect([await statusesOf(id), one.received.length]).toEqual([['delivered'], 3])
  expect(results).toEqual(['repeated', 'failed', 'delivered'])
})

test('[HOOK1] after a rotation both secrets sign, for a day', async () => {
  const one = await receiver()
  const { id, secret: old } = await endpointAt(one)
  const rotated = await endpoints.rotate(product, id)
  await endpoints.test(product, id)
  const [first] = await one.until(1)
  if (first === undefined || rotated === undefined) throw new Error('Nothing came.')
  expect(first.type).toBe('webhook.test')
  for (const secret of [old, rotated.secret])
    expect(verified(secret, first)).toMatchObject({ data: { webhook_id: id } })
  now += dayMs
  await endpoints.test(product, id)
  const second = (await one.until(2))[1] as Received
  expect(String(second.headers['webhook-signature']).split(' ').length).toBe(1)
})

test('[HOOK1] rotated twice, as where the answer was lost: the secret that receivers have signs until its day is over', async () => {
  const one = await receiver()
  const { id, secret: used } = await endpointAt(one)
  const lost = await endpoints.rotate(product, id)
  now += dayMs / 2
  const [second, third] = await Promise.all([endpoints.rotate(product, id), endpoints.rotate(product, id)])
  const kept = { oldSecret: used, oldSecretUntil: lost?.oldSecretUntil }
  expect([second, third]).toMatchObject([kept, kept])
  expect(new Set([lost, second, third].map((endpoint) => endpoint?.secret)).size).toBe(3)
  const current = (await endpoints.find(product, id))?.secret ?? ''
  // Its day is over: the one that is in use since then is the one before.
  now += dayMs / 2
  expect(await endpoints.rotate(product, id)).toMatchObject({ oldSecret: current, oldSecretUntil: now + dayMs })
})

test('what is under way when the process stops is sent by the next one, and counts as no attempt', async () => {
  const one = await receiver()
  const { id } = await endpointAt(one)
  one.reply(() => 'hang')
  const callUuid = await wholeCall()
  await one.until(1)
  await webhooks.stop()
  await harness.reopen()
  one.reply(() => 200)
  await begin()
  const got = await one.until(4)
  expect(got.map(({ data }) => [data.call_uuid, data.version])).toEqual(
    [1, 1, 2, 3].map((version) => [callUuid, version]),
  )
  await until('all are delivered', async () => (await statusesOf(id))?.every((status) => status === 'delivered'))
  expect(results).toEqual(['delivered', 'delivered', 'delivered'])
})

test('[HOOK4] what leads to a forbidden address is told why, and goes nowhere', async () => {
  const id = 'we_forbidden'
  const endpoint = {
    id,
    product,
    url: 'http://127.0.0.2:9/',
    events: null,
    description: null,
    enabled: true,
    createdAt: now,
  }
  await harness.stores().webhooks.addEndpoint({
    ...endpoint,
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    oldSecret: null,
    oldSecretUntil: null,
  })
  await webhooks.changed(id)
  await commit(created(begun()))
  await until('a result is counted', () => results.length > 0)
  await until('it says that there is no connection', async () => {
    const page = await endpoints.deliveries(product, id, { status: undefined, limit: 1, before: undefined })
    return page?.records[0]?.response === noConnection
  })
})

/** Keeps the event loop some 8 ms behind until the work is done. */
async function whileBehind(work: () => Promise<unknown>): Promise<void> {
  let isBusy = true
  const turn = () => {
    for (const end = performance.now() + 8; performance.now() < end; );
    if (isBusy) setTimeout(turn, 0)
  }
  turn()
  await work().finally(() => {
    isBusy = false
  })
}
test('[HOOK3] while calls keep the event loop behind they come in rounds with a pause between them, and all of them come', async () => {
  const one = await receiver()
  await endpointAt(one)
  pauses = 0
  await whileBehind(async () => {
    // Nobody hears of these.
    const elsewhere = created(ringing({ ...participant(crypto.randomUUID()), product: 'elsewhere' }))
    const others = setInterval(() => webhooks.committed(elsewhere), 1)
    await Promise.all(Array.from({ length: 30 }, wholeCall))
    await one.until(90).finally(() => clearInterval(others))
  })
  expect(pauses).toBeGreaterThan(2)
})

test('[HOOK3] while no call changes there is no pause, however far behind the event loop is', async () => {
  await webhooks.stop()
  const one = await receiver()
  await endpointAt(one)
  await Promise.all(Array.from({ length: 30 }, wholeCall))
  pauses = 0
  await begin()
  await whileBehind(() => one.until(90))
  expect(pauses).toBe(0)
})

test('[HOOK1] what an endpoint may be', async () => {
  const refused = async (input: object) => {
    const made = await endpoints.create(product, { url: 'https://example.com/', ...input })
    return made.ok ? undefined : made.message
  }
  for (const url of [
    undefined,
    17,
    '',
    'example.com',
    'ftp://example.com/',
    'http://example.com/',
    'http://10.0.0.1/',
    'http://127.0.0.2/',
    'https://10.0.0.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://[::1]/',
    'https://0x7f.2/',
    'https://user:password@example.com/',
    'https://example.com/#part',
    `https://example.com/${'x'.repeat(2_048)}`,
  ])
    expect([url, await refused({ url })]).toEqual([url, expect.stringMatching(/^url must /)])
  for (const events of [[], ['call.unknown'], ['webhook.test'], 'call.ended', [17], {}]) {
    expect(await refused({ events })).toMatch(/^events must /)
  }
  expect(await refused({ description: 'x'.repeat(256) })).toMatch(/^description must /)
  expect(await refused({ enabled: 'yes' })).toMatch(/^enabled must /)
  for (let n = 0; n < 20; n++) expect(await refused({ events: ['call.ended', 'call.ended'] })).toBeUndefined()
  expect((await endpoints.list(product))[0]?.events).toEqual(['call.ended'])
  expect(await refused({})).toMatch(/at most 20/)
})
