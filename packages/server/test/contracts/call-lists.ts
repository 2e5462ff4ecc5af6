import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Call } from '../../src/call/call.ts'
import type { By } from '../../src/call/effects.ts'
import type { CallStoreHarness } from '../../src/ports/call-store.fixture.ts'
import { accepted, created, ended, participant, ringing, there } from '../../src/ports/call-store.fixture.ts'
import { type ListQuery, mostLookedAt, type SeenCall } from '../../src/ports/call-store.ts'

/** What every adapter guarantees of lists of calls [SRV2]. */
export function registerCallListsContract(name: string, open: () => Promise<CallStoreHarness>): void {
  describe(`${name}: lists of calls`, () => {
    let harness: CallStoreHarness
    const store = () => harness.store()
    const ann = participant('ann')
    const bob = participant('bob', 'doctor')
    /** Started one a second; of two of them at the same time. */
    const calls: Call[] = []
    const byOf = ({ userId, role }: typeof ann): By => ({ userId, role, sessionId: 's' })

    beforeAll(async () => {
      harness = await open()
      for (let n = 0; n < 12; n++) {
        const [caller, callee] = n % 2 === 0 ? [ann, bob] : [bob, ann]
        const other = n % 3 === 0 ? participant(`other-${n}`, 'doctor') : callee
        const call = ringing(caller, other, { startedAt: 1_000_000 + Math.floor(n / 2) * 1000 })
        const first = { ...created(call), event: { ...created(call).event, by: byOf(caller) } }
        await store().transition(call, () => ({ steps: [first] }))
        let now = call as Call
        const commit = async (step: ReturnType<typeof accepted>, by: By | null) => {
          await store().transition(call, () => ({ steps: [{ ...step, event: { ...step.event, by } }] }))
          now = step.call
        }
        if (n % 4 !== 0) await commit(accepted(call), byOf(other))
        if (n % 4 === 3 && now.status === 'accepted') await commit(ended(now), n === 3 ? null : byOf(caller))
        calls.push(now)
      }
    })
    afterAll(() => harness.close())

    const newest = (list: readonly Call[]) =>
      [...list].sort((a, b) => b.startedAt - a.startedAt || (a.callUuid < b.callUuid ? 1 : -1))
    const all = {
      product: ann.product,
      participant: undefined,
      statuses: undefined,
      since: 0,
      limit: 100,
      after: undefined,
    } satisfies ListQuery

    async function pages(query: ListQuery): Promise<SeenCall[]> {
      const found: SeenCall[] = []
      for (let after = query.after, isFirst = true; isFirst || after !== undefined; isFirst = false) {
        const page = await store().list({ ...query, after })
        expect(page.calls.length).toBeLessThanOrEqual(query.limit)
        found.push(...page.calls)
        after = page.next
      }
      return found
    }
    const uuids = (list: readonly Call[]) => list.map(({ callUuid }) => callUuid)
    const idsOf = async (query: ListQuery) => uuids((await pages(query)).map(({ call }) => call))

    test('[SRV2] newest first, ties by call_uuid, in pages of any size', async () => {
      for (const limit of [1, 2, 5, 12, 100]) expect(await idsOf({ ...all, limit })).toEqual(uuids(newest(calls)))
      expect((await store().list({ ...all, limit: 12 })).next).toBeUndefined()
      expect(await idsOf({ ...all, product: 'elsewhere' })).toEqual([])
    })

    test('[SRV2] whole calls, and who brought each into its status', async () => {
      for (const { call, by } of await pages(all)) {
        const stored = there(calls.find(({ callUuid }) => callUuid === call.callUuid))
        expect(call).toStrictEqual(stored)
        const author = stored.status === 'accepted' ? stored.callee : stored.caller
        const { userId, role } = author
        expect(by).toEqual(uuids(calls)[3] === call.callUuid ? null : { userId, role })
        expect(await store().seen(call)).toEqual({ call, by })
      }
      expect(await store().seen({ product: ann.product, callUuid: crypto.randomUUID() })).toBeUndefined()
      expect(await store().seen({ product: 'elsewhere', callUuid: there(calls[0]).callUuid })).toBeUndefined()
    })

    test('[SRV2] of a participant, on both sides; of a status; since an instant', async () => {
      const withAnn = newest(calls.filter(({ caller, callee }) => caller.userId === 'ann' || callee.userId === 'ann'))
      const cases: [Partial<ListQuery>, readonly Call[]][] = [
        [{ participant: ann }, withAnn],
        [{ participant: { ...ann, role: 'doctor' } }, []],
        [{ statuses: ['ringing'] }, newest(calls.filter(({ status }) => status === 'ringing'))],
        [{ statuses: ['ended'] }, newest(calls.filter(({ status }) => status === 'ended'))],
        [{ statuses: ['busy'] }, []],
        [{ statuses: ['ringing', 'accepted'] }, newest(calls.filter(({ status }) => status !== 'ended'))],
        [{ participant: ann, statuses: ['ringing'] }, withAnn.filter(({ status }) => status === 'ringing')],
        [{ since: 1_003_000 }, newest(calls.filter(({ startedAt }) => startedAt >= 1_003_000))],
        [
          { since: 1_003_000, participant: ann, statuses: ['ended'] },
          withAnn.filter(({ startedAt, status }) => startedAt >= 1_003_000 && status === 'ended'),
        ],
        [{ since: 1_000_000_000 }, []],
      ]
      for (const [wish, expected] of cases)
        for (const limit of [1, 3, 100])
          expect([wish, limit, await idsOf({ ...all, ...wish, limit })]).toEqual([wish, limit, uuids(expected)])
    })

    test('[SRV2] why a backend ended a call stays with the event', async () => {
      const call = ringing(participant('noted'), bob)
      const step = created(call)
      const noted = { ...step, event: { ...step.event, note: 'why "so"' } }
      await store().transition(call, () => ({ steps: [noted] }))
      expect(await store().stepsAfter(call, 0)).toEqual([noted])
    })

    test('[SRV2] a rare status is found over pages that look at so many calls each', async () => {
      const product = 'crowded'
      const caller = { ...ann, product }
      const make = (n: number, status: 'ringing' | 'ended') => {
        const call = ringing(caller, { ...bob, product }, { startedAt: 2_000_000 + n })
        const step = status === 'ended' ? ended({ ...call, version: 0 }) : created(call)
        return store().transition(call, () => ({ steps: [step] }))
      }
      const count = mostLookedAt + 3
      const batch = 200
      for (let n = 0; n < count; n += batch) {
        const some = Array.from({ length: Math.min(batch, count - n) }, (_, i) => n + i)
        await Promise.all(some.map((each) => make(each, each === 1 ? 'ringing' : 'ended')))
      }
      for (const participant of [undefined, caller]) {
        const query: ListQuery = { ...all, product, participant, statuses: ['ringing', 'busy'], limit: 2 }
        const first = await store().list(query)
        expect([first.calls.length, first.next?.startedAt]).toEqual([0, 2_000_003])
        const second = await store().list({ ...query, after: first.next })
        expect(second.calls.map(({ call }) => call.startedAt)).toEqual([2_000_001])
        expect(second.next).toBeUndefined()
      }
    }, 240_000)
  })
}
