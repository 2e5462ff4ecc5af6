import { describe, expect, test } from 'bun:test'
import { invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { createManualClock, InProcessService, type ManualClock } from '../../support/in-process.ts'
import { quiet, request } from '../../support/sessions.ts'
import { people } from './groups.ts'

/** Turns of a group on a clock that stands still: what is early or late by a millisecond shows [GROUP1]. */

const turnMs = 5_000
const hourMs = 3_600_000
const inTurn = { strategy: 'in_turn', member_ring_ms: turnMs }

interface World {
  readonly clock: ManualClock
  readonly service: InProcessService
}

async function onManualClock(run: (world: World) => Promise<void>): Promise<void> {
  const clock = createManualClock()
  const service = new InProcessService(clock, { RINGWIRE_TOKEN_TTL_S: '86400' })
  try {
    await service.start()
    await run({ clock, service })
    expect(service.log).not.toContain('"level":"error"')
  } finally {
    await service.dispose()
  }
}

/** Time passes, and the service has looked at every call afterwards. */
async function pass({ service, clock }: World, ms: number): Promise<void> {
  const probe = await service.connect({ user_id: someone('probe'), role: 'customer' })
  await invite(probe, someone('nobody'), { ring_timeout_ms: ms })
  clock.advance(ms)
  await probe.next('call.missed')
  await probe.close()
}

describe('[GROUP1] [END3] turns', () => {
  for (const [name, ms] of [
    ['one hour ahead', hourMs],
    ['one hour back', -hourMs],
    ['two seconds back', -2_000],
  ] as const) {
    test.concurrent(`a wall clock that jumps ends no turn early and none late: ${name}`, () =>
      onManualClock(async (world) => {
        const { clock, service } = world
        const all = await people(service, { members: 2, group: inTurn })
        const [ann, ben] = all.members
        const call_uuid = crypto.randomUUID()
        const reply = await all.invite({ call_uuid })
        await ann?.next('call.ringing')
        clock.advance(2_000)
        clock.jump(ms)
        // A repeated invite shows the call's own clock.
        const isMoved = async () => {
          const again = await request(all.caller, 'call.invite', {
            ...{ callee_role: 'agent', callee_group: all.name, call_uuid },
          })
          return Date.parse(again?.data.expires_at) - Date.parse(reply?.data.expires_at) === ms
        }
        await until('the service follows the clock', isMoved)
        const tab = await service.connect({ user_id: all.ids[0] ?? '', role: 'agent' })
        expect((await tab.next('call.ringing')).data.ring_timeout_ms).toBe(turnMs - 2_000)
        await pass(world, turnMs - 2_001)
        await quiet(...all.members)
        expect(ann?.events()).toEqual(['auth.ok', 'call.ringing'])
        clock.advance(1)
        for (const one of [ann, tab])
          expect((await one?.next('call.cancelled'))?.data).toMatchObject({ reason: 'next_member', ended_at: null })
        await ben?.next('call.ringing')
      }))
  }

  test.concurrent('a turn that ran out while the service was away is over at the start, and the next one begins', () =>
    onManualClock(async ({ clock, service }) => {
      const all = await people(service, { members: 2, group: inTurn })
      const [ann] = all.members
      await all.invite()
      await ann?.next('call.ringing')
      await service.stop()
      clock.advance(20_000)
      await service.start()
      const back = await service.connect({ user_id: all.ids[1] ?? '', role: 'agent' })
      await until('the next one rings', async () => {
        clock.advance(100)
        return back.events().includes('call.ringing')
      })
      // A member who was passed over meanwhile is not rung.
      const late = await service.connect({ user_id: all.ids[0] ?? '', role: 'agent' })
      await quiet(late)
      expect(late.events()).not.toContain('call.ringing')
    }))
})
