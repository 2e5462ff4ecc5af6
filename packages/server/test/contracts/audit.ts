import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type AuditEntry, type AuditStore, auditIdAt, newAuditId, timeOfAudit } from '../../src/ports/audit.ts'

export interface AuditHarness {
  readonly audit: AuditStore
  /** The same log, as another process has it. */
  readonly other: AuditStore
  close(): Promise<void>
}

/** What every audit log guarantees [ADM3]. */
export function registerAuditContract(name: string, open: () => Promise<AuditHarness>): void {
  describe(`AuditStore: ${name}`, () => {
    let harness: AuditHarness
    beforeAll(async () => {
      harness = await open()
    }, 60_000)
    afterAll(() => harness.close())
    let last = 0
    const newProduct = () => `audit-${++last}`
    const entry = (at: number, change: Partial<AuditEntry> = {}): AuditEntry => ({
      ...{ id: newAuditId(at), actor: { kind: 'operator', name: 'Olga 😀 "\\' }, action: 'call.end' },
      ...{ product: 'shop', participant: null, subject: "o'hara", detail: { n: 1, list: ['ä'] }, ...change },
    })
    const list = (product: string | undefined, limit = 100, before?: string) =>
      harness.other.list({ product, limit, before })

    test('[ADM3] an entry reads back whole, in another process, once', async () => {
      const product = newProduct()
      const one = entry(1_000, { product, participant: { role: 'customer', userId: 'ann' } })
      await harness.audit.add(one)
      await harness.audit.add(one)
      expect(await list(product)).toEqual([one])
      expect(timeOfAudit(one)).toBe(1_000)
      const bare = entry(2_000, { product, actor: { kind: 'cli', name: '' }, subject: '', detail: {} })
      await harness.other.add(bare)
      expect(await list(product)).toEqual([bare, one])
    })

    test('[ADM3] newest first, page after page; of a product, or of all and none', async () => {
      const [product, another] = [newProduct(), newProduct()]
      const at = 10_000_000
      const own = [1, 2, 3, 4, 5].map((n) => entry(at + n, { product }))
      const others = [entry(at + 6, { product: another }), entry(at + 7, { product: '' })]
      for (const one of [...own, ...others].toReversed()) await harness.audit.add(one)
      expect(await list(product)).toEqual(own.toReversed())
      const first = await list(product, 2)
      expect(first).toEqual(own.toReversed().slice(0, 2))
      expect(await list(product, 2, first.at(-1)?.id)).toEqual(own.toReversed().slice(2, 4))
      const all = (await list(undefined, 1_000)).filter(({ id }) => id >= auditIdAt(at))
      expect(all).toEqual([...own, ...others].toReversed())
    })

    test('[ADM3] [SRV2] what is about somebody is found, and loses the name', async () => {
      const product = newProduct()
      const ann = { product, role: 'customer', userId: 'ann' }
      const about = (userId: string, at: number, change: Partial<AuditEntry> = {}) =>
        entry(at, { product, participant: { role: 'customer', userId }, ...change })
      const own = [about('ann', 1), about('ann', 2)]
      const ofOthers = [
        about('ben', 3),
        about('ann', 4, { participant: { role: 'agent', userId: 'ann' } }),
        about('ann', 5, { product: 'elsewhere' }),
        about('', 6),
      ]
      for (const one of [...own, ...ofOthers]) await harness.audit.add(one)
      expect(await harness.other.about(ann, { before: undefined, limit: 10 })).toEqual(own.toReversed())
      expect(await harness.other.about(ann, { before: own[1]?.id, limit: 10 })).toEqual(own.slice(0, 1))
      expect(await harness.audit.forget(ann)).toBe(2)
      expect(await harness.audit.forget(ann)).toBe(0)
      expect(await harness.audit.forget({ ...ann, userId: '' })).toBe(0)
      expect(await harness.other.about(ann, { before: undefined, limit: 10 })).toEqual([])
      expect((await list(product)).map(({ participant }) => participant?.userId)).toEqual(['', 'ann', 'ben', '', ''])
    })

    test('[ADM3] what is old enough goes in steps, and nothing else', async () => {
      const product = newProduct()
      const old = Array.from({ length: 620 }, () => entry(5, { product }))
      const young = entry(100_000, { product })
      for (const one of [...old, young]) await harness.audit.add(one)
      let removed = 0
      for (let count = -1; count !== 0; removed += count) {
        count = await harness.other.prune(auditIdAt(6))
        expect(count).toBeLessThanOrEqual(500)
      }
      expect(removed).toBeGreaterThanOrEqual(620)
      expect(await list(product, 1_000)).toEqual([young])
    })
  })
}
