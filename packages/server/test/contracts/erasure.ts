import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import type { Actor, CallCommand } from '../../src/call/command.ts'
import { actorOf, durations, inviteCommand } from '../../src/call/decide.fixture.ts'
import { decide } from '../../src/call/decide.ts'
import { decideInvite } from '../../src/call/invite.ts'
import type { TimelineRow } from '../../src/call/observed.ts'
import { decideTransfer } from '../../src/call/transfer.ts'
import { createErasing } from '../../src/participants/erasing.ts'
import type { Erasures } from '../../src/participants/erasures.port.ts'
import { participant, there } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import { participantHash } from '../../src/ports/session-id.ts'
import type { TimelineStore } from '../../src/ports/timeline.ts'
import type { WebhookStore } from '../../src/ports/webhooks.ts'
import { attempted, endpoint } from './webhooks.ts'

const can = ['transfer'] as const
const cancel = (actor: Actor) => ({ type: 'cancel', actor, reason: null }) as const

export interface ErasureHarness {
  readonly calls: CallStore
  readonly webhooks: WebhookStore
  readonly timeline: TimelineStore
  readonly erasures: Erasures
  /** Everything that is stored, as text. */
  dump(): Promise<string>
  close(): Promise<void>
}

/** What every adapter guarantees of an erasure: nothing names the participant, and nobody else loses anything [SRV2]. */
export function registerErasureContract(name: string, open: () => Promise<ErasureHarness>): void {
  describe(`${name}: erasure`, () => {
    let harness: ErasureHarness
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    const someone = (who: string, role?: string): Actor => ({
      ...actorOf(participant(`${who} "${crypto.randomUUID()}" ü\\`, role)),
      deviceId: `phone ${crypto.randomUUID()}`,
    })
    const run = (actor: Actor, callUuid: string, command: CallCommand) => {
      const ref = { product: actor.participant.product, callUuid }
      return harness.calls.transition(ref, (call) => decide(call, command, Date.now(), durations))
    }

    async function ring(caller: Actor, callee: Actor): Promise<string> {
      const callUuid = crypto.randomUUID()
      const command = {
        ...inviteCommand(caller, callee.participant, callUuid),
        metadata: { about: `${caller.displayName} and ${callee.displayName}` },
      }
      await harness.calls.invite(caller.participant, callee.participant, callUuid, (situation) =>
        decideInvite(situation, command, Date.now()),
      )
      return callUuid
    }

    async function answered(caller: Actor, callee: Actor): Promise<string> {
      const callUuid = await ring(caller, callee)
      await run(callee, callUuid, { type: 'accept', actor: callee })
      await run(callee, callUuid, { type: 'connected', actor: callee })
      return callUuid
    }

    /** Answered, taken to another device, and ended by its backend. */
    async function whole(caller: Actor, callee: Actor): Promise<string> {
      const callUuid = await answered(caller, callee)
      await run(caller, callUuid, { type: 'lose', sessionId: caller.sessionId, node: caller.node })
      const tablet = { ...caller, sessionId: crypto.randomUUID(), deviceId: `tablet of ${caller.displayName}` }
      await run(caller, callUuid, { type: 'relay', actor: tablet })
      await run(caller, callUuid, { type: 'stop', note: `${callee.displayName} asked` })
      return callUuid
    }

    const seen = async (callUuid: string) =>
      there(await harness.calls.seen({ product: participant('').product, callUuid }))
    const entry = (callUuid: string, id: string, fields: Partial<TimelineRow> = {}): TimelineRow => ({
      ...{ product: participant('').product, callUuid, id, at: 1_000, what: 'rung', side: null, detail: {} },
      ...fields,
    })
    /** What a dump says of somebody: the rows that hold the name, the id, a device or a session. */
    async function mentions({ participant: { userId }, displayName, deviceId, sessionId }: Actor): Promise<string[]> {
      const [id, ...others] = [userId, displayName, deviceId, sessionId].map((text) =>
        JSON.stringify(text).slice(1, -1),
      )
      // Texts that hold JSON hold it escaped once more.
      const names = [id, JSON.stringify(id).slice(1, -1), ...others].filter((text) => text !== undefined)
      return (await harness.dump()).split('\n').filter((line) => names.some((text) => line.includes(text)))
    }

    /** A call to a group that rings at all of these, at once or in turn. */
    async function ringAll(caller: Actor, callees: readonly Actor[], memberRingMs?: number): Promise<string> {
      const callUuid = crypto.randomUUID()
      const members = callees.map(({ participant }) => participant.userId)
      const command = {
        ...inviteCommand(caller, { ...there(callees[0]).participant, userId: '' }, callUuid),
        group: { name: 'all', members, isBusy: false, ...(memberRingMs !== undefined && { memberRingMs }) },
      }
      await harness.calls.invite(caller.participant, caller.participant, callUuid, (situation) =>
        decideInvite(situation, command, Date.now()),
      )
      return callUuid
    }

    test('[GROUP1] a call that nobody answered is one of the members who were rung in turn, and of no other', async () => {
      const [ann, ben, eve] = [someone('ann'), someone('ben', 'doctor'), someone('eve', 'doctor')]
      const callUuid = await ringAll(ann, [ben, eve], 5_000)
      await run(ann, callUuid, { type: 'turn', member: ben.participant.userId, seen: 1 })
      await run(ann, callUuid, { type: 'cancel', actor: ann, reason: null })
      expect((await seen(callUuid)).call).toMatchObject({ group: { members: [ben.participant.userId] } })
      expect(await harness.calls.erase(eve.participant)).toBe(0)
      expect(await harness.calls.erase(ben.participant)).toBe(1)
      expect((await seen(callUuid)).call.group?.members).toEqual([])
    })

    test('[GROUP1] [SRV2] who declined before its turn, or left with the last ones, is named in the call no more', async () => {
      const [ann, ben, eve, max] = [
        someone('ann'),
        someone('ben', 'doctor'),
        someone('eve', 'doctor'),
        someone('max', 'doctor'),
      ]
      const callUuid = await ringAll(ann, [ben, eve, max], 5_000)
      const members = [ben, eve, max].map(({ participant: { userId } }) => userId)
      await run(ann, callUuid, { type: 'turn', member: there(members[0]), seen: 1 })
      await run(eve, callUuid, { type: 'reject', actor: eve, reason: null, rung: [] })
      await run(ann, callUuid, { type: 'leave', userIds: members })
      expect((await seen(callUuid)).call).toMatchObject({ status: 'rejected', endReason: 'all_declined' })
      for (const { participant } of [ben, eve, max]) {
        const { calls } = await harness.calls.history({ participant, limit: 10, after: undefined })
        expect(calls).toEqual([])
      }
      for (const actor of [ben, eve, max]) {
        expect(await mentions(actor)).not.toEqual([])
        await harness.calls.erase(actor.participant)
        await harness.webhooks.erase(actor.participant)
        expect(await mentions(actor)).toEqual([])
      }
    })

    /** As the service does it: until nothing changes any more. */
    async function forget({ participant: { userId } }: Actor, callUuid: string): Promise<void> {
      const command = { type: 'forget', userId } as const
      for (let isDone = false; !isDone; ) isDone = (await run(someone(''), callUuid, command)).steps.length === 0
    }

    test('[GROUP1] [SRV2] a member is erased while the call goes on: neither the call nor what happened to it names the member', async () => {
      const hook = endpoint({ events: null })
      await harness.webhooks.addEndpoint(hook)
      await harness.webhooks.refresh()
      for (const isAnswered of [false, true]) {
        const [ann, ben, eve] = [someone('ann'), someone('ben', 'doctor'), someone('eve', 'doctor')]
        const [declining, leaving, quiet] = ['dan', 'lea', 'kim'].map((who) => someone(who, 'doctor')) as [
          Actor,
          Actor,
          Actor,
        ]
        const callUuid = await ringAll(ann, [declining, leaving, quiet, ben, eve])
        await run(declining, callUuid, { type: 'reject', actor: declining, reason: null, rung: [] })
        await run(leaving, callUuid, { type: 'leave', userIds: [leaving.participant.userId] })
        if (isAnswered) await run(ben, callUuid, { type: 'accept', actor: ben })
        for (const member of [declining, leaving, quiet]) {
          // As long as the call itself names them, nothing is lost by which they are found.
          expect(await harness.calls.erase(member.participant)).toBe(0)
          await forget(member, callUuid)
          expect(await harness.calls.erase({ ...member.participant, role: 'nurse' })).toBe(0)
          expect(await harness.calls.erase(member.participant)).toBe(1)
          await harness.webhooks.erase(member.participant)
          expect(await mentions(member)).toEqual([])
        }
        const { call } = await seen(callUuid)
        const others = [ben, eve].map(({ participant }) => participant.userId)
        expect(call).toMatchObject({
          status: isAnswered ? 'accepted' : 'ringing',
          group: { members: others, declined: [], left: [] },
        })
        await run(ann, callUuid, isAnswered ? { type: 'end', actor: ann, reason: null } : cancel(ann))
        expect(await harness.calls.erase(quiet.participant)).toBe(0)
        // Of a call that ends soon it is known at whom it rang.
        expect(await harness.calls.erase(eve.participant)).toBe(1)
        await harness.webhooks.erase(eve.participant)
        expect(await mentions(eve)).toEqual([])
        expect(await harness.calls.erase(ben.participant)).toBe(1)
        await harness.webhooks.erase(ben.participant)
        expect(await mentions(ben)).toEqual([])
      }
    })

    test('[SRV2] no row names who is erased, on either side; times, the other side and the others stay', async () => {
      const hook = endpoint({ events: null })
      await harness.webhooks.addEndpoint(hook)
      await harness.webhooks.refresh()
      const [ann, ben, eve] = [someone('ann'), someone('ben', 'doctor'), someone('eve')]
      const calls = [await whole(ann, ben), await whole(ben, ann), await ring(ann, ben)]
      await run(ben, there(calls[2]), { type: 'reject', actor: ben, reason: null, rung: [] })
      const others = await whole(eve, ben)
      const [claimed] = (await harness.webhooks.claim(new Map([[hook.id, 1]]))).claimed
      const echo = attempted(there(claimed).id, { response: `Hello ${ann.displayName}` })
      await harness.webhooks.settle([echo])
      expect(await mentions(ann)).not.toEqual([])
      const before = await Promise.all(calls.map(seen))
      const ofOthers = await seen(others)
      const stepsOfOthers = await harness.calls.stepsAfter(ofOthers.call, 0)

      expect(await harness.calls.erase({ ...ann.participant, role: 'nurse' })).toBe(0)
      expect(await harness.calls.erase(ann.participant)).toBe(3)
      expect(await harness.webhooks.erase({ ...ann.participant, product: 'another' })).toBe(0)
      expect(await harness.webhooks.erase(ann.participant)).toBeGreaterThan(8)
      expect(await mentions(ann)).toEqual([])

      const after = await Promise.all(calls.map(seen))
      const blank = { userId: '', displayName: null }
      for (const [n, { call, by }] of after.entries()) {
        const was = there(before[n])
        const side = n === 1 ? 'callee' : 'caller'
        const { callerPlace: _, calleePlace: __, ...kept } = was.call as typeof was.call & { calleePlace: unknown }
        expect(call).toMatchObject({ ...kept, metadata: null, [side]: { ...was.call[side], ...blank } })
        expect(by).toEqual(was.by)
      }
      expect(await seen(others)).toEqual(ofOthers)
      expect(await harness.calls.stepsAfter(ofOthers.call, 0)).toEqual(stepsOfOthers)
      const found = await harness.calls.history({ participant: ben.participant, limit: 10, after: undefined })
      expect(found.calls.length).toBe(4)
      const none = await harness.calls.history({ participant: ann.participant, limit: 10, after: undefined })
      expect(none.calls).toEqual([])
      expect(await harness.calls.load(there(after[0]).call)).toEqual(there(after[0]).call)

      expect(await harness.calls.erase(ann.participant)).toBe(0)
      expect(await harness.webhooks.erase(ann.participant)).toBe(0)
    })

    test('[XFER1] [SRV2] who transferred a call to others is named in it no more, and they still are', async () => {
      const [ann, ben, eve] = [{ ...someone('ann'), can }, someone('ben', 'doctor'), someone('eve', 'doctor')]
      const first = await answered(ann, ben)
      const next = crypto.randomUUID()
      const invite = { ...inviteCommand(ann, eve.participant, next), metadata: { said: ben.displayName } }
      const begun = await harness.calls.invite(ann.participant, eve.participant, first, ({ sameUuid, live }) =>
        decideTransfer(sameUuid, live, { asker: ben, invite }, Date.now()),
      )
      expect(begun.ok).toBe(true)
      await run(ben, first, { type: 'stop', note: null })
      // A call that is live stays as it is.
      expect(await harness.calls.erase(ben.participant)).toBe(1)
      expect(await mentions(ben)).not.toEqual([])
      await run(eve, next, { type: 'reject', actor: eve, reason: null, rung: [] })
      const before = (await seen(next)).call
      expect(await harness.calls.erase({ ...ben.participant, role: 'nurse' })).toBe(0)
      expect(await harness.calls.erase(ben.participant)).toBe(1)
      await harness.webhooks.erase(ben.participant)
      expect(await mentions(ben)).toEqual([])
      const by = { userId: '', role: 'doctor', displayName: null }
      const expected = { ...before, metadata: null, transferred: { ...before.transferred, by } }
      expect((await seen(next)).call).toEqual(expected as typeof before)
      expect(await harness.calls.load(before)).toEqual(expected as typeof before)
      expect(await harness.calls.erase(ben.participant)).toBe(0)
    })

    test('[SRV2] what is left of a call can still be told, and says who ended it by the role alone', async () => {
      const [ann, ben] = [someone('ann'), someone('ben', 'doctor')]
      const callUuid = await answered(ann, ben)
      await run(ann, callUuid, { type: 'end', actor: ann, reason: null })
      const { call } = await seen(callUuid)
      const steps = await harness.calls.stepsAfter(call, 0)
      await harness.calls.erase(ann.participant)
      const blanked = await harness.calls.stepsAfter(call, 0)
      expect(blanked.map(({ event: { type, at } }) => [type, at])).toEqual(
        steps.map(({ event: { type, at } }) => [type, at]),
      )
      expect(blanked.at(-1)?.event).toMatchObject({
        by: { userId: '', role: ann.participant.role, sessionId: '' },
        notices: [{ event: 'call.ended', data: { reason: 'hangup', by: { user_id: '', role: ann.participant.role } } }],
      })
      expect((await seen(callUuid)).by).toEqual({ userId: '', role: ann.participant.role })
    })

    test('[SRV2] a live call stays as it is, and is erased once it is over', async () => {
      const [ann, ben] = [someone('ann'), someone('ben', 'doctor')]
      const callUuid = await answered(ann, ben)
      const { call } = await seen(callUuid)
      expect(await harness.calls.erase(ann.participant)).toBe(0)
      expect((await seen(callUuid)).call).toEqual(call)
      await run(ben, callUuid, { type: 'end', actor: ben, reason: null })
      expect(await harness.calls.erase(ann.participant)).toBe(1)
    })

    test('[SRV2] both sides at once, of more calls than a page: both are gone', async () => {
      const [ann, ben] = [someone('ann'), someone('ben', 'doctor')]
      for (let n = 0; n < 120; n++) {
        const callUuid = await ring(ann, ben)
        await run(ann, callUuid, { type: 'cancel', actor: ann, reason: null })
      }
      const erase = async ({ participant }: Actor) => [
        await harness.calls.erase(participant),
        await harness.webhooks.erase(participant),
      ]
      const [[hers], [his]] = (await Promise.all([erase(ann), erase(ben)])) as [number[], number[]]
      expect([hers, his]).toEqual([120, 120])
      expect([await mentions(ann), await mentions(ben)]).toEqual([[], []])
    })

    async function over(count: number): Promise<Actor> {
      const [ann, ben] = [someone('ann'), someone('ben', 'doctor')]
      for (let n = 0; n < count; n++) {
        const callUuid = await ring(ann, ben)
        await run(ann, callUuid, { type: 'cancel', actor: ann, reason: null })
      }
      return ann
    }
    /** What a service does of an erasure; `fails`: the process ends after the first step. */
    const erasingCalls = (fails: boolean) =>
      createErasing({
        erasures: harness.erasures,
        answerMs: 0,
        async work(participant, count) {
          await harness.calls.erase(participant, async (erased) => {
            await count('calls', erased)
            if (fails) throw new Error('the process ends')
          })
          return 1
        },
      })

    test('[SRV2] an erasure that takes longer than a request goes on, and the answer that is heard has all of it', async () => {
      const { participant: ann } = await over(130)
      const erasing = erasingCalls(false)
      const [one, other] = await Promise.all([erasing.erase(ann), erasing.erase(ann)])
      expect([one, other]).toEqual([undefined, undefined])
      const asked = async () => {
        for (;;) {
          const erased = await erasing.erase(ann)
          if (erased !== undefined) return erased
        }
      }
      const all = { tokensFrom: 1, calls: 130, devices: 0, timelineEntries: 0, webhookDeliveries: 0 }
      // The second one as somebody whose answer was lost.
      expect([await asked(), await asked()]).toEqual([all, all])
      await erasing.heard(ann)
      expect(await asked()).toEqual({ ...all, calls: 0 })
    })

    test('[SRV2] an erasure that was interrupted is counted whole by whoever goes on with it', async () => {
      const { participant: ann } = await over(130)
      const failing = erasingCalls(true)
      // A process that waits for it hears that it goes on, or that it failed.
      await failing.erase(ann).catch(() => undefined)
      const next = erasingCalls(false)
      for (;;) {
        const erased = await next.erase(ann)
        if (erased === undefined) continue
        // The first process may have been at a step when the other one began.
        await next.erase(ann)
        break
      }
      expect((await harness.erasures.counted(participantHash(ann))).calls).toBe(130)
    })

    test('[SRV2] [TRACE1] what is seen late of an erased side is not written, that of the other is', async () => {
      const [ann, ben] = [someone('ann'), someone('ben', 'doctor')]
      const [out, back] = [await whole(ann, ben), await whole(ben, ann)]
      await harness.calls.erase(ann.participant)
      for (const callUuid of [out, back])
        await harness.timeline.add([
          entry(callUuid, 'caller', { side: 'caller', deviceId: 'phone' }),
          entry(callUuid, 'callee', { side: 'callee', deviceId: 'phone' }),
          entry(callUuid, 'none'),
        ])
      const idsOf = async (callUuid: string) =>
        (await harness.timeline.of(entry(callUuid, ''))).map(({ id }) => id).sort()
      expect([await idsOf(out), await idsOf(back)]).toEqual([
        ['callee', 'none'],
        ['caller', 'none'],
      ])
    })

    test('[SRV2] [TRACE1] what is seen of a side while it is erased goes with its name, what others left stays', async () => {
      const [ann, ben] = [someone('ann'), someone('ben', 'doctor')]
      const calls = [await whole(ann, ben), await whole(ben, ann)]
      await harness.timeline.forgetParticipant(ann.participant)
      for (const callUuid of calls)
        await harness.timeline.add([
          entry(callUuid, 'caller', { side: 'caller', deviceId: 'phone' }),
          entry(callUuid, 'callee', { side: 'callee', deviceId: 'phone' }),
          entry(callUuid, 'none'),
          entry(callUuid, 'refused', { what: 'refused', side: 'caller', asker: ben.participant }),
        ])
      expect(await harness.calls.erase(ann.participant)).toBe(2)
      const idsOf = async (callUuid: string) => (await harness.timeline.of(entry(callUuid, ''))).map(({ id }) => id)
      expect(await Promise.all(calls.map(idsOf))).toEqual([
        ['callee', 'none', 'refused'],
        ['caller', 'none', 'refused'],
      ])
    })

    test('[SRV2] invites of a participant that were refused, the latest first, in pages', async () => {
      const [ann, ben] = [someone('ann'), someone('ben')]
      const refused = (asker: Participant, id: string, at: number) =>
        entry(crypto.randomUUID(), id, { at, what: 'refused', side: 'caller', asker })
      const { product: _, ...asker } = ann.participant
      const hers = [
        refused(ann.participant, 'a', 1),
        refused(ann.participant, 'b', 1),
        refused(ann.participant, 'a', 2),
      ]
      await harness.timeline.add([...hers, refused(ben.participant, 'a', 3)])
      const all = [...hers].reverse().map((row) => ({ ...row, asker }))
      expect(await harness.timeline.refusedOf(ann.participant, 10)).toEqual(all)
      expect(await harness.timeline.refusedOf(ann.participant, 2)).toEqual(all.slice(0, 2))
      expect(await harness.timeline.refusedOf(ann.participant, 2, all[1])).toEqual(all.slice(2))
    })
  })
}
