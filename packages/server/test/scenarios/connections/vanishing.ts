import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { candidate, invite, someone } from '@ringwire/testkit/flows'
import { inTime } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { answer, offer, recordOf } from '../../support/sessions.ts'
import type { StartService } from './start.ts'

/** The steps of a call; somebody vanishes right after one of them. */
const steps = ['invited', 'ringing', 'accept sent', 'accepted', 'offered', 'answered', 'connected'] as const
type Step = (typeof steps)[number]

const peerLostMs = 900
/** Enough for the steps before the accept. */
const ringTimeoutMs = 5_000

/** Somebody who vanishes at every step of a call, and comes back or not [PLACE2, END3, RING1]. */
export function registerVanishingScenarios(name: string, start: StartService): void {
  describe(`${name}: vanishing`, () => {
    let service: Service
    let impatient: Service
    beforeAll(async () => {
      service = await start({})
      impatient = await start({
        RINGWIRE_CALLER_LOST_MS: String(peerLostMs),
        RINGWIRE_PEER_LOST_MS: String(peerLostMs),
        RINGWIRE_RING_TIMEOUT_MS: String(ringTimeoutMs),
      })
    })
    afterAll(async () => {
      await service.dispose()
      await impatient.dispose()
    })
    const scenario = (what: string, work: () => Promise<void>) => test.concurrent(what, () => inTime(work))

    for (const step of steps) {
      for (const loss of ['die', 'close'] as const) {
        test.concurrent(`the callee vanishes (${loss}) after "${step}" and comes back: the call goes on to a normal end`, async () => {
          const call = await callUntil(service, step)
          await call.callee[loss]()
          const back = await service.connect(call.asCallee)
          if (!isAnswered(step)) {
            // Whether an accept in the same breath as the goodbye still counts depends on whether it was read.
            const accepted = call.caller.next('call.accepted')
            const rung = await Promise.any([back.next('call.ringing').then(() => true), accepted.then(() => false)])
            if (rung) back.send('call.accept', { call_uuid: call.callUuid })
            await accepted
          }
          await expectRelay(call.caller, back, call.callUuid)
          back.send('call.connected', { call_uuid: call.callUuid })
          back.send('call.end', { call_uuid: call.callUuid })
          expect((await call.caller.next('call.ended')).data).toMatchObject({ reason: 'hangup' })
          for (const wish of [call.asCaller, call.asCallee]) {
            expect(await recordOf(service, wish, call.callUuid)).toMatchObject({
              status: 'ended',
              end_reason: 'hangup',
            })
          }
        })
      }

      scenario(`the callee vanishes after "${step}" for good: the caller is told, the history is right`, async () => {
        const call = await callUntil(impatient, step)
        await call.callee.die()
        const over = await Promise.any([call.caller.next('call.missed'), call.caller.next('call.ended')])
        const reason = over.event === 'call.missed' ? 'no_answer' : 'peer_lost'
        expect(over.data).toMatchObject({ call_uuid: call.callUuid, reason })
        if (isAnswered(step)) expect(reason).toBe('peer_lost')
        const status = reason === 'no_answer' ? 'missed' : 'ended'
        for (const wish of [call.asCaller, call.asCallee]) {
          expect(await recordOf(impatient, wish, call.callUuid)).toMatchObject({ status, end_reason: reason })
        }
      })

      scenario(`the caller vanishes after "${step}" for good: the callee is told, the history is right`, async () => {
        const call = await callUntil(impatient, step)
        await call.caller.die()
        const over = await Promise.any([call.callee.next('call.cancelled'), call.callee.next('call.ended')])
        const reason = over.event === 'call.cancelled' ? 'caller_lost' : 'peer_lost'
        expect(over.data).toMatchObject({ call_uuid: call.callUuid, reason, by: null })
        if (isAnswered(step)) expect(reason).toBe('peer_lost')
      })
    }
  })
}

function isAnswered(step: Step): boolean {
  return steps.indexOf(step) >= steps.indexOf('accepted')
}

/** Plays a call up to a step. */
async function callUntil(service: Service, last: Step) {
  const asCaller = { user_id: someone('caller'), role: 'customer' }
  const asCallee = { user_id: someone('callee'), role: 'agent' }
  const caller = await service.connect(asCaller)
  const callee = await service.connect(asCallee)
  const callUuid = await invite(caller, asCallee.user_id)
  const call = { caller, callee, asCaller, asCallee, callUuid }
  const acts: Record<Exclude<Step, 'invited'>, () => unknown> = {
    ringing: () => callee.next('call.ringing'),
    'accept sent': () => callee.send('call.accept', { call_uuid: callUuid }),
    accepted: () => caller.next('call.accepted'),
    offered: async () => {
      caller.send('webrtc.offer', offer(callUuid))
      await callee.next('webrtc.offer')
    },
    answered: async () => {
      callee.send('webrtc.answer', answer(callUuid))
      await caller.next('webrtc.answer')
    },
    connected: async () => {
      for (const client of [caller, callee]) client.send('call.connected', { call_uuid: callUuid })
      await Promise.all([caller.settle(), callee.settle()])
    },
  }
  for (const step of steps) {
    if (step !== 'invited') await acts[step]()
    if (step === last) break
  }
  return call
}

async function expectRelay(a: Client, b: Client, callUuid: string): Promise<void> {
  // The one that came back speaks first: the place is its own from then on.
  b.send('webrtc.ice_candidate', candidate(callUuid, 1))
  await a.next('webrtc.ice_candidate')
  a.send('webrtc.ice_candidate', candidate(callUuid, 2))
  await b.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === 'candidate:2')
}
