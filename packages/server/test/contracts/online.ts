import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import { participant } from '../../src/ports/call-store.fixture.ts'
import type { OnlineStore } from '../../src/ports/online.ts'
import type { WebhookStore } from '../../src/ports/webhooks.ts'
import { attempted, endpoint } from './webhooks.ts'

export interface OnlineHarness {
  readonly online: OnlineStore
  /** The same data, as another process writes it. */
  readonly other: OnlineStore
  readonly webhooks: readonly WebhookStore[]
  close(): Promise<void>
}

/** What every adapter of OnlineStore guarantees. */
export function registerOnlineContract(name: string, open: () => Promise<OnlineHarness>): void {
  describe(`${name}: OnlineStore`, () => {
    let harness: OnlineHarness
    const hook = endpoint({ events: ['participant.online', 'participant.offline'] })
    const deaf = endpoint({ events: null })
    beforeAll(async () => {
      harness = await open()
      const [store] = harness.webhooks
      for (const each of [hook, deaf, endpoint({ ...hook, id: 'elsewhere', product: 'another' })])
        await store?.addEndpoint(each)
      for (const each of harness.webhooks) await each.refresh()
    })
    afterAll(() => harness.close())
    beforeEach(async () => {
      for (const node of ['a', 'b'])
        for (const participant of await harness.online.of(node))
          await harness.online.write(node, [{ participant, comes: false }], 1)
      await told()
    })

    const someone = () => participant(`ann ${crypto.randomUUID()} "ü`)
    const comes = (node: string, participant: Participant, store = harness.online, comes = true) =>
      store.write(node, [{ participant, comes }], 1_000)
    const goes = (node: string, participant: Participant, store = harness.online) =>
      comes(node, participant, store, false)

    /** The events for endpoints since the last call of this, in order. */
    async function told(): Promise<[type: string, userId: string][]> {
      const [store] = harness.webhooks
      const all: [string, string][] = []
      for (;;) {
        const claimed = (await store?.claim(new Map([hook, deaf].map(({ id }) => [id, 100]))))?.claimed ?? []
        if (claimed.length === 0) return all
        for (const { type, body, endpointId } of claimed) {
          expect(endpointId).toBe(hook.id)
          all.push([type, JSON.parse(body).data.user_id])
        }
        await store?.settle(claimed.map(({ id }) => attempted(id)))
      }
    }

    test('[HOOK2] the first node of somebody and the last one are told, each once, and in order', async () => {
      const ann = someone()
      await comes('a', ann)
      await comes('a', ann)
      await comes('b', ann, harness.other)
      expect(await harness.online.nodes()).toEqual(
        new Map([
          ['a', 1],
          ['b', 1],
        ]),
      )
      await goes('a', ann)
      await goes('a', ann)
      expect(await harness.online.nodes()).toEqual(new Map([['b', 1]]))
      await goes('b', ann, harness.other)
      await comes('a', ann)
      const first = (await harness.webhooks[0]?.claim(new Map([[hook.id, 100]])))?.claimed ?? []
      // Later ones wait for it.
      expect(first.map(({ type }) => type)).toEqual(['participant.online'])
      await harness.webhooks[0]?.settle(first.map(({ id }) => attempted(id)))
      expect(await told()).toEqual([
        ['participant.offline', ann.userId],
        ['participant.online', ann.userId],
      ])
    })

    test('[HOOK2] another role is somebody else, and of a product without an endpoint nobody is told', async () => {
      const ann = someone()
      await comes('a', ann)
      for (const other of [
        { ...ann, role: 'nurse' },
        { ...ann, product: 'clinic b' },
      ]) {
        await comes('a', other)
        await goes('a', other)
      }
      expect((await told()).map(([type]) => type)).toEqual([
        'participant.online',
        'participant.online',
        'participant.offline',
      ])
      expect(await harness.online.of('a')).toEqual([ann])
    })

    test('[HOOK2] of nodes that write at the same moment the last word is true, whoever comes first', async () => {
      const people = Array.from({ length: 20 }, someone)
      const all = (comes: boolean) => people.map((participant) => ({ participant, comes }))
      await harness.online.write('a', all(true), 1)
      await told()
      // One leaves while the other comes, in the opposite order.
      const coming = harness.other.write('b', all(true).reverse(), 2)
      await Promise.all([coming, harness.online.write('a', all(false), 2)])
      expect(await harness.online.nodes()).toEqual(new Map([['b', 20]]))
      const last = new Map((await told()).map(([type, userId]) => [userId, type]))
      expect([...last.values()].filter((type) => type !== 'participant.online')).toEqual([])
      // Both drop the rows of a third one that died.
      await Promise.all([harness.online, harness.other].map((store) => store.write('b', all(false), 3)))
      const offline = await told()
      expect(offline.map(([type]) => type)).toEqual(people.map(() => 'participant.offline'))
      expect(new Set(offline.map(([, userId]) => userId)).size).toBe(20)
    })

    test('[SRV2] who is erased is on no node, is told of to nobody, and what is kept does not name him', async () => {
      const [ann, ben] = [someone(), someone()]
      await comes('a', ann)
      await comes('a', ben)
      await harness.online.erase(ann)
      expect(await harness.online.of('a')).toEqual([ben])
      await goes('a', ann)
      expect(await harness.webhooks[0]?.erase(ann)).toBe(1)
      expect(await told()).toEqual(
        expect.arrayContaining([
          ['participant.online', ''],
          ['participant.online', ben.userId],
        ]),
      )
    })
  })
}
