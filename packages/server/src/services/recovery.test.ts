import { expect, test } from 'bun:test'
import { somebody } from '../../test/contracts/session-parts.ts'
import { answered, connectPeer, invited, openDomains } from '../../test/support/domain.ts'
import { createSystemClock } from '../time/clock.ts'
import { createSteadyClock } from '../time/steady-clock.ts'
import { createRecovery } from './recovery.ts'

const openDomain = openDomains()

test('[RES3] a start asks about time only where a call’s time is over: to find nothing to do costs a read of each', async () => {
  const clock = createSystemClock()
  const domain = await openDomain({ clock })
  const pair = async () =>
    [await connectPeer(domain, { ...somebody(), role: 'customer' }), await connectPeer(domain, somebody())] as const
  await answered(domain, ...(await pair()))
  const rings = await invited(domain, ...(await pair()))
  const later = { now: () => clock.now() + 44_000, monotonic: clock.monotonic }
  const asked: string[] = []
  const recover = (now: typeof later) =>
    createRecovery({
      ...domain,
      nodes: { self: 'next', isDead: () => true, others: () => [], tell() {}, told() {} },
      calls: {
        ...domain.calls,
        run(ref, command) {
          if (command.type === 'time') asked.push(ref.callUuid)
          return domain.calls.run(ref, command)
        },
      },
      clock: createSteadyClock(now),
      durations: { callerLostMs: 120_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 },
      finalsMs: 120_000,
    }).recover(false)
  await recover(later)
  expect(asked).toEqual([])
  await recover({ ...later, now: () => clock.now() + 46_000 })
  expect(asked).toEqual([rings])
})
