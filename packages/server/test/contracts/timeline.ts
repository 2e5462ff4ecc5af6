import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import { mostEntries, type TimelineRow } from '../../src/call/observed.ts'
import { accepted, created, ended, participant, ringing } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import type { TimelineStore } from '../../src/ports/timeline.ts'

export interface TimelineHarness {
  readonly calls: CallStore
  readonly timeline: TimelineStore
  /** The same data, as another process reads it. */
  readonly other: TimelineStore
  /** Removes the calls that ended before an instant. */
  prune(before: number): Promise<number>
  close(): Promise<void>
}

/** What every adapter of TimelineStore guarantees. */
export function registerTimelineContract(name: string, open: () => Promise<TimelineHarness>): void {
  describe(`${name}: TimelineStore`, () => {
    let harness: TimelineHarness
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    const entry = (fields: Partial<TimelineRow> = {}): TimelineRow => ({
      product: 'clinic',
      callUuid: crypto.randomUUID(),
      id: 'a1',
      at: 1_000,
      what: 'rung',
      side: 'callee',
      sessionId: 's 😀',
      deviceId: "o'hara's",
      detail: { n: 1, text: 'ä "quoted" \\', nothing: null },
      ...fields,
    })
    /** Of a call that is there. */
    const entryOfCall = async (fields: Partial<TimelineRow> = {}, caller = participant(crypto.randomUUID())) => {
      const call = ringing(caller, participant(crypto.randomUUID()))
      await harness.calls.transition(call, () => ({ steps: [created(call)] }))
      return entry({ ...fields, callUuid: call.callUuid })
    }
    const idsOf = async (row: TimelineRow) => (await harness.timeline.of(row)).map(({ id }) => id)

    test('[TRACE1] entries read back as they were added, the earliest first, by any process', async () => {
      const ann = participant(`ann ${crypto.randomUUID()}`)
      const first = await entryOfCall({ at: 1, id: 'b' }, ann)
      const { callUuid } = first
      const bare: TimelineRow = {
        ...{ product: 'clinic', callUuid, id: 'a', at: 2, what: 'webhook', side: null },
        detail: {},
      }
      const refused = entry({
        ...{ callUuid, id: 'c', at: 2, what: 'refused', side: 'caller' },
        asker: { role: ann.role, userId: ann.userId },
      })
      await harness.timeline.add([refused, bare, first])
      expect(await harness.timeline.of(first)).toEqual([first, bare, refused])
      expect(await harness.other.of(first)).toEqual([first, bare, refused])
      expect(await harness.timeline.of({ product: 'shop', callUuid })).toEqual([])
      await harness.timeline.add([])
    })

    test('[TRACE1] what is added again is there once, as it was added last', async () => {
      const row = await entryOfCall()
      await harness.timeline.add([row])
      const again = { ...row, detail: { n: 2 } }
      await harness.timeline.add([again, entry({ callUuid: row.callUuid, id: 'a2' })])
      expect((await harness.timeline.of(row)).map(({ id, detail }) => [id, detail.n])).toEqual([
        ['a1', 2],
        ['a2', 1],
      ])
    })

    test('[TRACE1] of a call there are never more than its bound, and what is there can be replaced', async () => {
      const row = await entryOfCall()
      const name = (n: number) => String(n).padStart(4, '0')
      const many = Array.from({ length: mostEntries + 20 }, (_, n) => ({ ...row, id: name(n), at: n }))
      await harness.timeline.add(many.slice(0, 300))
      await harness.timeline.add(many.slice(300))
      await harness.timeline.add([{ ...row, id: 'one more', at: 0 }])
      const other = await entryOfCall()
      await harness.timeline.add([{ ...row, id: name(3), at: 3, detail: { n: 'again' } }, other])
      const stored = await harness.timeline.of(row)
      expect(stored.map(({ id }) => id)).toEqual(many.slice(0, mostEntries).map(({ id }) => id))
      expect(stored[3]?.detail).toEqual({ n: 'again' })
      expect(await idsOf(other)).toEqual(['a1'])
    })

    const refused = ({ role, userId }: Participant) =>
      entry({ id: 'r', what: 'refused', side: 'caller', asker: { role, userId } })
    const addCall = async (caller: Participant, callee: Participant, endedAt?: number) => {
      const call = ringing(caller, callee)
      await harness.calls.transition(call, () => ({ steps: [created(call)] }))
      if (endedAt !== undefined) await harness.calls.transition(call, () => ({ steps: [ended(call, endedAt)] }))
      const { callUuid } = call
      await harness.timeline.add([
        entry({ callUuid, id: 'caller', side: 'caller' }),
        entry({ callUuid, id: 'callee', side: 'callee' }),
        entry({ callUuid, id: 'none', side: null }),
      ])
      return entry({ callUuid })
    }

    test('[TRACE1] a timeline goes with its call, and no other', async () => {
      const [ann, ben] = [participant(crypto.randomUUID()), participant(crypto.randomUUID(), 'doctor')]
      const [old, young] = [await addCall(ann, ben, 1_000_500), await addCall(ann, ben, 1_002_000)]
      expect(await harness.prune(1_001_000)).toBe(1)
      expect([await idsOf(old), (await idsOf(young)).length]).toEqual([[], 3])
      // A webhook of it may be sent again later.
      const late = { what: 'webhook', side: null } as const
      await harness.timeline.add([
        entry({ callUuid: old.callUuid, ...late }),
        entry({ callUuid: young.callUuid, ...late }),
      ])
      expect([await idsOf(old), (await idsOf(young)).length]).toEqual([[], 4])
    })

    test('[SRV2] [TRACE1] what is of a participant is forgotten in all calls, and what others left stays', async () => {
      const [ann, ben, eve] = ['ann', 'ben', 'eve'].map((who) => participant(`${who} ${crypto.randomUUID()}`))
      if (ann === undefined || ben === undefined || eve === undefined) throw new Error('Nobody is there.')
      const [out, back, others] = [await addCall(ann, ben), await addCall(ben, ann), await addCall(ben, eve)]
      const [hers, his] = [refused(ann), refused(ben)]
      // It named a call of theirs.
      const named = { ...refused(ben), callUuid: out.callUuid }
      await harness.timeline.add([hers, his, named])
      expect(await harness.timeline.forgetParticipant({ ...ann, role: 'nurse' })).toBe(0)
      expect(await harness.timeline.forgetParticipant(ann)).toBe(3)
      expect(await Promise.all([out, back, others, hers, his].map(idsOf))).toEqual([
        ['callee', 'none', 'r'],
        ['caller', 'none'],
        ['callee', 'caller', 'none'],
        [],
        ['r'],
      ])
      expect(await harness.timeline.forgetParticipant(ann)).toBe(0)
    })

    test('[UUID1] an invite that was refused, and named a call: of its two sides it is written, of nobody else', async () => {
      const [ann, ben, eve] = ['ann', 'ben', 'eve'].map((who) => participant(`${who} ${crypto.randomUUID()}`)) as [
        Participant,
        Participant,
        Participant,
      ]
      const { callUuid } = await addCall(ann, ben)
      const askers = [ann, ben, eve, { ...ann, role: 'nurse' }, { ...ben, role: 'nurse' }]
      const rows = askers.map((asker, n) => ({ ...refused(asker), callUuid, id: `${n}` }))
      await harness.timeline.add([...rows, { ...refused(eve), id: 'r' }])
      expect((await idsOf(entry({ callUuid }))).filter((id) => /\d/.test(id))).toEqual(['0', '1'])
      expect(await harness.timeline.refusedOf(eve, 10)).toHaveLength(1)
    })

    test('[GROUP1] what was seen of a member is stored once it has answered, and of no other member', async () => {
      const [ann, ben, eve] = ['ann', 'ben', 'eve'].map((who) => `${who} ${crypto.randomUUID()}`) as [
        string,
        string,
        string,
      ]
      const group = { name: 'all', members: [ben, eve], declined: [] }
      const call = ringing(participant(ann), participant('', 'doctor'), { group })
      await harness.calls.transition(call, () => ({ steps: [created(call)] }))
      const row = (id: string, fields: Partial<TimelineRow>) => entry({ callUuid: call.callUuid, id, ...fields })
      const rows = [
        row('of ben', { member: ben }),
        row('of eve', { member: eve }),
        row('of the caller', { side: 'caller' }),
        row('of neither', { side: null }),
      ]
      await harness.timeline.add(rows)
      expect((await idsOf(rows[0] as TimelineRow)).sort()).toEqual(['of neither', 'of the caller'])
      const { call: answered } = accepted({ ...call, callee: { ...call.callee, userId: ben } })
      await harness.calls.transition(call, () => ({ steps: [{ ...accepted(call), call: answered }] }))
      await harness.timeline.add(rows)
      const stored = await harness.timeline.of(call)
      expect(stored.map(({ id }) => id).sort()).toEqual(['of ben', 'of neither', 'of the caller'])
      // Only the call says who that is.
      const { member: _, ...expected } = rows[0] as TimelineRow
      expect(stored.find(({ id }) => id === 'of ben')).toEqual(expected)
    })

    test('[TRACE1] what is replaced takes no room of what is new', async () => {
      const row = await entryOfCall()
      const many = Array.from({ length: mostEntries }, (_, n) => ({ ...row, id: String(n).padStart(4, '0'), at: n }))
      await harness.timeline.add(many.slice(0, -10))
      const again = many.slice(0, 20).map((one) => ({ ...one, detail: { n: 2 } }))
      await harness.timeline.add([...again, ...many.slice(-10)])
      const stored = await harness.timeline.of(row)
      expect(stored.map(({ id }) => id)).toEqual(many.map(({ id }) => id))
      expect(stored.filter(({ detail }) => detail.n === 2)).toHaveLength(again.length)
    })

    test('[TRACE1] invites that were refused long ago are removed, and nothing else', async () => {
      const asker = participant(crypto.randomUUID())
      const at = Date.UTC(1999, 0, 1)
      const [old, young] = [entry({ at, asker }), entry({ at: at + 1, asker })]
      // Of a call that is kept, too.
      const plain = await entryOfCall({ at, id: 'a2' }, asker)
      const named = { ...old, id: 'a3', callUuid: plain.callUuid }
      await harness.timeline.add([old, young, plain, named])
      expect(await idsOf(plain)).toEqual(['a2', 'a3'])
      let removed = 0
      for (let count = -1; count !== 0; removed += count) count = await harness.timeline.pruneRefused(at + 1)
      expect(removed).toBeGreaterThan(0)
      expect(await Promise.all([old, young, plain].map(idsOf))).toEqual([[], ['a1'], ['a2']])
    })
  })
}
