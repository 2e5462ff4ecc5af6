import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { callHookTypes } from '@ringwire/protocol/backend'
import { until } from '@ringwire/testkit/patience'
import type { LiveCall, RingingCall } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import { createAddressGuard } from '../../src/outgoing/addresses.ts'
import { accepted, created, ended, participant, ringing, there, touched } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import {
  type Attempted,
  type Claimed,
  claimMs,
  type Delivery,
  newDeliveryId,
  type WebhookEndpoint,
  type WebhookStore,
} from '../../src/ports/webhooks.ts'
import { dropSize, dropSteps } from '../../src/stores/sql/kept-deliveries.ts'
import { createWebhookEndpoints } from '../../src/webhooks/endpoints.ts'
import { giveUpMs } from '../../src/webhooks/verdict.ts'
import { createWebhooks } from '../../src/webhooks/webhooks.ts'

/** What the suite needs of an adapter besides its ports. */
export interface WebhooksHarness {
  store(): CallStore
  webhooks(): WebhookStore
  /** The same as another one sees it who may claim at the same time. */
  other(): WebhookStore
  /** Writes a step as another process would, unknown to the store. */
  forge(step: Step): Promise<void>
  /** Lets this many ms pass for what waits. */
  pass(ms: number): Promise<void>
  /** Closes the store and opens it again on the same data; what is done in between has it for itself. */
  reopen(between?: () => Promise<void>): Promise<void>
  /** How `webhooks-child.ts` opens the same data. */
  child(): readonly [kind: string, target: string]
  close(): Promise<void>
}

const product = ringing().product
const stepTypes = callHookTypes.filter((type) => !type.startsWith('call.wake'))
let count = 0
export function endpoint(changes: Partial<WebhookEndpoint> = {}): WebhookEndpoint {
  return {
    id: `we_${++count}`,
    product,
    url: 'https://example.com/hook',
    // Without what wakes phones: two types for one step are a test of its own.
    events: stepTypes,
    description: null,
    enabled: true,
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    oldSecret: null,
    oldSecretUntil: null,
    createdAt: count,
    ...changes,
  }
}

export const attempted = (id: string, changes: Partial<Attempted> = {}): Attempted => ({
  id,
  outcome: 'delivered',
  afterMs: 0,
  at: 5_000,
  responseStatus: 200,
  response: 'ok',
  ...changes,
})

