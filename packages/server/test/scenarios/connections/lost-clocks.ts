import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { ExtendedClient } from '@ringwire/testkit/extended-client'
import { acceptedCall, candidate, connectPair, invite } from '@ringwire/testkit/flows'
import { inTime, soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { clockMs, earlyMs } from '../../support/clocks.ts'
import { answeredCall, connectExtendedPair } from '../../support/extended-flows.ts'
import { candidateNumbers, range } from '../../support/network.ts'
import { recordOf } from '../../support/sessions.ts'
import { type StartService, withService } from './start.ts'

const callerLostMs = 900
const peerLostMs = 1_400
/** A timer makes it prompt, a sweep every 500 ms makes it sure. */
const slackMs = 1_500

/** How long a call waits for somebody who is gone [END3]. */
export function registerLostClockScenarios(name: string, start: StartService): void {
  const env = { RINGWIRE_CALLER_LOST_MS: String(callerLostMs), RINGWIRE_PEER_LOST_MS: String(peerLostMs) }

  describe(`${name}: lost clocks`, () => {
    let service: Service
    beforeAll(async () => {
      service = await start(env)
    })
    afterAll(() => service.dispose())

    const losses = ['die', 'close'] as const
    for (const loss of losses) {
      test.concurrent(`[END3] ringing, the caller is gone (${loss}): caller_lost, and both sides are told`, async () => {
        const pair = await connectPair(service)
        const callUuid = await invite(pair.caller, pair.calleeId)
        await pair.callee.next('call.ringing')
        const lost = performance.now()
        await pair.caller[loss]()
        const { data } = await pair.callee.next('call.cancelled')
        expect(performance.now() - lost).toBeWithin(callerLostMs - earlyMs, soon(callerLostMs + slackMs))
        expect(data).toMatchObject({ call_uuid: callUuid, status: 'cancelled', reason: 'caller_lost', by: null })
        const back = await service.connect({ user_id: pair.callerId, role: 'customer' })
        // It may hear it a moment after the other one.
        await back.next('call.cancelled')
        await back.settle()
        expect(back.events()).toEqual(['auth.ok', 'call.cancelled'])
      })

      for (const side of ['caller', 'callee'] as const) {
        test.concurrent(`[END3] accepted, the ${side} is gone (${loss}): peer_lost, and both sides are told`, async () => {
          const pair = await connectPair(service)
          const callUuid = await acceptedCall(pair)
          const other = side === 'caller' ? pair.callee : pair.caller
          const wish =
            side === 'caller' ? { user_id: pair.callerId, role: 'customer' } : { user_id: pair.calleeId, role: 'agent' }
          const lost = performance.now()
          await pair[side][loss]()
          const { data } = await other.next('call.ended')
          expect(performance.now() - lost).toBeWithin(peerLostMs - earlyMs, soon(peerLostMs + slackMs))
          expect(data).toMatchObject({ call_uuid: callUuid, status: 'ended', reason: 'peer_lost', by: null })
          const back = await service.connect(wish)
          await back.next('call.ended')
          await back.settle()
          expect(back.events().at(-1)).toBe('call.ended')
          expect(await recordOf(service, wish, callUuid)).toMatchObject({ status: 'ended', end_reason: 'peer_lost' })
        })
      }
    }

    test.concurrent('[END3] another device that only connects does not stop it', async () => {
      const pair = await connectPair(service)
      await acceptedCall(pair)
      await pair.callee.die()
      const laptop = await service.connect({ user_id: pair.calleeId, role: 'agent', device_id: 'laptop' })
      expect((await pair.caller.next('call.ended')).data.reason).toBe('peer_lost')
      await laptop.settle()
      expect(laptop.events()).toEqual(['auth.ok'])
    })

    test.concurrent('[END3] while it rings, a callee without sockets starts no clock', async () => {
      const pair = await connectPair(service)
      const callUuid = await invite(pair.caller, pair.calleeId)
      await pair.callee.next('call.ringing')
      await pair.callee.die()
      await Bun.sleep(Math.max(callerLostMs, peerLostMs) + slackMs)
      const back = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      await back.next('call.ringing')
      back.send('call.accept', { call_uuid: callUuid })
      await pair.caller.next('call.accepted')
    })
  })

  registerReturns(name, start)
  registerStandstill(name, start, env)
}

/** Clients that are back before the time is over, with room for a busy machine. */
function registerReturns(name: string, start: StartService): void {
  describe(`${name}: lost clocks that are stopped`, () => {
    const callerPatientMs = 4_000
    const peerPatientMs = 6_000
    let service: Service
    beforeAll(async () => {
      service = await start({
        RINGWIRE_CALLER_LOST_MS: String(callerPatientMs),
        RINGWIRE_PEER_LOST_MS: String(peerPatientMs),
      })
    })
    afterAll(() => service.dispose())
    const scenario = (what: string, work: () => Promise<void>) => test.concurrent(what, () => inTime(work))

    scenario('[END3] who is back in time stops the clock; it starts in full at the next loss', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      let holder = pair.callee
      for (let round = 0; round < 3; round++) {
        await holder.die()
        await Bun.sleep(peerPatientMs * 0.4)
        holder = await service.connect({ user_id: pair.calleeId, role: 'agent' })
        // Together these absences are longer than one may be.
        holder.send('webrtc.ice_candidate', candidate(callUuid, round))
        await pair.caller.next('webrtc.ice_candidate')
      }
      holder.send('call.end', { call_uuid: callUuid })
      await pair.caller.next('call.ended')
    })

    scenario('[END3] who came back and says nothing has stopped the clock, too', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      await pair.callee.die()
      const back = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      await Bun.sleep(peerPatientMs + slackMs)
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await back.next('webrtc.ice_candidate')
    })

    scenario(
      '[END3] ringing turns into the longer clock of an answered call where the callee answers first',
      async () => {
        const pair = await connectPair(service)
        const callUuid = await invite(pair.caller, pair.calleeId)
        await pair.callee.next('call.ringing')
        const lost = performance.now()
        await pair.caller.die()
        await Bun.sleep(callerPatientMs * 0.3)
        pair.callee.send('call.accept', { call_uuid: callUuid })
        expect((await pair.callee.next('call.ended')).data.reason).toBe('peer_lost')
        expect(performance.now() - lost).toBeGreaterThan(peerPatientMs - earlyMs)
      },
    )
  })
}

