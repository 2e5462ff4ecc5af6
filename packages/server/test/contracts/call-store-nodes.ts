import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { isAnswered, isLive, type LiveCall, participantOf } from '../../src/call/call.ts'
import { actorOf, callLife, durations, inviteCommand } from '../../src/call/decide.fixture.ts'
import { decide } from '../../src/call/decide.ts'
import { decideInvite } from '../../src/call/invite.ts'
import {
  accepted,
  created,
  ended,
  liveIn,
  participant,
  ringing,
  there,
  touched,
  transferring,
} from '../../src/ports/call-store.fixture.ts'
import type { CallSteps, InviteSituation, LiveCallReads } from '../../src/ports/call-store.ts'

type Store = CallSteps & LiveCallReads

export interface CallStoreNodesHarness {
  /** Two stores on the same data, as two nodes have them. */
  readonly nodes: readonly [Store, Store]
  versions(callUuid: string): Promise<number[]>
  close(): Promise<void>
}

const fresh = () => crypto.randomUUID()

/** What an adapter guarantees that is not the only writer of its data. */
export function registerCallStoreNodesContract(name: string, open: () => Promise<CallStoreNodesHarness>): void {
  describe(`${name}: CallStore on two nodes`, () => {
    let harness: CallStoreNodesHarness
    let one: Store
    let other: Store
    beforeAll(async () => {
      harness = await open()
      ;[one, other] = harness.nodes
    })
    afterAll(() => harness.close())

    /** A call that both nodes know in its first version. */
    async function known(call = ringing()) {
      await one.transition(call, () => ({ steps: [created(call)] }))
      await other.load(call)
      return call
    }

    test('of a hundred pairs of racing ends exactly one wins each, and the other decides again on what is stored', async () => {
      const calls = await Promise.all(Array.from({ length: 100 }, () => known()))
      const end = (store: Store, call: (typeof calls)[number], reason: string) =>
        store.transition(call, (now) => {
          const found = there(now)
          if (!isLive(found)) return { won: false, reason: found.endReason, steps: [] }
          const step = ended(found)
          const { call: over } = step
          return { won: true, reason, steps: [{ ...step, call: { ...over, endReason: reason } as typeof over }] }
        })
      const pairs = await Promise.all(
        calls.map((call, index) => {
          const race = [() => end(one, call, 'one'), () => end(other, call, 'other')]
          return Promise.all((index % 2 === 0 ? race : race.reverse()).map((start) => start()))
        }),
      )
      for (const [index, pair] of pairs.entries()) {
        expect(pair.filter(({ won }) => won).length).toBe(1)
        // The loser saw the winner's end.
        expect(pair[0]?.reason).toBe(pair[1]?.reason as string)
        expect(await harness.versions(calls[index]?.callUuid ?? '')).toEqual([1, 2])
      }
    })

    test('what another node is known to have written is decided on at once, and what is known to be older is not', async () => {
      const call = await known()
      const { steps } = await one.transition(call, (now) => {
        const found = there(now)
        return { steps: found.status === 'ringing' ? [accepted(found)] : [] }
      })
      const step = steps[0]
      if (step === undefined) throw new Error('not accepted')
      other.note(step.call)
      other.note(call)
      const decidedOn: number[] = []
      await other.transition(call, (now) => {
        const found = there(now)
        decidedOn.push(found.version)
        return { steps: isLive(found) ? [ended(found)] : [] }
      })
      expect(decidedOn).toEqual([2])
      expect(await harness.versions(call.callUuid)).toEqual([1, 2, 3])
    })

    test('what a note says is believed only where the guard agrees: one of a version that was never written changes nothing', async () => {
      const call = await known()
      const wrong = accepted(call).call
      other.note(wrong)
      const decidedOn: number[] = []
      await other.transition(call, (now) => {
        const found = there(now)
        decidedOn.push(found.version)
        return { steps: isLive(found) ? [ended(found)] : [] }
      })
      expect(decidedOn).toEqual([2, 1])
      expect(await harness.versions(call.callUuid)).toEqual([1, 2])
    })

    test('of an accept and an end at the same time both are written, or the end alone', async () => {
      const calls = await Promise.all(Array.from({ length: 100 }, () => known()))
      await Promise.all(
        calls.flatMap((call) => [
          one.transition(call, (now) => {
            const found = there(now)
            return found.status === 'ringing' ? { steps: [accepted(found)] } : { steps: [] }
          }),
          other.transition(call, (now) => {
            const found = there(now)
            return isLive(found) ? { steps: [ended(found)] } : { steps: [] }
          }),
        ]),
      )
      for (const call of calls) {
        const stored = there(await one.load(call))
        expect(stored.status).toBe('ended')
        expect(await harness.versions(call.callUuid)).toEqual(stored.version === 3 ? [1, 2, 3] : [1, 2])
      }
    })

    test('[XFER1] one node answers a transfer while another one ends the call: the two calls of it always agree', async () => {
      const pairs = Array.from({ length: 60 }, () => transferring())
      for (const call of pairs.flat()) await one.transition(call, () => ({ steps: [created(call)] }))
      for (const call of pairs.flat()) await other.load(call)
      await Promise.all(
        pairs.flatMap(([first, next], index) => {
          const race = [
            () =>
              one.transition(next, (call, linked) =>
                call?.status === 'ringing' && linked !== undefined && isLive(linked)
                  ? { steps: [accepted(call), ended(linked)] }
                  : { steps: [] },
              ),
            () =>
              other.transition(first, (call, linked) => {
                const both = [there(call), ...(linked?.status === 'ringing' ? [linked] : [])]
                return { steps: both.filter(isLive).map((each) => ended(each)) }
              }),
          ]
          return (index % 2 === 0 ? race : race.reverse()).map((start) => start())
        }),
      )
      for (const [first, next] of pairs) {
        const [was, is] = [there(await one.load(first)), there(await other.load(next))]
        expect([was.status, was.version, is.version]).toEqual(['ended', 2, 2])
        expect(isAnswered(is) || is.status === 'ended').toBe(true)
      }
    })

    test('[XFER1] a call that is being transferred by now, as another node wrote it, is never decided on alone', async () => {
      const [transferred, next] = transferring()
      const { transferring: _, ...first } = transferred
      await one.transition(first, () => ({ steps: [created(first)] }))
      await other.load(first)
      await one.transition(first, () => ({
        steps: [created(next), { ...touched(transferred, 's'), call: { ...transferred, version: 2 } }],
      }))
      const seen: unknown[] = []
      await other.transition(first, (call, linked) => {
        seen.push([call?.version, linked?.version])
        return { steps: [call, linked].flatMap((each) => (each !== undefined && isLive(each) ? [ended(each)] : [])) }
      })
      expect(seen).toEqual([
        [1, undefined],
        [2, 1],
      ])
      expect((await one.load(next))?.status).toBe('ended')
    })

    test('[XFER1] what a node remembers of the first call from when it rang decides nothing', async () => {
      const [transferred, next] = transferring()
      const ring = { ...ringing(), callUuid: transferred.callUuid }
      await one.transition(ring, () => ({ steps: [created(ring)] }))
      await other.load(ring)
      await one.transition(ring, () => ({ steps: [{ ...touched(ring, 's'), call: { ...transferred, version: 2 } }] }))
      await one.transition(next, () => ({ steps: [created(next)] }))
      const seen: unknown[] = []
      await other.transition(next, (call, linked) => {
        seen.push(linked?.status)
        const both = linked !== undefined && isAnswered(linked) ? [ended(linked)] : []
        return { steps: [accepted(there(call) as typeof next), ...both] }
      })
      expect(seen.at(-1)).toBe('accepted')
      expect([(await one.load(next))?.status, (await one.load(transferred))?.status]).toEqual(['accepted', 'ended'])
    })

    test('a refusal is never made on what one node remembers', async () => {
      const call = await known()
      await other.transition(call, (now) => ({ steps: [accepted(there(now) as typeof call)] }))
      const result = await one.transition(call, (now) => ({ status: there(now).status, steps: [] }))
      expect(result.status).toBe('accepted')
      expect((await one.load(call))?.version).toBe(2)
      expect((await one.liveCallsOf(participantOf(call, 'caller')))[0]?.version).toBe(2)
      expect((await liveIn(one)).find(({ callUuid }) => callUuid === call.callUuid)?.version).toBe(2)
    })

    test('many transitions of few calls on both nodes: every version once, none lost', async () => {
      const calls = await Promise.all(Array.from({ length: 10 }, () => known()))
      await Promise.all(
        Array.from({ length: 400 }, (_, index) => {
          const call = calls[index % calls.length] as (typeof calls)[number]
          const store = index % 3 === 0 ? one : other
          return store.transition(call, (now) => ({ steps: [touched(there(now), `s${index}`)] }))
        }),
      )
      for (const call of calls) {
        expect(await harness.versions(call.callUuid)).toEqual(Array.from({ length: 41 }, (_, index) => index + 1))
      }
    })

    test('whole lives of calls whose every step comes on another node', async () => {
      await Promise.all(
        Array.from({ length: 50 }, async (_, life) => {
          for (const [index, step] of callLife().entries()) await step((life + index) % 2 === 0 ? one : other)
        }),
      )
    })

    const invite = (store: Store, from: string, to: string, callUuid = fresh()) => {
      const caller = actorOf(participant(from))
      const callee = participant(to)
      return store.invite(caller.participant, callee, callUuid, (situation) =>
        decideInvite(situation, inviteCommand(caller, callee, callUuid), 1_000_000),
      )
    }

    test('[INV6] a thousand crossing invites give exactly one call per pair', async () => {
      const pairs = Array.from({ length: 500 }, () => [fresh(), fresh()] as const)
      const results = await Promise.all(
        pairs.flatMap(([a, b], index) => {
          const [first, second] = index % 2 === 0 ? [one, other] : [other, one]
          return [invite(first, a, b), invite(second, b, a)]
        }),
      )
      for (const [index, [a, b]] of pairs.entries()) {
        const pair = results.slice(2 * index, 2 * index + 2)
        const winner = pair.find((it) => it.ok)
        const refusal = pair.find((it) => !it.ok)
        if (refusal?.ok !== false || winner?.ok !== true) throw new Error('not one call and one refusal')
        expect(refusal.code).toBe('CALL_GLARE')
        expect(refusal.details.call_uuid).toBe(winner.call.callUuid)
        expect((await one.liveCallsOf(participant(a))).map(({ callUuid }) => callUuid)).toEqual([winner.call.callUuid])
        expect((await other.liveCallsOf(participant(b))).map(({ callUuid }) => callUuid)).toEqual([
          winner.call.callUuid,
        ])
      }
    })

    /** An invite that decides on what it has foreseen, and what another node writes before that. */
    async function inviteAfter(caller: string, callee: string, callUuid: string, meanwhile: () => Promise<unknown>) {
      const [from, to] = [actorOf(participant(caller)), participant(callee)]
      const foreseen = await one.foresee(from.participant, to, callUuid)
      await meanwhile()
      const decideNow = (situation: InviteSituation) =>
        decideInvite(situation, inviteCommand(from, to, callUuid), 1_000_000)
      return one.invite(from.participant, to, callUuid, decideNow, foreseen)
    }

    test('[INV6] what an invite has foreseen is not true any more where the callee called meanwhile', async () => {
      const [a, b] = [fresh(), fresh()]
      const later = await inviteAfter(a, b, fresh(), () => Promise.resolve(invite(other, b, a)))
      expect(later).toMatchObject({ ok: false, code: 'CALL_GLARE' })
      expect(await one.liveCallsOf(participant(a))).toHaveLength(1)
    })

    test('[INV3] nor where its uuid was taken meanwhile', async () => {
      const [a, b, uuid] = [fresh(), fresh(), fresh()]
      const later = await inviteAfter(a, b, uuid, () => Promise.resolve(invite(other, a, b, uuid)))
      expect(later).toMatchObject({ ok: true, created: false })
      expect(await harness.versions(uuid)).toEqual([1])
    })

    test('[INV6] an invite is never refused for what it has foreseen: the call that it met may be over', async () => {
      const [a, b] = [fresh(), fresh()]
      const met = await invite(other, b, a)
      if (!met.ok) throw new Error('no call')
      const later = await inviteAfter(a, b, fresh(), async () => {
        await other.transition(met.call, (now) => ({ steps: [ended(there(now) as LiveCall)] }))
      })
      expect(later).toMatchObject({ ok: true, created: true })
    })

    test('[INV6] an invite that has foreseen right is written at once', async () => {
      const [a, b, uuid] = [fresh(), fresh(), fresh()]
      expect(await inviteAfter(a, b, uuid, async () => {})).toMatchObject({ ok: true, created: true })
      expect(await harness.versions(uuid)).toEqual([1])
    })

    test('[INV8] of one caller on both nodes no limit is overrun', async () => {
      const caller = fresh()
      const results = await Promise.all(
        Array.from({ length: 40 }, (_, index) => invite(index % 2 === 0 ? one : other, caller, fresh())),
      )
      expect(results.filter((it) => it.ok).length).toBe(5)
      expect((await one.liveCallsOf(participant(caller))).length).toBe(5)
    })

    test('one callee whom many call at once on both nodes hears of every call', async () => {
      const callee = fresh()
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, index) => invite(index % 2 === 0 ? one : other, fresh(), callee)),
      )
      expect(results.every((it) => it.ok)).toBe(true)
      expect((await other.liveCallsOf(participant(callee))).length).toBe(100)
    })

    test('in a ring of callers on both nodes none waits for ever', async () => {
      const ring = Array.from({ length: 60 }, fresh)
      const results = await Promise.all(
        ring.map((from, index) => invite(index % 2 === 0 ? one : other, from, ring[(index + 1) % ring.length] ?? from)),
      )
      expect(results.every((it) => it.ok)).toBe(true)
    })

    test('[INV3] one call_uuid on both nodes is one call', async () => {
      for (let round = 0; round < 50; round++) {
        const [caller, callee, uuid] = [actorOf(participant(fresh())), participant(fresh()), fresh()]
        const results = await Promise.all(
          harness.nodes.map((store) =>
            store.invite(caller.participant, callee, uuid, (situation) =>
              decideInvite(situation, inviteCommand(caller, callee, uuid), 1_000_000),
            ),
          ),
        )
        expect(results.map((it) => it.ok && it.created).sort()).toEqual([false, true])
        expect(await harness.versions(uuid)).toEqual([1])
      }
    })

    test('[INV5] of two invites at once each node tells the same: the second one sees what the first one made', async () => {
      for (let round = 0; round < 50; round++) {
        const callee = participant(fresh())
        const results = await Promise.all(
          harness.nodes.map((store) => {
            const caller = participant(fresh())
            const call = ringing(caller, callee)
            return store.invite(caller, callee, call.callUuid, ({ live }) =>
              live.length === 0 ? { made: true, steps: [created(call)] } : { made: false, steps: [] },
            )
          }),
        )
        expect(results.map(({ made }) => made).sort()).toEqual([false, true])
      }
    })

    test('[END1] both sides hang up on two nodes: the call ends once, for both', async () => {
      for (let round = 0; round < 30; round++) {
        const [caller, callee, uuid] = [actorOf(participant(fresh())), actorOf(participant(fresh())), fresh()]
        await one.invite(caller.participant, callee.participant, uuid, (situation) =>
          decideInvite(situation, inviteCommand(caller, callee.participant, uuid), 1_000_000),
        )
        const ref = { product: caller.participant.product, callUuid: uuid }
        await other.transition(ref, (call) => decide(call, { type: 'accept', actor: callee }, 1_001_000, durations))
        const ends = await Promise.all([
          one.transition(ref, (call) =>
            decide(call, { type: 'end', actor: caller, reason: null }, 1_002_000, durations),
          ),
          other.transition(ref, (call) =>
            decide(call, { type: 'end', actor: callee, reason: null }, 1_002_000, durations),
          ),
        ])
        expect(ends.every((it) => it.ok)).toBe(true)
        expect(ends.filter((it) => it.steps.length > 0).length).toBe(1)
      }
    })
  })
}