/** What every adapter of WebhookStore guarantees. */
export function registerWebhooksContract(name: string, open: () => Promise<WebhooksHarness>): void {
  describe(`${name}: WebhookStore`, () => {
    let harness: WebhooksHarness
    const hooks = () => harness.webhooks()
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())
    beforeEach(async () => {
      for (const { id, product } of await hooks().refresh()) await hooks().removeEndpoint(product, id)
      await hooks().refresh()
    })

    async function add(...endpoints: WebhookEndpoint[]): Promise<void> {
      for (const one of endpoints) await hooks().addEndpoint(one)
      await hooks().refresh()
      await harness.other().refresh()
    }
    async function commit(...steps: Step[]): Promise<void> {
      const [first] = steps
      if (first !== undefined) await harness.store().transition(first.call, () => ({ steps }))
    }
    const begin = async (): Promise<RingingCall> => {
      const call = ringing()
      await commit(created(call))
      return call
    }
    const pending = async (id: string) =>
      (await hooks().deliveries({ endpointId: id, status: 'pending', limit: 1000, before: undefined })).map(
        ({ type }) => type,
      )
    const claim = async (from: WebhookStore, id: string, count = 100) => {
      const all: Claimed[] = []
      for (;;) {
        const { claimed, isMore } = await from.claim(new Map([[id, count - all.length]]))
        all.push(...claimed)
        if (!isMore) return all
      }
    }

    test('a step is written for each endpoint that wants it, and for no other', async () => {
      const all = endpoint({ events: null })
      const some = endpoint({ events: ['call.accepted', 'call.ended'] })
      const off = endpoint({ enabled: false })
      const elsewhere = endpoint({ product: 'another' })
      await add(all, some, off, elsewhere)
      const call = await begin()
      const answer = accepted(call)
      await commit(answer)
      await commit(touched(answer.call, 'a place is nobody’s business'))
      const of = async ({ id }: WebhookEndpoint) => (await pending(id)).toSorted()
      expect(await of(all)).toEqual(['call.accepted', 'call.ringing', 'call.wake', 'call.wake_cancelled'])
      expect(await of(some)).toEqual(['call.accepted'])
      expect([await of(off), await of(elsewhere)]).toEqual([[], []])
      const claimed = await claim(hooks(), all.id)
      const first = claimed.find(({ type }) => type === 'call.ringing')
      expect(claimed.map(({ type, version }) => [type, version]).toSorted()).toEqual([
        ['call.ringing', 1],
        ['call.wake', 1],
      ])
      expect(first).toMatchObject({
        endpointId: all.id,
        subject: call.callUuid,
        version: 1,
        type: 'call.ringing',
        attempts: 0,
      })
      expect(JSON.parse(first?.body ?? '')).toMatchObject({
        type: 'call.ringing',
        timestamp: new Date(created(call).event.at).toISOString(),
        data: { call_uuid: call.callUuid, version: 1, status: 'ringing', caller: { user_id: call.caller.userId } },
      })
    })

    test('what is not written is told to nobody: a guard that failed, and the other steps of its transition', async () => {
      const one = endpoint()
      await add(one)
      const [call, other, third] = [await begin(), await begin(), await begin()]
      await harness.forge(touched(other, 'forged'))
      let tries = 0
      await Promise.all([
        harness.store().transition(call, (now) => ({
          steps: tries++ > 0 ? [] : [accepted(there(now) as RingingCall), accepted(other)],
        })),
        commit(accepted(third)),
      ])
      expect(tries).toBe(2)
      expect((await pending(one.id)).toSorted()).toEqual([
        'call.accepted',
        'call.ringing',
        'call.ringing',
        'call.ringing',
      ])
    })

    test('of one call they are claimed in the order of versions, and other calls go on', async () => {
      const one = endpoint()
      await add(one)
      const [call, other] = [await begin(), await begin()]
      const answer = accepted(call)
      await commit(answer)
      await commit(ended(answer.call as LiveCall))
      const got = async () =>
        (await claim(hooks(), one.id)).map(({ id, subject, version }) => ({ id, subject, version }))
      const first = await got()
      expect(first.map(({ subject, version }) => [subject, version]).toSorted()).toEqual(
        [
          [call.callUuid, 1],
          [other.callUuid, 1],
        ].toSorted(),
      )
      expect(await got()).toEqual([])
      const ofCall = first.find(({ subject }) => subject === call.callUuid)?.id ?? ''
      // It failed: what comes after it in its call waits with it.
      await hooks().settle([attempted(ofCall, { outcome: 'pending', afterMs: 15_000, responseStatus: 500 })])
      expect(await got()).toEqual([])
      await harness.pass(15_000)
      expect((await got()).map(({ version }) => version)).toEqual([1])
      await hooks().settle([attempted(ofCall)])
      const second = await got()
      expect(second.map(({ version }) => version)).toEqual([2])
      // One that failed for good keeps nobody back.
      await hooks().settle([attempted(second[0]?.id ?? '', { outcome: 'failed' })])
      expect((await got()).map(({ version }) => version)).toEqual([3])
    })

    test('what waits behind one that failed is due again with that one, and claimed when that one is over', async () => {
      const one = endpoint()
      await add(one)
      const [call, other] = [await begin(), await begin()]
      const answer = accepted(call)
      await commit(answer, accepted(other))
      const claimed = await claim(hooks(), one.id)
      const first = claimed.find(({ subject }) => subject === call.callUuid)?.id ?? ''
      const dueOf = async () => {
        const all = await hooks().deliveries({ endpointId: one.id, status: undefined, limit: 10, before: undefined })
        return new Map(all.map(({ id, dueAt }) => [id, dueAt]))
      }
      const before = await dueOf()
      // Nothing has failed: a delivery under way for the first time keeps nobody waiting for long.
      expect(await hooks().putOff([one.id])).toBe(false)
      expect(await dueOf()).toEqual(before)

      for (const { id } of claimed) if (id !== first) await hooks().settle([attempted(id)])
      for (const { id } of await claim(hooks(), one.id)) await hooks().settle([attempted(id)])
      await hooks().settle([attempted(first, { outcome: 'pending', afterMs: 60_000, responseStatus: 500 })])
      const behind = async () => {
        const again = await dueOf()
        return [...again].flatMap(([id, at]) => (id !== first && at === again.get(first) ? [id] : []))
      }
      expect((await behind()).length).toBe(1)
      expect(await hooks().putOff([one.id])).toBe(false)
      // A delivery that comes only now is put off when it is looked for.
      await commit(ended(answer.call as LiveCall))
      expect(await claim(hooks(), one.id)).toEqual([])
      expect(await hooks().putOff([])).toBe(false)
      expect(await hooks().putOff(['we_unknown', one.id])).toBe(true)
      expect(await hooks().putOff([one.id])).toBe(false)
      const waiting = await behind()
      expect(waiting.length).toBe(2)
      expect(await claim(hooks(), one.id)).toEqual([])

      // While the second attempt is under way nothing is put off, however long it takes.
      await harness.pass(60_000)
      expect((await claim(hooks(), one.id)).map(({ id }) => id)).toEqual([first])
      expect(await hooks().putOff([one.id])).toBe(false)
      expect(await claim(harness.other(), one.id)).toEqual([])
      // It fails, too.
      await hooks().settle([attempted(first, { outcome: 'pending', afterMs: 120_000, responseStatus: 500 })])
      expect(await behind()).toEqual(waiting)
      expect(await hooks().putOff([one.id])).toBe(false)
      await harness.pass(120_000)
      expect((await claim(hooks(), one.id)).map(({ id }) => id)).toEqual([first])
      await hooks().settle([attempted(first)])
      const [second] = await claim(hooks(), one.id)
      expect(waiting).toContain(second?.id ?? '')
      await hooks().settle([attempted(second?.id ?? '')])
      expect((await claim(hooks(), one.id)).map(({ id }) => waiting.includes(id))).toEqual([true])
    })

    test('one that is made again by hand takes nothing away from who is at a later one', async () => {
      const one = endpoint()
      await add(one)
      const call = await begin()
      const [first] = await claim(hooks(), one.id)
      await hooks().settle([attempted(first?.id ?? '', { outcome: 'failed' })])
      await commit(accepted(call))
      const [second] = await claim(hooks(), one.id)
      expect(second?.version).toBe(2)
      expect(await hooks().retry(one.id, first?.id ?? '')).toBe(true)
      expect((await claim(hooks(), one.id)).map(({ id }) => id)).toEqual([first?.id ?? ''])
      await hooks().settle([attempted(first?.id ?? '')])
      expect(await claim(hooks(), one.id)).toEqual([])
      expect(await claim(harness.other(), one.id)).toEqual([])
      await hooks().settle([attempted(second?.id ?? '')])
      expect(await claim(hooks(), one.id)).toEqual([])
    })

    test('two that claim at once never get the same, and who dies with a claim leaves it', async () => {
      const one = endpoint()
      await add(one)
      await Promise.all(Array.from({ length: 60 }, begin))
      const got: string[] = []
      for (let round = 0; round < 10; round++) {
        const both = await Promise.all([claim(hooks(), one.id, 7), claim(harness.other(), one.id, 7)])
        got.push(...both.flat().map(({ id }) => id))
      }
      expect([got.length, new Set(got).size]).toEqual([60, 60])
      await harness.pass(claimMs)
      expect((await claim(harness.other(), one.id)).length).toBe(60)
    })

    test('one endpoint that fails does not stand in the way of another', async () => {
      const [dead, alive] = [endpoint(), endpoint()]
      await add(dead, alive)
      await Promise.all(Array.from({ length: 30 }, begin))
      const wanted = new Map([
        [dead.id, 3],
        [alive.id, 100],
      ])
      const { claimed: taken } = await hooks().claim(wanted)
      expect(taken.filter(({ endpointId }) => endpointId === dead.id).length).toBe(3)
      expect(taken.filter(({ endpointId }) => endpointId === alive.id).length).toBe(30)
    })

    test('attempts are counted and shown; what was no attempt is not', async () => {
      const one = endpoint()
      await add(one)
      await begin()
      const shown = async () =>
        (await hooks().deliveries({ endpointId: one.id, status: undefined, limit: 10, before: undefined }))[0]
      const take = async () => (await claim(hooks(), one.id))[0]?.id ?? ''
      const id = await take()
      await hooks().settle([attempted(id, { outcome: 'released', responseStatus: null, response: null })])
      expect(await shown()).toMatchObject({ id, status: 'pending', attempts: 0, endedAt: null })
      expect(await take()).toBe(id)
      await hooks().settle([attempted(id, { outcome: 'pending', afterMs: 0, responseStatus: 503, response: 'busy' })])
      expect(await shown()).toMatchObject({ status: 'pending', attempts: 1, responseStatus: 503, response: 'busy' })
      expect(await take()).toBe(id)
      await hooks().settle([
        attempted(id, { outcome: 'failed', at: 7_000, responseStatus: null, response: 'ECONNREFUSED' }),
      ])
      expect(await shown()).toMatchObject({
        status: 'failed',
        attempts: 2,
        dueAt: null,
        endedAt: 7_000,
        responseStatus: null,
      })
      expect(await take()).toBe('')
      // A late result of a delivery that is over changes nothing.
      await hooks().settle([attempted(id)])
      expect((await shown())?.status).toBe('failed')
      expect(await hooks().retry('another', id)).toBe(false)
      expect(await hooks().retry(one.id, id)).toBe(true)
      expect(await hooks().retry(one.id, id)).toBe(false)
      expect(await take()).toBe(id)
      await hooks().settle([attempted(id)])
      expect(await shown()).toMatchObject({ status: 'delivered', attempts: 3, responseStatus: 200, response: 'ok' })
    })

    test('[HOOK3] what was asked for again says so until that attempt is made', async () => {
      const one = endpoint()
      await add(one)
      await begin()
      const take = async () => (await claim(hooks(), one.id))[0]
      const first = await take()
      const id = first?.id ?? ''
      await hooks().settle([attempted(id, { outcome: 'failed' })])
      expect(await hooks().retry(one.id, id)).toBe(true)
      const again = await take()
      await hooks().settle([attempted(id, { outcome: 'released' })])
      const released = await take()
      await hooks().settle([attempted(id, { outcome: 'pending' })])
      const next = await take()
      expect([first, again, released, next].map((one) => one?.isAskedFor)).toEqual([false, true, true, false])
    })

    test('[HOOK3] what waited at a disabled endpoint goes out once it is enabled, unless it is too old; asked for, that goes, too', async () => {
      const one = endpoint({ events: ['call.ringing'] })
      await add(one)
      const old = ringing()
      const young = ringing(undefined, undefined, { startedAt: old.startedAt + 1_000 })
      await commit(created(old))
      await commit(created(young))
      await hooks().changeEndpoint(product, one.id, { enabled: false })
      const posted: string[] = []
      const failures: string[] = []
      const webhooks = createWebhooks({
        store: hooks(),
        async post({ body }) {
          posted.push(JSON.parse(String(body)).data.call_uuid)
          return { ok: true, status: 200, body: '' }
        },
        wakeHook: async (_, body) => ({ body, ticket: '' }),
        now: () => young.startedAt + giveUpMs,
        onResult() {},
        onFailed: ({ delivery, cause }) => failures.push(`${delivery.subject} ${cause}`),
        onError(error) {
          throw error
        },
      })
      const shown = async () => {
        const all = await hooks().deliveries({ endpointId: one.id, status: undefined, limit: 9, before: undefined })
        return all.map(({ status, response }) => `${status} ${response}`).toReversed()
      }
      const becomes = async (...wanted: string[]) => {
        await until(`it shows ${wanted}`, async () => String(await shown()) === String(wanted))
      }
      try {
        await webhooks.start()
        await webhooks.changed(one.id)
        expect([await shown(), posted]).toEqual([['pending null', 'pending null'], []])
        await hooks().changeEndpoint(product, one.id, { enabled: true })
        await webhooks.changed(one.id)
        await becomes('failed too old', 'delivered ')
        expect([posted, failures]).toEqual([[young.callUuid], [`${old.callUuid} too old`]])
        const [{ id } = { id: '' }] = await hooks().deliveries({
          endpointId: one.id,
          status: 'failed',
          limit: 1,
          before: undefined,
        })
        expect(await hooks().retry(one.id, id)).toBe(true)
        await webhooks.changed(one.id)
        await becomes('delivered ', 'delivered ')
        expect([posted, failures.length]).toEqual([[young.callUuid, old.callUuid], 1])
      } finally {
        await webhooks.stop()
      }
    })

    test('[HOOK1] a refresh reads the endpoints that changed, and no other', async () => {
      await add(endpoint(), endpoint(), endpoint())
      const before = await hooks().refresh()
      expect(await hooks().refresh()).toBe(before)
      const [first, second, third] = before as [WebhookEndpoint, WebhookEndpoint, WebhookEndpoint]
      expect(await hooks().changeEndpoint(product, 'we_unknown', { enabled: false })).toBeUndefined()
      expect(await hooks().changeEndpoint('another', first.id, { enabled: false })).toBeUndefined()
      expect(await hooks().refresh()).toBe(before)
      await harness.other().changeEndpoint(product, second.id, { enabled: false })
      const fourth = endpoint()
      await harness.other().addEndpoint(fourth)
      const after = await hooks().refresh()
      expect(new Set(after)).toEqual(new Set([first, { ...second, enabled: false }, third, fourth]))
      // An endpoint that was not read again is the same object.
      expect([after.includes(first), after.includes(third)]).toEqual([true, true])
      await harness.other().removeEndpoint(product, first.id)
      expect(new Set((await hooks().refresh()).map(({ id }) => id))).toEqual(new Set([second.id, third.id, fourth.id]))
    })

    test('[HOOK3] endpoints with something due are found, and no other', async () => {
      const [due, later, idle] = [endpoint(), endpoint(), endpoint()]
      await add(due, later, idle)
      expect(await hooks().due()).toEqual([])
      await begin()
      // Commits of SQLite are spread by a claim that finds too little.
      for (const { id } of [due, later, idle]) await claim(hooks(), id, 1)
      expect(new Set(await hooks().due())).toEqual(new Set([due.id, later.id, idle.id]))
      const settle = async ({ id }: WebhookEndpoint, changes: Partial<Attempted>) => {
        const [record] = await hooks().deliveries({ endpointId: id, status: 'pending', limit: 1, before: undefined })
        await hooks().settle([attempted(record?.id ?? '', changes)])
      }
      await settle(later, { outcome: 'pending', afterMs: 60_000 })
      await settle(idle, { outcome: 'delivered' })
      expect(await hooks().due()).toEqual([due.id])
      await harness.pass(60_000)
      expect(new Set(await hooks().due())).toEqual(new Set([due.id, later.id]))
    })

    test('[ADM2] the oldest delivery that failed and waits is found of each enabled endpoint, and no other', async () => {
      const [failing, waits, mended, off] = [endpoint(), endpoint(), endpoint(), endpoint()]
      await add(failing, waits, mended, off)
      const made = (endpointId: string, id: string): Delivery => ({
        ...{ id, endpointId, subject: id, version: 1, type: 'webhook.test', body: '{}', createdAt: 1_000 },
      })
      const [first, second, third, fourth, fifth, sixth] = [1, 2, 3, 4, 5, 6].map((n) => newDeliveryId(1_000 + n)) as [
        ...[string, string, string, string, string, string],
      ]
      await hooks().add([made(failing.id, first), made(failing.id, second), made(failing.id, third)])
      await hooks().add([made(waits.id, fourth), made(mended.id, fifth), made(off.id, sixth)])
      for (const { id } of [failing, mended, off]) await claim(hooks(), id)
      const refused = { outcome: 'pending', afterMs: 60_000, responseStatus: 503, response: 'no' } as const
      await hooks().settle([second, third, fifth, sixth].map((id) => attempted(id, refused)))
      await hooks().settle([attempted(fifth)])
      await harness.other().changeEndpoint(product, off.id, { enabled: false })
      const found = [{ id: second, product, url: failing.url, attempts: 1, responseStatus: 503, response: 'no' }]
      expect(await hooks().stuck()).toMatchObject(found)
      expect(await harness.other().stuck()).toMatchObject(found)
    })

    test('[HOOK3] 1,000 idle endpoints cost no claims, no reads and no errands, whoever changes one', async () => {
      const many = Array.from({ length: 1_000 }, () => endpoint())
      for (let n = 0; n < many.length; n += 100)
        await Promise.all(many.slice(n, n + 100).map((one) => hooks().addEndpoint(one)))
      const looks: (() => void)[] = []
      const claims: string[][] = []
      const putOff: string[][] = []
      const lists = new Set<unknown>()
      const store: WebhookStore = {
        ...hooks(),
        async refresh() {
          const list = await hooks().refresh()
          lists.add(list)
          return list
        },
        async due() {
          const ids = await hooks().due()
          looks.shift()?.()
          return ids
        },
        claim(wanted) {
          claims.push([...wanted.keys()])
          return hooks().claim(wanted)
        },
        putOff(ids) {
          putOff.push([...ids])
          return hooks().putOff(ids)
        },
      }
      const look = () => new Promise<void>((resolve) => looks.push(resolve))
      const webhooks = createWebhooks({
        store,
        post: async () => ({ ok: true, status: 200, body: '' }),
        wakeHook: async (_, body) => ({ body, ticket: '' }),
        now: Date.now,
        onResult() {},
        onFailed() {},
        onError(error) {
          throw error
        },
      })
      const endpoints = createWebhookEndpoints({
        store,
        guard: createAddressGuard([]),
        now: Date.now,
        onChanged: webhooks.changed,
      })
      try {
        await webhooks.start()
        await look()
        // A start asks once what an earlier process has left for each.
        expect(claims.flat()).toHaveLength(1_000)
        for (let n = 0; n < 3; n++) await look()
        for (let n = 0; n < 90; n++)
          expect(await endpoints.change(product, `we_unknown_${n}`, { enabled: false })).toBeUndefined()
        expect(await endpoints.rotate(product, 'we_unknown')).toBeUndefined()
        expect(await endpoints.remove(product, 'we_unknown')).toBe(false)
        await look()
        expect([claims.flat().length, putOff, lists.size]).toEqual([1_000, [], 1])
        const [one] = many as [WebhookEndpoint]
        claims.length = 0
        await endpoints.change(product, one.id, { description: 'changed' })
        await look()
        expect([claims, putOff, lists.size]).toEqual([[[one.id]], [], 2])
      } finally {
        await webhooks.stop()
      }
    }, 60_000)

    test('lists are paged, the newest first, and show those of one status', async () => {
      const one = endpoint()
      await add(one)
      for (let n = 0; n < 5; n++) await begin()
      const [first] = await claim(hooks(), one.id, 1)
      await hooks().settle([attempted(first?.id ?? '', { outcome: 'failed' })])
      const page = async (before: string | undefined) =>
        (await hooks().deliveries({ endpointId: one.id, status: undefined, limit: 2, before })).map(({ id }) => id)
      const pages = [await page(undefined)]
      for (let last = pages[0]; last?.length === 2; pages.push(last)) last = await page(last[1])
      const ids = pages.flat()
      expect([ids.length, new Set(ids).size]).toEqual([5, 5])
      expect(ids).toEqual(ids.toSorted().reverse())
      const failed = await hooks().deliveries({ endpointId: one.id, status: 'failed', limit: 10, before: undefined })
      expect(failed.map(({ id }) => id)).toEqual([first?.id ?? ''])
    })

    test('an endpoint is changed in part, and takes its deliveries along', async () => {
      const one = endpoint({ description: 'before' })
      await add(one)
      await begin()
      expect(await hooks().changeEndpoint('another', one.id, { enabled: false })).toBeUndefined()
      const changed = await hooks().changeEndpoint(product, one.id, {
        events: ['call.missed'],
        oldSecret: one.secret,
        oldSecretUntil: 1_700_000_000_000,
        secret: 'whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3',
        description: null,
      })
      expect(changed).toEqual({
        ...one,
        events: ['call.missed'],
        oldSecret: one.secret,
        oldSecretUntil: 1_700_000_000_000,
        secret: 'whsec_bmV3bmV3bmV3bmV3bmV3bmV3bmV3bmV3',
        description: null,
      })
      expect(await hooks().changeEndpoint(product, one.id, {})).toEqual(changed)
      expect(await hooks().endpointsOf(product)).toEqual(changed ? [changed] : [])
      await harness.other().refresh()
      await hooks().refresh()
      await begin()
      expect(await pending(one.id)).toEqual(['call.ringing'])
      expect(await hooks().removeEndpoint('another', one.id)).toBe(false)
      expect(await hooks().removeEndpoint(product, one.id)).toBe(true)
      expect([await pending(one.id), await hooks().endpointsOf(product)]).toEqual([[], []])
    })

    test('of two changes of an endpoint at once each answers what it has stored', async () => {
      for (let round = 0; round < 20; round++) {
        const one = endpoint()
        await hooks().addEndpoint(one)
        const [off, named] = [{ enabled: false }, { description: 'named' }]
        const changing = [off, named].map((changes) => hooks().changeEndpoint(product, one.id, changes))
        for (let n = 0; n < 5; n++) await undefined
        // In half of the rounds both are stored before an answer is read.
        if (round % 2 === 0) Bun.sleepSync(20)
        const both = { ...one, ...off, ...named }
        const [first, second] = await Promise.all(changing)
        expect([
          [{ ...one, ...off }, both],
          [both, { ...one, ...named }],
        ]).toContainEqual([first as WebhookEndpoint, second as WebhookEndpoint])
        expect(await hooks().removeEndpoint(product, one.id)).toBe(true)
      }
    })

    test('an endpoint with very many deliveries is removed at once, and they go in steps', async () => {
      const [one, other] = [endpoint(), endpoint()]
      await add(one, other)
      const count = (dropSteps + 1) * dropSize + 1
      const made = (endpointId: string, n: number) => ({
        ...{ id: newDeliveryId(n), endpointId, subject: crypto.randomUUID(), version: 1, type: 'webhook.test' },
        ...{ body: '{}', createdAt: n },
      })
      await hooks().add(Array.from({ length: count }, (_, n) => made(one.id, n)))
      await hooks().add([made(other.id, 1)])
      const left = async () => {
        const page = { endpointId: one.id, status: 'pending' as const, limit: count, before: undefined }
        return (await hooks().deliveries(page)).length
      }
      expect(await hooks().removeEndpoint(product, one.id)).toBe(true)
      expect([(await hooks().endpointsOf(product)).map(({ id }) => id), await left()]).toEqual([
        [other.id],
        dropSize + 1,
      ])
      expect(await hooks().prune(0, 0)).toBe(dropSize)
      // The rest may name the participant who is erased.
      await hooks().erase(participant('nobody'))
      expect([await left(), await pending(other.id)]).toEqual([0, ['webhook.test']])
    })

    test('what ended is removed, each in its time, and what no endpoint waits for', async () => {
      const one = endpoint()
      await add(one)
      for (let n = 0; n < 4; n++) await begin()
      const ids = (await claim(hooks(), one.id, 3)).map(({ id }) => id)
      await hooks().settle([
        attempted(ids[0] ?? '', { at: 1_000 }),
        attempted(ids[1] ?? '', { at: 3_000 }),
        attempted(ids[2] ?? '', { outcome: 'failed', at: 1_000 }),
      ])
      const left = async () =>
        (await hooks().deliveries({ endpointId: one.id, status: undefined, limit: 10, before: undefined }))
          .map(({ status }) => status)
          .toSorted()
      expect(await hooks().prune(2_000, 500)).toBe(1)
      expect(await left()).toEqual(['delivered', 'failed', 'pending'])
      expect(await hooks().prune(2_000, 2_000)).toBe(1)
      expect(await hooks().prune(2_000, 2_000)).toBe(0)
      // Also what waits at a disabled endpoint, by its age.
      const { startedAt } = ringing()
      await hooks().changeEndpoint(product, one.id, { enabled: false })
      expect(await hooks().prune(0, startedAt)).toBe(0)
      expect(await left()).toEqual(['delivered', 'pending'])
      expect(await hooks().prune(0, startedAt + 1)).toBe(1)
      expect(await left()).toEqual(['delivered'])
      // Somebody asks for another attempt of one that is old: it stays until that is over.
      expect(await hooks().retry(one.id, ids[1] ?? '')).toBe(true)
      expect(await hooks().prune(0, startedAt + 1)).toBe(0)
      expect(await left()).toEqual(['pending'])
      await hooks().settle([attempted(ids[1] ?? '', { at: 5_000 })])
      const call = ringing()
      // This process does not know yet that another one has removed the endpoint.
      await harness.other().removeEndpoint(product, one.id)
      await commit(created(call))
      expect(await hooks().prune(0, 0)).toBe(1)
      expect(await left()).toEqual([])
    })

    test('after kill -9 what was committed is on its way, and nothing else', async () => {
      const one = endpoint()
      await add(one)
      const lines: string[] = []
      await harness.reopen(async () => {
        const child = Bun.spawn(
          [process.execPath, new URL('webhooks-child.ts', import.meta.url).pathname, ...harness.child()],
          {
            stdout: 'pipe',
            stderr: 'inherit',
          },
        )
        let text = ''
        for await (const chunk of child.stdout) {
          text += new TextDecoder().decode(chunk)
          if (text.split('\n').length > 300) child.kill('SIGKILL')
        }
        await child.exited
        lines.push(...text.split('\n').slice(0, -1))
      })
      await hooks().refresh()
      const left = await hooks().deliveries({
        endpointId: one.id,
        status: 'pending',
        limit: 100_000,
        before: undefined,
      })
      const names = new Set<string>()
      for (const { subject, version } of await claim(hooks(), one.id, 100_000)) {
        names.add(`${subject} ${version}`)
        expect(await harness.store().load({ product, callUuid: subject })).toBeDefined()
      }
      expect(lines.length).toBeGreaterThan(250)
      expect(left.length).toBeGreaterThanOrEqual(lines.length)
      for (const line of lines) if (line.endsWith(' 1')) expect(names.has(line)).toBe(true)
    }, 240_000)
  })
}