/** A service that stands still is away: nobody could come back, nobody could answer [END3]. */
function registerStandstill(name: string, start: StartService, env: Record<string, string>): void {
  const scenario = (what: string, more: Record<string, string>, run: (service: Service) => Promise<void>) =>
    test.concurrent(`${name}: ${what}`, () => inTime(() => withService(start, more, run)))

  scenario(
    '[END3] a service that stood still starts the lost clocks again in full',
    { ...env, RINGWIRE_PEER_LOST_MS: '3500' },
    async (service) => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      await pair.callee.die()
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 0))
      await pair.caller.settle()
      service.signal('SIGSTOP')
      await Bun.sleep(4_000)
      const resumed = performance.now()
      service.signal('SIGCONT')
      await pair.caller.settle()
      await Bun.sleep(1_200)
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await pair.caller.settle()
      expect(pair.caller.events()).not.toContain('call.ended')
      const back = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      await back.settle()
      expect(performance.now() - resumed).toBeLessThan(soon(3_500))
      expect(candidateNumbers(back)).toEqual(range(0, 2))
      pair.caller.send('call.end', { call_uuid: callUuid })
      await back.next('call.ended')
    },
  )

  scenario(
    '[WS6] [END3] a service that stood still closes nobody who answered meanwhile',
    { RINGWIRE_PING_INTERVAL_MS: '300', RINGWIRE_PONG_TIMEOUT_MS: '1500' },
    async (service) => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      for (let round = 0; round < 3; round++) {
        await pair.callee.nextPing()
        service.signal('SIGSTOP')
        await Bun.sleep(2_500)
        service.signal('SIGCONT')
        await pair.caller.settle()
      }
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await pair.callee.next('webrtc.ice_candidate')
      pair.callee.send('call.end', { call_uuid: callUuid })
      await pair.caller.next('call.ended')
    },
  )

  describe(`${name}: two who are gone`, () => {
    /** Enough to come back, and to tell the one from the other, on a busy machine too. */
    const shortMs = 3_000
    const longMs = 12_000
    let service: Service
    beforeAll(async () => {
      service = await start({
        RINGWIRE_CALLER_LOST_MS: String(shortMs),
        RINGWIRE_PEER_LOST_MS: String(longMs),
      })
    })
    afterAll(() => service.dispose())

    const baseCall = async () => {
      const pair = await connectPair(service)
      return { ...pair, callUuid: await acceptedCall(pair) }
    }
    const extendedCall = async () => {
      const pair = await connectExtendedPair(service)
      return { ...pair, callUuid: await answeredCall(pair) }
    }

    type Leaving = readonly [name: string, leave: (client: Client | ExtendedClient) => Promise<unknown>]
    const dies: Leaving = ['dies', (client) => client.die()]
    const closes = (code: number): Leaving => [
      `closes with ${code}`,
      (client) => (client instanceof ExtendedClient ? client.leave(code) : client.close(code)),
    ]
    const endings: readonly (readonly [extended: boolean, first: Leaving, second: Leaving, hasHungUp: boolean])[] = [
      [false, closes(1000), closes(1001), true],
      [false, closes(4000), closes(1001), true],
      [false, closes(1001), dies, false],
      [false, dies, closes(1001), false],
      [true, closes(1000), closes(1001), true],
      [true, closes(1001), closes(1001), true],
      [true, closes(1001), dies, false],
      [true, closes(1001), closes(4000), false],
    ]
    for (const [extended, [first, leaveFirst], [then, leaveThen], hasHungUp] of endings) {
      const who = extended ? 'extended' : 'base'
      test.concurrent(`[END5] the callee ${first}, the caller ${then}, ${who}: peer_lost after the ${hasHungUp ? 'shorter' : 'longer'} time`, async () => {
        const { caller, callee, callerId, callUuid } = await (extended ? extendedCall() : baseCall())
        await leaveFirst(callee)
        await leaveThen(caller)
        const wish = { user_id: callerId, role: 'customer' }
        let record = await recordOf(service, wish, callUuid)
        while (record.ended_at === null) {
          await Bun.sleep(50)
          record = await recordOf(service, wish, callUuid)
        }
        expect(record).toMatchObject({ status: 'ended', end_reason: 'peer_lost' })
        const lasted = Date.parse(record.ended_at) - Date.parse(record.accepted_at)
        const [least, most] = hasHungUp ? [shortMs, longMs] : [longMs, soon(longMs + slackMs)]
        expect(lasted).toBeWithin(least - clockMs, most)
      })
    }

    const timed = (what: string, work: () => Promise<void>) => test.concurrent(what, () => inTime(work))
    timed('[END5] where one of the two is back, the longer time counts again', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      await pair.callee.close(1001)
      await pair.caller.close(1001)
      const back = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      await Bun.sleep(shortMs + slackMs)
      const caller = await service.connect({ user_id: pair.callerId, role: 'customer' })
      back.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await caller.next('webrtc.ice_candidate')
    })
  })

  scenario(
    '[PLACE3] [END3] a service that stood still while it asked leaves the place to its live holder',
    { RINGWIRE_PROBE_TIMEOUT_MS: '1500' },
    async (service) => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      const second = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      await second.settle()
      for (let round = 0; round < 3; round++) {
        const asked = pair.callee.nextPing()
        second.send('call.end', { call_uuid: callUuid }, `end-${round}`)
        await asked
        // The answer is on its way, perhaps read, perhaps not.
        service.signal('SIGSTOP')
        await Bun.sleep(2_500)
        service.signal('SIGCONT')
        expect(await second.error(`end-${round}`)).toMatchObject({ code: 'CALL_NOT_PARTICIPANT' })
      }
      pair.callee.send('call.end', { call_uuid: callUuid })
      await pair.caller.next('call.ended')
    },
  )
}
