import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Call, type LiveCall, type Participant, participantOf, type RingingCall } from '../../src/call/call.ts'
import {
  accepted,
  type CallStoreHarness,
  created,
  ended,
  event,
  participant,
  ringing,
} from '../../src/ports/call-store.fixture.ts'
import { type CallStore, mostLastCalls } from '../../src/ports/call-store.ts'
import { StoreError } from '../../src/ports/store-error.ts'

/** A call is in its caller's history, as it was written [HIST1]. */
export async function checkHistory(store: CallStore, call: Call): Promise<void> {
  const page = await store.history({ participant: participantOf(call, 'caller'), limit: 100, after: undefined })
  expect(page.calls.find((it) => it.callUuid === call.callUuid)).toStrictEqual(call)
}

/** What every adapter of CallStore guarantees of what people read of their calls, and of the store as a whole. */
export function registerCallRecordsContract(name: string, open: () => Promise<CallStoreHarness>): void {
  describe(`${name}: CallStore, its records`, () => {
    let harness: CallStoreHarness
    const store = () => harness.store()
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    async function add(call: Call): Promise<Call> {
      await store().transition(call, () => ({ steps: [created(call)] }))
      return call
    }

    test('[HIST1] history is newest first, ties by call_uuid, in both directions, in pages', async () => {
      const me = participant(crypto.randomUUID())
      const calls: Call[] = []
      for (let index = 0; index < 23; index++) {
        const other = participant(`other-${index}`, 'doctor')
        const startedAt = 1000 + Math.floor(index / 4)
        calls.push(await add(index % 3 === 0 ? ringing(other, me, { startedAt }) : ringing(me, other, { startedAt })))
      }
      await add(ringing({ ...me, role: 'doctor' }, participant('someone')))
      await add(ringing({ ...me, product: 'another' }, { ...participant('someone'), product: 'another' }))
      const expected = [...calls].sort((x, y) => y.startedAt - x.startedAt || (x.callUuid < y.callUuid ? 1 : -1))
      for (const limit of [1, 5, 22, 23, 100]) {
        const read: Call[] = []
        for (let more = true; more; ) {
          const last = read.at(-1)
          const page = await store().history({ participant: me, limit, after: last })
          expect(page.calls.length).toBeLessThanOrEqual(limit)
          read.push(...page.calls)
          more = page.more
        }
        expect(read).toStrictEqual(expected)
      }
    })

    test('[GROUP1] when the last call ended that somebody answered, of many at once', async () => {
      const [busy, idle, missed, caller] = ['busy', 'idle', 'missed', 'caller'].map((name) =>
        participant(`${name} ${crypto.randomUUID()}`, 'doctor'),
      ) as [Participant, Participant, Participant, Participant]
      const answer = async (callee: Participant, startedAt: number, at?: number) => {
        const call = await add(ringing(caller, callee, { startedAt }))
        const steps = [accepted(call as RingingCall)]
        if (at !== undefined) steps.push(ended(steps[0]?.call as LiveCall, at))
        for (const step of steps) await store().transition(call, () => ({ steps: [step] }))
      }
      await answer(busy, 1_000, 30_000)
      await answer(busy, 2_000, 20_000)
      await answer(busy, 3_000)
      await answer(idle, 1_000, 5_000)
      for (let n = 0; n < mostLastCalls - 1; n++) {
        const call = await add(ringing(caller, idle, { startedAt: 2_000 + n }))
        await store().transition(call, () => ({ steps: [ended(call as LiveCall, 9_000)] }))
      }
      await add(ringing(caller, missed))
      const others = [
        { ...busy, role: 'nurse' },
        { ...busy, product: 'another' },
      ]
      const all = [
        missed,
        busy,
        caller,
        idle,
        ...others,
        ...Array.from({ length: 494 }, (_, n) => participant(`n${n}`)),
      ]
      const nobody = Array.from({ length: 496 }, () => null)
      expect(await store().lastAnswered(all)).toEqual([null, 30_000, null, 5_000, ...nobody])
      expect(await store().lastAnswered([])).toEqual([])
    })

    test('[GROUP1] a call that rings in turn is one of the member whose turn it is', async () => {
      const [ann, ben] = [crypto.randomUUID(), crypto.randomUUID()].map((id) => participant(id, 'doctor')) as [
        Participant,
        Participant,
      ]
      const rest = { until: 1_000, memberRingMs: 5_000, next: 0, count: 0, hasRung: false, rang: [] }
      const turn = (member: string | null) => ({ member, ...rest })
      const group = { name: 'all', members: [ann.userId, ben.userId], declined: [] }
      let call = ringing(undefined, { ...ann, userId: '' }, { group: { ...group, turns: turn(null) } })
      await add(call)
      for (const member of [null, ann.userId, ben.userId, null]) {
        const next = { ...call, version: call.version + 1, group: { ...group, turns: turn(member) } }
        await store().transition(call, () => ({ steps: [{ call: next, event: event('turn') }] }))
        call = next
        for (const one of [ann, ben])
          expect(await store().liveCallsOf(one)).toStrictEqual(one.userId === member ? [call] : [])
      }
    })

    test('history of nobody is empty', async () => {
      const page = await store().history({ participant: participant('nobody'), limit: 30, after: undefined })
      expect(page).toEqual({ calls: [], more: false })
    })

    test('ping resolves', async () => {
      await store().tryWrite()
    })

    test('a closed store rejects with a StoreError', async () => {
      const own = await open()
      const call = ringing()
      const closed = own.store()
      await closed.close()
      const late = (async () => closed.transition(call, () => ({ steps: [created(call)] })))()
      expect(await late.catch((error: unknown) => error)).toBeInstanceOf(StoreError)
      expect(await closed.tryWrite().catch((error: unknown) => error)).toBeInstanceOf(StoreError)
      await own.close()
    })
  })
}
