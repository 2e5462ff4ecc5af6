import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { claimsOf, signingKeyEnv, signToken } from '../../support/session-tokens.ts'
import { answer, offer, quiet, request } from '../../support/sessions.ts'
import type { StartService } from './start.ts'

type Stage = 'ringing' | 'accepted' | 'connected' | 'ended'
const stages: readonly Stage[] = ['ringing', 'accepted', 'connected', 'ended']

/** Everything that can be said about a call. */
const requests = (callUuid: string): [string, object][] => [
  ['call.accept', { call_uuid: callUuid }],
  ['call.reject', { call_uuid: callUuid }],
  ['call.reject', { call_uuid: callUuid, reason: 'busy' }],
  ['call.cancel', { call_uuid: callUuid }],
  ['call.end', { call_uuid: callUuid }],
  ['call.connected', { call_uuid: callUuid }],
  ['webrtc.offer', offer(callUuid)],
  ['webrtc.answer', answer(callUuid)],
  ['webrtc.ice_candidate', candidate(callUuid, 1)],
]

/** Calls of others, and the wrong side of one's own [ID1, ENV5, REL1, END1]. */
export function registerStrangerScenarios(name: string, start: StartService): void {
  describe(`${name}: strangers`, () => {
    let service: Service
    beforeAll(async () => {
      service = await start({ ...signingKeyEnv, RINGWIRE_WS_RATE: 'off' })
    })
    afterAll(() => service.dispose())

    async function callIn(stage: Stage) {
      const pair = await connectPair(service)
      const callUuid = stage === 'ringing' ? await invite(pair.caller, pair.calleeId) : await acceptedCall(pair)
      if (stage === 'ringing') await pair.callee.next('call.ringing')
      if (stage === 'connected' || stage === 'ended') pair.caller.send('call.connected', { call_uuid: callUuid })
      if (stage === 'ended') {
        pair.caller.send('call.end', { call_uuid: callUuid })
        await pair.callee.next('call.ended')
      }
      await quiet(pair.caller, pair.callee)
      return { ...pair, callUuid }
    }

    /** People who have nothing to do with a call, however near they are. */
    async function strangersTo(pair: { callerId: string; calleeId: string }): Promise<[string, Client][]> {
      const token = await service.token({ user_id: pair.calleeId, role: 'agent' })
      const elsewhere = signToken({ ...claimsOf(token), product: 'another-product' })
      return [
        ['somebody else', await service.connect({ user_id: someone('stranger'), role: 'agent' })],
        ["the caller's user_id in the callee's role", await service.connect({ user_id: pair.callerId, role: 'agent' })],
        [
          "the callee's user_id in the caller's role",
          await service.connect({ user_id: pair.calleeId, role: 'customer' }),
        ],
        ['the callee of another product', await connectWith(service, elsewhere)],
      ]
    }

    for (const stage of stages) {
      test(`[ENV5] [REL1] a call that is ${stage}: to strangers it is not there, and its people hear nothing of them`, async () => {
        const { caller, callee, callUuid, ...ids } = await callIn(stage)
        const heard = [caller.events().length, callee.events().length]
        for (const [who, stranger] of await strangersTo(ids)) {
          for (const [event, data] of requests(callUuid)) {
            const toOthers = (await request(stranger, event, data))?.error
            const toNone = (await request(stranger, event, { ...data, call_uuid: crypto.randomUUID() }))?.error
            expect(toOthers, `${event} by ${who}`).toMatchObject({ code: 'CALL_NOT_FOUND' })
            // Somebody who guesses a call_uuid learns nothing: the answers are the same.
            expect(toOthers).toEqual(toNone)
          }
          expect(stranger.events().filter((event) => event !== 'call.error')).toEqual(['auth.ok'])
          await stranger.close()
        }
        expect([caller.events().length, callee.events().length]).toEqual(heard)
      })
    }

    test('[INV3] a call_uuid of strangers is no key to their call: the invite gets a call of its own', async () => {
      const { callUuid, caller, callee } = await callIn('accepted')
      const heard = [caller.events().length, callee.events().length]
      const stranger = await service.connect({ user_id: someone('stranger'), role: 'customer' })
      const other = someone('other')
      const reply = await request(stranger, 'call.invite', {
        callee_user_id: other,
        callee_role: 'agent',
        call_uuid: callUuid,
      })
      expect(reply?.data.call_uuid).not.toBe(callUuid)
      expect(reply?.data.status).toBe('ringing')
      await quiet(caller, callee)
      expect([caller.events().length, callee.events().length]).toEqual(heard)
    })

    test('[END1] the wrong side: accept and reject by the caller, cancel by the callee', async () => {
      for (const stage of ['ringing', 'accepted', 'connected'] as const) {
        const { caller, callee, callUuid } = await callIn(stage)
        for (const event of ['call.accept', 'call.reject']) {
          expect((await request(caller, event, { call_uuid: callUuid }))?.error.code).toBe('CALL_NOT_PARTICIPANT')
        }
        expect((await request(callee, 'call.cancel', { call_uuid: callUuid }))?.error.code).toBe('CALL_NOT_PARTICIPANT')
        await quiet(caller, callee)
        // The call is what it was.
        callee.send(stage === 'ringing' ? 'call.accept' : 'call.end', { call_uuid: callUuid })
        await caller.next(stage === 'ringing' ? 'call.accepted' : 'call.ended')
      }
    })

    test('[ENV5] a call_uuid in capitals names the same call [UUID1], anything else that is no UUID names none', async () => {
      const { caller, callee, callUuid } = await callIn('accepted')
      caller.send('webrtc.ice_candidate', candidate(callUuid.toUpperCase(), 1))
      expect((await callee.next('webrtc.ice_candidate')).data.call_uuid).toBe(callUuid)
      for (const near of [
        `${callUuid} `,
        `{${callUuid}}`,
        `urn:uuid:${callUuid}`,
        callUuid.replaceAll('-', ''),
        `${callUuid}shop`,
      ]) {
        expect((await request(caller, 'call.end', { call_uuid: near }))?.error).toMatchObject({
          code: 'INVALID_PAYLOAD',
          field: 'call_uuid',
        })
      }
    })

    test('[ENV5] a token that permits less: ACTION_NOT_ALLOWED', async () => {
      const { callUuid, calleeId } = await callIn('accepted')
      const token = await service.token({ user_id: calleeId, role: 'agent' })
      const reader = await connectWith(service, signToken({ ...claimsOf(token), allowed_actions: [] }))
      for (const [event, data] of requests(callUuid)) {
        expect((await request(reader, event, data))?.error).toMatchObject({ code: 'ACTION_NOT_ALLOWED' })
      }
      const data = { callee_user_id: 'x', callee_role: 'customer' }
      expect((await request(reader, 'call.invite', data))?.error).toMatchObject({ code: 'ACTION_NOT_ALLOWED' })
    })
  })
}

async function connectWith(service: Service, token: string): Promise<Client> {
  return service.connect({ user_id: 'unused' }, { token })
}
