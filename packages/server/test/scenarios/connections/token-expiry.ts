import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { inTime, soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { clockMs, earlyMs } from '../../support/clocks.ts'
import type { StartService } from './start.ts'

/** Enough to connect and to call, on a busy machine too; up to a second of it is lost by `exp`. */
const ttlMs = 6_000
const graceMs = 1_500
/** Expiry is looked at about twice a second; `exp` is in whole seconds. */
const slackMs = 2_500

/** A token ends, a call does not [WS5]. */
export function registerTokenExpiryScenarios(name: string, start: StartService): void {
  describe(`${name}: token expiry`, () => {
    let service: Service
    beforeAll(async () => {
      service = await start({
        RINGWIRE_TOKEN_TTL_S: String(ttlMs / 1000),
        RINGWIRE_TOKEN_GRACE_MS: String(graceMs),
      })
    })
    afterAll(() => service.dispose())
    const scenario = (what: string, work: () => Promise<void>) => test.concurrent(what, () => inTime(work))

    /** When the client's own token ends; from here it is expired, wherever it came from. */
    const expired = (since: number) => Bun.sleep(Math.max(0, since + ttlMs + clockMs - performance.now()))

    async function expectClosed(client: Client, after: number): Promise<void> {
      expect(await client.closed).toMatchObject({ code: 4401 })
      const waited = performance.now() - after
      expect(waited).toBeGreaterThan(graceMs - 2 * earlyMs)
      expect(waited).toBeLessThan(soon(graceMs + slackMs))
    }

    scenario('[WS5] an idle socket stays until the grace after expiry is over, then 4401', async () => {
      const before = Date.now()
      const issued = await service.issue({ user_id: someone('guest'), role: 'agent' })
      const expiresAt = Date.parse(issued.expires_at)
      expect(expiresAt).toBeWithin(before + ttlMs - 1_000 - clockMs, Date.now() + ttlMs + 1_000)
      const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
      expect(await client.closed).toMatchObject({ code: 4401 })
      expect(Date.now()).toBeWithin(expiresAt + graceMs - earlyMs, expiresAt + soon(graceMs + slackMs))
    })

    scenario(
      '[WS5] a call that began before expiry goes on after it, to its last verb; then the grace begins',
      async () => {
        const since = performance.now()
        const pair = await connectPair(service)
        const callUuid = await acceptedCall(pair)
        await expired(since)
        // Far past what an idle socket is given.
        await Bun.sleep(graceMs + slackMs)
        pair.caller.send('webrtc.offer', { call_uuid: callUuid, sdp: { type: 'offer', sdp: 'v=0' } })
        await pair.callee.next('webrtc.offer')
        pair.callee.send('webrtc.answer', { call_uuid: callUuid, sdp: { type: 'answer', sdp: 'v=0' } })
        await pair.caller.next('webrtc.answer')
        pair.caller.send('call.connected', { call_uuid: callUuid })
        pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
        await pair.callee.next('webrtc.ice_candidate')

        const data = { callee_user_id: pair.calleeId, callee_role: 'agent' }
        pair.caller.send('call.invite', data, 'too-late')
        expect(await pair.caller.error('too-late')).toMatchObject({ code: 'AUTH_TOKEN_INVALID' })
        pair.caller.send('call.invite', { ...data, call_uuid: callUuid }, 'repeat')
        expect(await pair.caller.error('repeat')).toMatchObject({ code: 'AUTH_TOKEN_INVALID' })

        const ended = performance.now()
        pair.callee.send('call.end', { call_uuid: callUuid })
        await pair.caller.next('call.ended')
        await Promise.all([expectClosed(pair.caller, ended), expectClosed(pair.callee, ended)])
      },
    )

    scenario('[WS5] ringing counts on both sides: it can be answered after expiry', async () => {
      const since = performance.now()
      const pair = await connectPair(service)
      const callUuid = await invite(pair.caller, pair.calleeId)
      await pair.callee.next('call.ringing')
      await expired(since)
      await Bun.sleep(graceMs + slackMs)
      pair.callee.send('call.accept', { call_uuid: callUuid })
      await pair.caller.next('call.accepted')
      const ended = performance.now()
      pair.caller.send('call.end', { call_uuid: callUuid })
      await pair.callee.next('call.ended')
      await Promise.all([expectClosed(pair.caller, ended), expectClosed(pair.callee, ended)])
    })

    scenario('[WS5] a call that ends within the grace after expiry begins the grace again', async () => {
      const since = performance.now()
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      await expired(since)
      await Bun.sleep(graceMs * 0.6)
      const ended = performance.now()
      pair.caller.send('call.end', { call_uuid: callUuid })
      await pair.callee.next('call.ended')
      await Promise.all([expectClosed(pair.caller, ended), expectClosed(pair.callee, ended)])
    })

    scenario('[WS5] a ring that stops after expiry, for a session that did not answer, begins the grace', async () => {
      const since = performance.now()
      const pair = await connectPair(service)
      const other = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      const callUuid = await invite(pair.caller, pair.calleeId)
      await other.next('call.ringing')
      await expired(since)
      await Bun.sleep(graceMs + slackMs)
      const stopped = performance.now()
      pair.callee.send('call.accept', { call_uuid: callUuid })
      await other.next('call.cancelled')
      await expectClosed(other, stopped)
      pair.callee.send('call.end', { call_uuid: callUuid })
      await pair.caller.next('call.ended')
    })

    scenario('[WS5] a socket that is closed for its token held nothing: nobody is told anything', async () => {
      const calleeId = someone('callee')
      const callee = await service.connect({ user_id: calleeId, role: 'agent' })
      expect(await callee.closed).toMatchObject({ code: 4401 })
      const callerToken = await service.connect({ user_id: someone('caller'), role: 'customer' })
      const data = { callee_user_id: calleeId, callee_role: 'agent' }
      callerToken.send('call.invite', data, 'r')
      expect((await callerToken.next('call.invited')).data.delivered).toBe(false)
      const successor = await service.connect({ user_id: calleeId, role: 'agent' })
      await successor.next('call.ringing')
    })
  })
}
