import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Call, participantOf } from '../../src/call/call.ts'
import { type CallStoreHarness, created, participant, ringing } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
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
