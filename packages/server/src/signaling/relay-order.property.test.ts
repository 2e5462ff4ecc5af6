import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { callKey } from '../call/call.ts'
import { answered, connectPeer, done, openDomains } from '../calls/domain.fixture.ts'
import type { AppendResult, Push } from '../ports/push.ts'
import { createSocket, somebody, stepsOf } from '../ports/sessions.fixture.ts'
import { StoreError } from '../ports/store-error.ts'
import { createSessionTable } from '../session/table.ts'
import { Inbox, type Message } from './inbox.ts'

const openDomain = openDomains()

/** What becomes of one question to the node of the peer: how many turns it takes, and how it is answered. */
const fates = fc.record({
  turns: fc.nat(6),
  fate: fc.constantFrom('taken', 'taken', 'taken', 'taken', 'elsewhere', 'gone', 'lost', 'answer lost'),
})

/** A place that is not found more often than that is refused for now. */
const mostMisses = 2

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate)
}

test('[ORD1] [ORD2] relays follow one another to another node, and arrive in order and once, whatever becomes of each', async () => {
  // As the node of the peer has its session: the table that all nodes use, behind a way that takes time.
  const node = createSessionTable({
    ...{ windowMs: 60_000, resumeWindowMs: 60_000, isShared: true },
    newEpoch: () => 'epoch',
  })
  const plan: { turns: number; fate: string }[] = []
  const tries = new Map<number | undefined, number>()
  async function ask(id: string, push: Push): Promise<AppendResult> {
    const before = tries.get(push.source?.n) ?? 0
    tries.set(push.source?.n, before + 1)
    const { turns: count, fate } = (before < mostMisses ? plan.shift() : undefined) ?? { turns: 0, fate: 'taken' }
    // A stream between nodes is in order; that it is looked at again is not.
    await turns(1)
    const result = fate === 'taken' || fate === 'answer lost' ? node.append(id, push) : fate
    await turns(count)
    if (fate === 'lost' || fate === 'answer lost') throw new StoreError('unknown', 'no answer')
    return result as AppendResult
  }
  let isAway = false
  const domain = await openDomain({
    ...{ isElsewhere: true, isShared: true },
    sessions: (real) => ({
      append: (id: string, push: Push) => (isAway && push.kind === 'relay' ? ask(id, push) : real.append(id, push)),
    }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fates, { maxLength: 40 }),
      fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }),
      async (fatesOfAll, atOnce) => {
        isAway = false
        const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
        const callee = await connectPeer(domain, somebody())
        const call = await answered(domain, caller, callee)
        const { callUuid } = call
        for (const { actor } of [caller, callee]) done(await domain.calls.seat(actor, callUuid))
        const socket = createSocket()
        node.open(
          { sessionId: callee.id, participant: callee.actor.participant, deviceId: 'phone', extended: true },
          socket,
          0,
        )
        node.ready(callee.id, socket)
        stepsOf(node).hold(callee.id, callKey(call), true)
        plan.splice(0, plan.length, ...fatesOfAll)
        isAway = true

        const outcomes: string[] = []
        async function handle({ text, ahead }: Message, message: Message): Promise<void> {
          const data = { call_uuid: callUuid, candidate: text }
          const sent = (async () =>
            domain.relay.relay(caller.actor, 'webrtc.ice_candidate', data, undefined, message))()
          const outcome = await sent.then(
            (result) => (typeof result === 'string' ? 'acknowledged' : JSON.stringify(result)),
            () => 'unknown',
          )
          await ahead?.done
          outcomes.push(outcome)
        }
        const inbox = new Inbox({
          isNumbered: false,
          handle: (message) => handle(message, message),
          aboutOf: () => undefined,
          hangUpOf: () => undefined,
          doEarly: () => true,
          hold: () => true,
          release() {},
          onFull: () => expect.unreachable(),
          onPaused() {},
          onIdle() {},
        })
        for (const [i, together] of atOnce.entries()) {
          inbox.take(String(i), undefined)
          if (!together) await turns(3)
        }
        while (inbox.isBusy) await turns(1)

        expect(outcomes).toHaveLength(atOnce.length)
        const told = socket.told.map(({ data }) => Number((data as unknown as { candidate: string }).candidate))
        expect(told).toEqual([...new Set(told)].sort((a, b) => a - b))
        for (const [i, outcome] of outcomes.entries()) {
          // None is refused because a later one overtook it.
          expect(outcome).toBeOneOf(['acknowledged', 'unknown'])
          if (outcome === 'acknowledged') expect(told).toContain(i)
        }
        node.forget(callee.id)
      },
    ),
    { numRuns: 150 },
  )
}, 240_000)
