import { expect, test } from 'bun:test'
import { allMissing } from '../ports/missing-sessions.ts'
import { somebody } from '../ports/sessions.fixture.ts'
import { createSystemClock } from '../time/clock.ts'
import { createSteadyClock } from '../time/steady-clock.ts'
import { answered, connectPeer, done, eventsOf, invited, openDomains } from './domain.fixture.ts'
import { createRecovery } from './recovery.ts'

const openDomain = openDomains()

test('[RES3] a start asks about time only where a call’s time is over: to find nothing to do costs a read of each', async () => {
  const clock = createSystemClock()
  const at = clock.now()
  const domain = await openDomain({ clock })
  const pair = async () =>
    [await connectPeer(domain, { ...somebody(), role: 'customer' }), await connectPeer(domain, somebody())] as const
  await answered(domain, ...(await pair()))
  const rings = await invited(domain, ...(await pair()))
  const asked: string[] = []
  const recover = (now: number) =>
    createRecovery({
      ...domain,
      nodes: {
        self: 'next',
        isDead: () => true,
        isStillDead: async () => true,
        others: () => [],
        loads: () => [],
        tell() {},
        told() {},
      },
      calls: {
        ...domain.calls,
        run(ref, command) {
          if (command.type === 'time') asked.push(ref.callUuid)
          return domain.calls.run(ref, command)
        },
      },
      // It stands still: a second of a busy machine would be the rest of the ring.
      clock: createSteadyClock({ now: () => now, monotonic: () => 0 }),
      durations: { callerLostMs: 120_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 },
      finalsMs: 120_000,
    }).recover(allMissing())
  await recover(at + 44_000)
  expect(asked).toEqual([])
  await recover(clock.now() + 46_000)
  expect(asked).toEqual([rings])
})

test('[WS4] a start tells how calls ended before it, also where everybody was told and it was seconds ago', async () => {
  const before = await openDomain()
  const caller = await connectPeer(before, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(before, somebody())
  const callUuid = await invited(before, caller, callee)
  done(await before.calls.verb(caller.actor, 'cancel', callUuid, null))
  expect(eventsOf(callee)).toEqual(['call.ringing', 'call.cancelled'])
  await before.outbox.flush()
  // Another process over the same calls, with nothing in its memory.
  const clock = createSystemClock()
  const later = { now: () => clock.now() + 20_000, monotonic: clock.monotonic }
  const after = await openDomain({ store: () => before.store, clock: later })
  await after.recovery.recover(allMissing())
  const back = await connectPeer(after, callee.actor.participant)
  await after.sessions.collectFinals(back.identity)
  expect(eventsOf(back)).toEqual(['call.cancelled'])
})

test('[ORD3] a session that another node wrote again after a start had looked hears what is left for it', async () => {
  let isAway = false
  const before = await openDomain({ isAway: () => isAway })
  const caller = await connectPeer(before, { ...somebody(), role: 'customer' })
  const callee = await connectPeer(before, somebody())
  const { callUuid } = await answered(before, caller, callee)
  isAway = true
  done(await before.calls.verb(callee.actor, 'connected', callUuid, null))
  isAway = false
  const after = await openDomain({ before })
  await after.recovery.recover(allMissing())
  expect(eventsOf(caller)).toEqual(['call.accepted', 'call.status', 'call.peer_away'])
})
