import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type Call,
  callKey,
  isLive,
  type LiveCall,
  type OverCall,
  participantOf,
  type RingingCall,
} from '../../src/call/call.ts'
import { actorOf, inviteCommand } from '../../src/call/decide.fixture.ts'
import type { Step } from '../../src/call/effects.ts'
import { decideInvite } from '../../src/call/invite.ts'
import { anyLife } from '../../src/call/read.fixture.ts'
import {
  accepted,
  type CallStoreHarness,
  created,
  ended,
  liveIn,
  overSince,
  participant,
  product,
  ringing,
  there,
  touched,
  transferring,
} from '../../src/ports/call-store.fixture.ts'
import { type CallSteps, type LiveCallReads, pageSize } from '../../src/ports/call-store.ts'
import { checkHistory, registerCallRecordsContract } from './call-records.ts'

const nothing = { steps: [] }

/** What every adapter of CallStore guarantees. */
export function registerCallStoreContract(name: string, open: () => Promise<CallStoreHarness>): void {
  registerCallStepsContract(name, open, checkHistory)
  registerCallRecordsContract(name, open)
}

/** The same of a store that has no lists of calls. `check`: what else is so of a call that was written. */
export function registerCallStepsContract<Store extends CallSteps & LiveCallReads>(
  name: string,
  open: () => Promise<CallStoreHarness<Store>>,
  check: (store: Store, call: Call) => Promise<void> = async () => {},
): void {
  describe(`${name}: CallStore`, () => {
    let harness: CallStoreHarness<Store>
    const store = () => harness.store()
    beforeAll(async () => {
      harness = await open()
    })
    afterAll(() => harness.close())

    async function add(call: Call): Promise<Call> {
      await store().transition(call, () => ({ steps: [created(call)] }))
      return call
    }

    describe('transition', () => {
      test('writes what the decision says and hands the decision back', async () => {
        const call = await add(ringing())
        const result = await store().transition(call, (now) => ({ note: 'mine', steps: [touched(there(now), 's2')] }))
        expect(result.note).toBe('mine')
        expect(await store().load(call)).toStrictEqual(touched(call, 's2').call)
        expect(await harness.versions(call.callUuid)).toEqual([1, 2])
      })

      test('a decision without steps writes nothing', async () => {
        const call = await add(ringing())
        const before = harness.commits()
        expect(await store().transition(call, (now) => ({ seen: now, steps: [] }))).toEqual({ seen: call, steps: [] })
        expect(harness.commits()).toBe(before)
      })

      test('sees no call of another product', async () => {
        const call = await add(ringing())
        const elsewhere = { product: 'another', callUuid: call.callUuid }
        expect((await store().transition(elsewhere, (now) => ({ seen: now, steps: [] }))).seen).toBeUndefined()
        expect(await store().load(elsewhere)).toBeUndefined()
      })

      test('the same call_uuid is another call in another product [UUID1]', async () => {
        const call = await add(ringing())
        const other = await add({ ...ringing({ ...participant('x'), product: 'another' }), callUuid: call.callUuid })
        expect(await store().load(call)).toStrictEqual(call)
        expect(await store().load(other)).toStrictEqual(other)
      })

      test('of many at once on one call each decides on what the one before wrote', async () => {
        const call = await add(ringing())
        const seen: number[] = []
        const many = Array.from({ length: 50 }, (_, index) =>
          store().transition(call, (now) => {
            seen.push(there(now).version)
            return { steps: [touched(there(now), `s${index}`)] }
          }),
        )
        await Promise.all(many)
        expect(seen).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
        expect(await harness.versions(call.callUuid)).toEqual(Array.from({ length: 51 }, (_, index) => index + 1))
      })

      test('of two that end a call only one does', async () => {
        const call = await add(ringing())
        const end = () =>
          store().transition(call, (now) => {
            const found = there(now)
            return isLive(found) ? { won: true, steps: [ended(found)] } : { won: false, steps: [] }
          })
        const results = await Promise.all([end(), end(), end()])
        expect(results.map((it) => it.won)).toEqual([true, false, false])
        expect(await harness.versions(call.callUuid)).toEqual([1, 2])
      })

      test('two hundred at once need far fewer commits, and all are written', async () => {
        const calls = await Promise.all(Array.from({ length: 200 }, () => add(ringing())))
        const before = harness.commits()
        await Promise.all(
          calls.map((call) => store().transition(call, (now) => ({ steps: [touched(there(now), 'm')] }))),
        )
        expect(harness.commits() - before).toBeLessThanOrEqual(20)
        for (const call of calls) expect((await store().load(call))?.version).toBe(2)
      })

      test('a row that changed underneath is decided on again, as it is now', async () => {
        const call = await add(ringing())
        await harness.forge(touched(call, 'forged'))
        const seen: (number | undefined)[] = []
        await store().transition(call, (now) => {
          seen.push(now?.version)
          return { steps: [touched(there(now), 'ours')] }
        })
        expect(seen).toEqual([1, 2])
        expect((await store().load(call))?.callerPlace.sessionId).toBe('ours')
        expect(await harness.versions(call.callUuid)).toEqual([1, 2, 3])
      })

      test('a call that ended underneath is live no more', async () => {
        const call = ringing()
        await add(call)
        await harness.forge(ended(call))
        const result = await store().transition(call, (now) => {
          const found = there(now)
          return isLive(found)
            ? { status: found.status, steps: [touched(found, 'x')] }
            : { status: found.status, steps: [] }
        })
        expect(result.status).toBe('ended')
        expect(await store().liveCallsOf(participantOf(call, 'caller'))).toEqual([])
      })

      test('a call that is there already is not created again', async () => {
        const call = ringing()
        await harness.forge(created(call))
        const result = await store().transition(call, (now) =>
          now === undefined ? { found: false, steps: [created(call)] } : { found: true, steps: [] },
        )
        expect(result.found).toBe(true)
        expect(await harness.versions(call.callUuid)).toEqual([1])
      })

      test('conflicts in the middle of a batch leave the others alone', async () => {
        const calls = await Promise.all(Array.from({ length: 60 }, () => add(ringing())))
        const forged = new Set(calls.filter((_, index) => index % 7 === 3))
        for (const call of forged) await harness.forge(touched(call, 'forged'))
        let decisions = 0
        await Promise.all(
          calls.map((call) =>
            store().transition(call, (now) => {
              decisions++
              return { steps: [touched(there(now), 'ours')] }
            }),
          ),
        )
        expect(decisions).toBe(calls.length + forged.size)
        for (const call of calls) {
          expect((await store().load(call))?.callerPlace.sessionId).toBe('ours')
          expect((await harness.versions(call.callUuid)).length).toBe(forged.has(call) ? 3 : 2)
        }
      })

      test('of several steps all are written or none', async () => {
        const [first, second] = await Promise.all([add(ringing()), add(ringing())])
        if (first === undefined || second === undefined) throw new Error('unreachable')
        await harness.forge(touched(second, 'forged'))
        const seenByOthers: (Call | undefined)[] = []
        let attempt = 0
        await store().transition(first, (now) => {
          attempt++
          if (attempt === 1) return { steps: [touched(there(now), 'a'), touched(second, 'b')] }
          seenByOthers.push(now)
          return nothing
        })
        expect(seenByOthers).toStrictEqual([first])
        expect(await harness.versions(first.callUuid)).toEqual([1])
        expect(await harness.versions(second.callUuid)).toEqual([1, 2])
        await store().transition(first, (now) => ({
          steps: [touched(there(now), 'a'), touched(touched(second, 'forged').call, 'b')],
        }))
        expect(await harness.versions(first.callUuid)).toEqual([1, 2])
        expect(await harness.versions(second.callUuid)).toEqual([1, 2, 3])
      })

      test('[XFER1] shows the other call of a transfer, from both of them, and both are written together', async () => {
        const [first, next] = transferring()
        await Promise.all([add(first), add(next)])
        for (const [call, other] of [
          [first, next],
          [next, first],
        ] as const) {
          const { seen } = await store().transition(call, (...both) => ({ steps: [], seen: both }))
          expect(seen).toStrictEqual([call, other])
        }
        await store().transition(next, (call, linked) => ({
          steps: [accepted(there(call) as RingingCall), ended(there(linked) as LiveCall)],
        }))
        expect((await store().load(first))?.status).toBe('ended')
        expect((await store().load(next))?.status).toBe('accepted')
        // Neither decides about the other one any more.
        for (const call of [first, next])
          await store().transition(call, (now, linked) => {
            expect([there(now).version, linked]).toEqual([2, undefined])
            return nothing
          })
      })

      test('[XFER1] a call that nobody transfers has no other one, nor has one whose other one is gone', async () => {
        const [first, next] = transferring()
        const plain = await add(ringing())
        await add(next)
        for (const call of [plain, next])
          expect((await store().transition(call, (_, linked) => ({ linked, steps: [] }))).linked).toBeUndefined()
        await add({ ...first, transferring: { to: plain.callUuid.replace(/^./, 'x'), by: 'caller' } })
        expect((await store().transition(first, (_, linked) => ({ linked, steps: [] }))).linked).toBeUndefined()
      })

      test('[XFER1] where the other call of a transfer changed underneath, both are decided on again', async () => {
        const [first, next] = transferring()
        await Promise.all([add(first), add(next)])
        await harness.forge(touched(first, 'forged'))
        const seen: unknown[] = []
        await store().transition(next, (call, linked) => {
          seen.push([call?.version, linked?.version])
          return { steps: [accepted(there(call) as RingingCall), ended(there(linked) as LiveCall)] }
        })
        expect(seen.at(-1)).toEqual([1, 2])
        expect(await harness.versions(first.callUuid)).toEqual([1, 2, 3])
        expect(await harness.versions(next.callUuid)).toEqual([1, 2])
      })

      test('a decision that throws is the rejection, and the call goes on', async () => {
        const call = await add(ringing())
        const failure = new Error('a bug')
        const broken = async () =>
          store().transition(call, () => {
            throw failure
          })
        await expect(broken()).rejects.toBe(failure)
        await store().transition(call, (now) => ({ steps: [touched(there(now), 'after')] }))
        expect((await store().load(call))?.version).toBe(2)
      })
    })

    describe('invite', () => {
      const invite = (from: string, to: string, callUuid: string = crypto.randomUUID()) => {
        const caller = actorOf(participant(from))
        const callee = participant(to)
        return store().invite(caller.participant, callee, callUuid, (situation) =>
          decideInvite(situation, inviteCommand(caller, callee, callUuid), 1_000_000),
        )
      }
      const fresh = () => crypto.randomUUID()

      test('sees the live calls of both, and no others', async () => {
        const [a, b, c] = [participant(fresh()), participant(fresh()), participant(fresh())]
        const ab = await add(ringing(a, b))
        const ca = await add(ringing(c, a))
        const over = ringing(b, c)
        await add(over)
        await store().transition(over, () => ({ steps: [ended(over)] }))
        await add(ringing(c, participant(fresh())))
        const result = await store().invite(a, b, fresh(), ({ sameUuid, live }) => ({ sameUuid, live, steps: [] }))
        expect(result.sameUuid).toBeUndefined()
        expect(new Set(result.live.map((call) => call.callUuid))).toEqual(new Set([ab.callUuid, ca.callUuid]))
      })

      test('sees the call that has the call_uuid, live or over, whosever it is', async () => {
        const live = await add(ringing())
        const over = ringing()
        await add(over)
        await store().transition(over, () => ({ steps: [ended(over)] }))
        for (const call of [live, ended(over).call]) {
          const result = await store().invite(participant('p'), participant('q'), call.callUuid, (situation) => ({
            ...situation,
            ...nothing,
          }))
          expect(result.sameUuid).toStrictEqual(call)
        }
      })

      test('[INV6] of two that cross exactly one makes a call', async () => {
        const pairs = Array.from({ length: 40 }, () => [fresh(), fresh()] as const)
        const results = await Promise.all(pairs.flatMap(([a, b]) => [invite(a, b), invite(b, a)]))
        for (let index = 0; index < results.length; index += 2) {
          const pair = results.slice(index, index + 2)
          expect(pair.filter((it) => it.ok).length).toBe(1)
          const refusal = pair.find((it) => !it.ok)
          const winner = pair.find((it) => it.ok)
          if (refusal?.ok !== false || winner?.ok !== true) throw new Error('unreachable')
          expect(refusal.code).toBe('CALL_GLARE')
          expect(refusal.details.call_uuid).toBe(winner.call.callUuid)
        }
      })

      test('[INV8] of one caller they take turns: no limit is overrun', async () => {
        const caller = fresh()
        const results = await Promise.all(Array.from({ length: 12 }, () => invite(caller, fresh())))
        expect(results.filter((it) => it.ok).length).toBe(5)
        expect((await store().liveCallsOf(participant(caller))).length).toBe(5)
      })

      test('in a ring of callers none waits for ever', async () => {
        const ring = Array.from({ length: 30 }, fresh)
        const results = await Promise.all(
          ring.map((from, index) => invite(from, ring[(index + 1) % ring.length] ?? from)),
        )
        expect(results.every((it) => it.ok)).toBe(true)
      })

      test('[INV3] of two with one call_uuid one creates it and the other sees it', async () => {
        const [caller, callee, uuid] = [actorOf(participant(fresh())), participant(fresh()), fresh()]
        const once = () =>
          store().invite(caller.participant, callee, uuid, (situation) =>
            decideInvite(situation, inviteCommand(caller, callee, uuid), 1_000_000),
          )
        const results = await Promise.all([once(), once()])
        expect(results.map((it) => it.ok && it.created)).toEqual([true, false])
        expect(await harness.versions(uuid)).toEqual([1])
      })

      test('[UUID1] of strangers with one call_uuid at the same instant both get a call', async () => {
        const uuid = fresh()
        const results = await Promise.all(Array.from({ length: 5 }, () => invite(fresh(), fresh(), uuid)))
        const uuids = results.map((it) => (it.ok ? it.call.callUuid : ''))
        expect(new Set(uuids).size).toBe(5)
        expect(uuids).toContain(uuid)
      })

      test('[INV7] ends the old call and makes the new one, together', async () => {
        const [a, b] = [fresh(), fresh()]
        const first = await invite(a, b)
        const second = await invite(a, b)
        if (!first.ok || !second.ok) throw new Error('unreachable')
        expect(second.steps.length).toBe(2)
        expect((await store().load(first.call))?.status).toBe('cancelled')
        expect(await store().liveCallsOf(participant(a))).toStrictEqual([second.call as LiveCall])
      })

      test('meets a transition of the old call: neither is lost', async () => {
        for (let round = 0; round < 20; round++) {
          const [a, b] = [fresh(), fresh()]
          const first = await invite(a, b)
          if (!first.ok) throw new Error('unreachable')
          const both = [
            store().transition(first.call, (now) => {
              const call = there(now)
              return call.status === 'ringing' ? { steps: [accepted(call)] } : nothing
            }),
            invite(a, b),
          ]
          await Promise.all(round % 2 === 0 ? both : both.reverse())
          const versions = await harness.versions(first.call.callUuid)
          expect(versions).toEqual(Array.from(versions, (_, index) => index + 1))
        }
      })
    })

    describe('reads', () => {
      test('live calls are found from both sides, until they are over', async () => {
        const [a, b] = [participant(crypto.randomUUID()), participant(crypto.randomUUID(), 'doctor')]
        const call = ringing(a, b)
        await add(call)
        const answered = accepted(call).call as LiveCall
        await store().transition(call, () => ({ steps: [accepted(call)] }))
        expect(await store().liveCallsOf(a)).toStrictEqual([answered])
        expect(await store().liveCallsOf(b)).toStrictEqual([answered])
        expect(await store().liveCallsOf({ ...a, role: 'doctor' })).toEqual([])
        expect(await store().liveCallsOf({ ...a, product: 'another' })).toEqual([])
        expect(await liveIn(store())).toContainEqual(answered)
        await store().transition(call, () => ({ steps: [ended(answered)] }))
        expect(await store().liveCallsOf(a)).toEqual([])
        expect(await store().liveCallsOf(b)).toEqual([])
        expect((await liveIn(store())).some((it) => it.callUuid === call.callUuid)).toBe(false)
      })

      test('[PRES1] [INV5] who called, or answered, is in a call until it is over; who is rung is not', async () => {
        const [a, b] = [participant(crypto.randomUUID()), participant(crypto.randomUUID(), 'doctor')]
        const others = [{ ...a, role: 'doctor' }, { ...a, product: 'another' }, b]
        const look = () => store().inCall([a, ...others, a])
        const call = ringing(a, b)
        expect(await look()).toEqual([false, false, false, false, false])
        await add(call)
        expect(await look()).toEqual([true, false, false, false, true])
        await store().transition(call, () => ({ steps: [accepted(call)] }))
        expect(await look()).toEqual([true, false, false, true, true])
        const second = await add(ringing(b, participant(crypto.randomUUID())))
        await store().transition(call, (now) => ({ steps: [ended(there(now) as LiveCall)] }))
        expect(await look()).toEqual([false, false, false, true, false])
        await store().transition(second, (now) => ({ steps: [ended(there(now) as LiveCall)] }))
        expect(await look()).toEqual([false, false, false, false, false])
        expect(await store().inCall([])).toEqual([])
      })

      test('[RING1] rings that are due are found by their time, the earliest first; who was answered is not among them', async () => {
        const at = 5_000_000_000_000
        const rings = await Promise.all(
          [3, 1, 2, 4, 5].map(
            async (n) => (await add(ringing(undefined, undefined, { ringExpiresAt: at + n }))) as RingingCall,
          ),
        )
        const [three, one, two] = rings
        expect(await store().dueRings(at, at + 3, 10)).toStrictEqual([one, two, three] as LiveCall[])
        expect(await store().dueRings(at, at + 5, 2)).toStrictEqual([one, two] as LiveCall[])
        expect(await store().dueRings(at + 1, at + 3, 10)).toStrictEqual([two, three] as LiveCall[])
        await store().transition(there(one), () => ({ steps: [accepted(there(one))] }))
        expect(await store().dueRings(at, at + 2, 10)).toStrictEqual([two] as LiveCall[])
      })

      test('live calls come in pages, each call once, as they are', async () => {
        const calls = await Promise.all(Array.from({ length: pageSize + 50 }, () => add(ringing())))
        const found: string[] = []
        for (let round = 0; round < 2; round++) {
          found.length = 0
          for await (const page of store().livePages()) {
            expect(page.length).toBeLessThanOrEqual(pageSize)
            found.push(...page.map((call) => `${callKey(call)} ${call.version}`))
          }
          expect(new Set(found).size).toBe(found.length)
          expect(found).toEqual(expect.arrayContaining(calls.map((call) => `${callKey(call)} ${round + 1}`)))
          await Promise.all(
            calls.map((call) => store().transition(call, (now) => ({ steps: [touched(there(now), 'x')] }))),
          )
        }
      })

      test('overPages gives the calls that ended since then, each with its last step', async () => {
        const at = 7_000_000_000_000
        const calls = await Promise.all(Array.from({ length: 4 }, async () => (await add(ringing())) as LiveCall))
        const ends = calls.map((call, index) => ended(call, at + index))
        for (const end of ends.slice(0, 3)) await store().transition(end.call, () => ({ steps: [end] }))
        const since = await overSince(store(), at + 1)
        expect(since.map((it) => it.step)).toStrictEqual(ends.slice(1, 3))
        expect(since.map((it) => it.call as Call)).toStrictEqual(ends.slice(1, 3).map((it) => it.call))
      })

      test('overPages gives so many at a time, each once and in the order of their ends, however many end at once', async () => {
        const at = 6_000_000_000_000
        const count = 2 * pageSize + 3
        const ends = await Promise.all(
          Array.from({ length: count }, async (_, index) => {
            const end = ended((await add(ringing())) as LiveCall, at + Math.floor(index / (pageSize + 1)))
            await store().transition(end.call, () => ({ steps: [end] }))
            return end.call
          }),
        )
        const found: OverCall[] = []
        for await (const page of store().overPages(at)) {
          expect(page.length).toBeLessThanOrEqual(pageSize)
          found.push(...page.map(({ call }) => call).filter(({ endedAt }) => endedAt < at + 10))
        }
        expect(found.map(callKey).sort()).toEqual(ends.map(callKey).sort())
        const instants = found.map(({ endedAt }) => endedAt)
        expect(instants).toEqual(instants.toSorted())
      })

      test('stepsAfter gives what was committed after a version, in order, with the call as it is now', async () => {
        const call = ringing()
        const second = accepted(call)
        const third = ended(second.call as LiveCall)
        for (const step of [created(call), second, third]) await store().transition(call, () => ({ steps: [step] }))
        const after = (version: number) => store().stepsAfter(call, version)
        expect(await after(0)).toStrictEqual(
          [created(call), second, third].map(({ event }, index) => ({
            call: { ...third.call, version: index + 1 },
            event,
          })),
        )
        expect(await after(2)).toStrictEqual([third])
        expect(await after(3)).toEqual([])
        expect(await store().stepsAfter({ ...call, product: 'another' }, 0)).toEqual([])
      })
    })

    test('every call reads back as it was written, also after a restart', async () => {
      const written: Call[] = []
      await fc.assert(
        fc.asyncProperty(anyLife(product), async (life) => {
          // A new one every time: shrinking runs the same life again.
          const callUuid = crypto.randomUUID()
          const own = (call: Call) => ({ ...call.caller, userId: call.caller.userId + callUuid })
          const steps = life.map(({ call, event }) => ({ call: { ...call, callUuid, caller: own(call) }, event }))
          const last = there(steps.at(-1))
          for (const step of steps) await store().transition(step.call, () => ({ steps: [step] }))
          expect(await store().load(last.call)).toStrictEqual(last.call)
          await checkReads(last)
          written.push(last.call)
        }),
        { numRuns: 150 },
      )
      await harness.reopen()
      for (const call of written) expect(await store().load(call)).toStrictEqual(call)
      const live = new Map((await liveIn(store())).map((call) => [call.callUuid, call]))
      for (const call of written)
        expect<Call | undefined>(live.get(call.callUuid)).toEqual(isLive(call) ? call : undefined)
    })

    async function checkReads({ call, event }: Step): Promise<void> {
      await check(store(), call)
      for (const side of ['caller', 'callee'] as const) {
        // While a call to a group rings, it has no callee.
        if (side === 'callee' && call.group !== undefined && call.status === 'ringing') continue
        const live = await store().liveCallsOf(participantOf(call, side))
        expect(live.some((it) => it.callUuid === call.callUuid)).toBe(isLive(call))
      }
      if (isLive(call)) return
      const over = await overSince(store(), call.endedAt)
      expect(over.find((it) => it.call.callUuid === call.callUuid)).toStrictEqual({ call, step: { call, event } })
    }

    test('after a restart a call goes on from its version', async () => {
      const call = await add(ringing())
      await harness.reopen()
      await store().transition(call, (now) => ({ steps: [touched(there(now), 'again')] }))
      expect(await harness.versions(call.callUuid)).toEqual([1, 2])
    })
  })
}
