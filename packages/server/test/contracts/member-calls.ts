import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Call, Participant, RingingCall } from '../../src/call/call.ts'
import type { CallCommand } from '../../src/call/command.ts'
import { decide } from '../../src/call/decide.ts'
import type { CallStoreHarness } from '../../src/ports/call-store.fixture.ts'
import { accepted, created, ended, participant, ringing } from '../../src/ports/call-store.fixture.ts'
import type { ListQuery, Position } from '../../src/ports/call-store.ts'

const durations = { callerLostMs: 60_000, peerLostMs: 60_000, maxDurationMs: 3_600_000 }

/** What every adapter guarantees of calls to groups in lists of their members [GROUP1, HIST1]. */
export function registerMemberCallsContract(name: string, open: () => Promise<CallStoreHarness>): void {
  describe(`${name}: calls of members`, () => {
    let harness: CallStoreHarness
    const store = () => harness.store()
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    const member = (userId: string) => participant(userId, 'doctor')
    const noDoctor = participant('', 'doctor')
    let startedAt = 3_000_000
    /** A call that rings at members, who were nobody before. */
    async function rings(caller: Participant, members: readonly string[]): Promise<RingingCall> {
      startedAt += 1_000
      const group = { name: 'support', members, declined: [] }
      const call = ringing(caller, noDoctor, { startedAt, ringExpiresAt: startedAt + 45_000, group })
      await store().transition(call, () => ({ steps: [created(call)] }))
      return call
    }
    const run = (call: Call, command: CallCommand, now = startedAt + 5_000) =>
      store().transition(call, (known) => decide(known, command, now, durations))
    const actorOf = (userId: string) => ({
      ...{ sessionId: `s-${userId}`, deviceId: null, node: 'node-1', displayName: userId, participant: member(userId) },
    })
    const decline = (call: Call, userId: string) =>
      run(call, { type: 'reject', actor: actorOf(userId), reason: null, rung: [] })
    const miss = (call: RingingCall) => run(call, { type: 'time' }, call.ringExpiresAt)

    async function historyOf(of: Participant, limit = 100): Promise<Call[]> {
      const found: Call[] = []
      for (let after: Position | undefined, isMore = true; isMore; after = found.at(-1)) {
        const page = await store().history({ participant: of, limit, after })
        found.push(...page.calls)
        isMore = page.more
      }
      return found
    }
    async function listOf(of: Participant, limit = 100, statuses?: ListQuery['statuses']): Promise<Call[]> {
      const found: Call[] = []
      for (let after: Position | undefined, isLast = false; !isLast; isLast = after === undefined) {
        const query = { product: of.product, participant: of, statuses, since: 0, limit, after }
        const page = await store().list(query)
        found.push(...page.calls.map(({ call }) => call))
        after = page.next
      }
      return found
    }
    const uuids = (calls: readonly Call[]) => calls.map(({ callUuid }) => callUuid)
    const names = () => ['ann', 'ben', 'eve'].map((who) => `${who}-${crypto.randomUUID()}`) as [string, string, string]

    test('[GROUP1] [HIST1] a call that nobody answered is in the lists of its members, but not of those who declined or left', async () => {
      const [ann, ben, eve] = names()
      const call = await rings(participant(crypto.randomUUID()), [ann, ben, eve])
      for (const who of [ann, ben, eve]) expect(uuids(await historyOf(member(who)))).toEqual([call.callUuid])
      await decline(call, ben)
      await run(call, { type: 'leave', userIds: [eve] })
      await miss(call)
      for (const read of [historyOf, listOf]) {
        expect((await read(member(ann))).map(({ callUuid, status }) => [callUuid, status])).toEqual([
          [call.callUuid, 'missed'],
        ])
        for (const who of [ben, eve]) expect(await read(member(who))).toEqual([])
        expect(await read({ ...member(ann), role: 'patient' })).toEqual([])
        expect(await read({ ...member(ann), product: 'elsewhere' })).toEqual([])
      }
      expect(await listOf(member(ann), 10, ['ended'])).toEqual([])
      expect(await listOf(member(ann), 10, ['missed'])).toHaveLength(1)
    })

    test('[GROUP1] [HIST1] from the answer on a call is only in the lists of its caller and of the member who answered', async () => {
      const [ann, ben] = names()
      const caller = participant(crypto.randomUUID())
      const call = await rings(caller, [ann, ben])
      await run(call, { type: 'accept', actor: actorOf(ann) })
      const listed = async () => [await historyOf(member(ann)), await historyOf(member(ben)), await historyOf(caller)]
      expect((await listed()).map(uuids)).toEqual([[call.callUuid], [], [call.callUuid]])
      await run(call, { type: 'stop', note: null })
      expect((await listed()).map(uuids)).toEqual([[call.callUuid], [], [call.callUuid]])
    })

    test('[GROUP1] [HIST1] calls of all three kinds are merged, in pages of any size', async () => {
      const [ann, ben] = names()
      const mine: string[] = []
      for (let n = 0; n < 12; n++) {
        const other = participant(crypto.randomUUID())
        if (n % 3 === 0) {
          const call = await rings(other, [ben, ann])
          await miss(call)
          mine.unshift(call.callUuid)
          // Not the others' calls of the same time.
          await miss(await rings(other, [ben]))
          await decline(await rings(other, [ann, ben]), ann)
          continue
        }
        startedAt += 1_000
        const [caller, callee] = n % 3 === 1 ? [other, member(ann)] : [member(ann), other]
        const call = ringing(caller, callee, { startedAt })
        await store().transition(call, () => ({ steps: [created(call)] }))
        const { call: answered } = accepted(call)
        await store().transition(call, () => ({ steps: [{ ...accepted(call), call: answered }] }))
        await store().transition(call, () => ({ steps: [ended(answered as RingingCall)] }))
        mine.unshift(call.callUuid)
      }
      for (const limit of [1, 2, 5, 12, 100])
        for (const read of [historyOf, listOf])
          expect([limit, uuids(await read(member(ann), limit))]).toEqual([limit, mine])
      expect(uuids(await listOf(member(ann), 1, ['missed']))).toEqual(mine.filter((_, n) => n % 3 === 2))
    })
  })
}
