import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { clockMs } from '../../support/clocks.ts'
import type { StartService } from './start.ts'

/** What a client finds when it connects [WS3, WS4]. */
export function registerArrivalScenarios(name: string, start: StartService): void {
  describe(`${name}: arrival`, () => {
    let service: Service
    beforeAll(async () => {
      service = await start({})
    })
    afterAll(() => service.dispose())

    test('[WS3] auth.ok comes first, with success at the top level and the identity in data', async () => {
      const userId = someone('gäst')
      const wish = { user_id: userId, role: 'agent', display_name: 'Ä "B" \u2028' }
      const first = await service.connect(wish)
      expect(first.all).toEqual([
        {
          event: 'auth.ok',
          success: true,
          data: { user_id: userId, role: 'agent', display_name: wish.display_name, socket_id: expect.any(String) },
        },
      ])
      const second = await service.connect(wish)
      const ids = [first, second].map((client) => client.all[0]!.data.socket_id as string)
      expect(new Set(ids).size).toBe(2)
      // 128 random bits behind a tag of three characters [ID2].
      for (const id of ids) expect(Buffer.from(id.slice(3), 'base64url')).toHaveLength(16)
    })

    test('[WS3] it comes before everything else, also where much is waiting', async () => {
      const calleeId = someone('callee')
      for (let i = 0; i < 5; i++) {
        const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
        await invite(caller, calleeId)
      }
      const callee = await service.connect({ user_id: calleeId, role: 'agent' })
      for (let i = 0; i < 5; i++) await callee.next('call.ringing')
      expect(callee.all[0]!.event).toBe('auth.ok')
    })

    test('[WS4] a call that rings is told with the time that remains', async () => {
      const calleeId = someone('callee')
      const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
      const began = Date.now()
      await invite(caller, calleeId, { ring_timeout_ms: 30_000 })
      const told = Date.now()
      const waitedMs = 2 * clockMs
      await Bun.sleep(waitedMs)
      const callee = await service.connect({ user_id: calleeId, role: 'agent' })
      const { data } = await callee.next('call.ringing')
      expect(data.ring_timeout_ms).toBeLessThanOrEqual(30_000 - waitedMs + clockMs)
      expect(data.ring_timeout_ms).toBeGreaterThan(20_000)
      expect(Date.parse(data.expires_at)).toBeWithin(began + 30_000 - soon(10), told + 30_000 + soon(10))
    })

    test('[WS4] in order: what rings, then what each place missed, then the ends of what rang on a dead socket', async () => {
      const agentId = someone('agent')
      const old = await service.connect({ user_id: agentId, role: 'agent' })
      const other = await connectPair(service)

      // A place with a queue: the agent calls, and is gone when it is answered.
      const outgoing = await invite(old, other.callerId, { callee_role: 'customer' })
      await other.caller.next('call.ringing')
      // A call that rings on the socket that dies, and ends before the agent is back.
      const lost = await service.connect({ user_id: someone('lost'), role: 'customer' })
      const missed = await invite(lost, agentId)
      await old.next('call.ringing')
      await old.die()
      lost.send('call.cancel', { call_uuid: missed })
      await lost.settle()
      other.caller.send('call.accept', { call_uuid: outgoing })
      for (let n = 0; n < 3; n++) other.caller.send('webrtc.ice_candidate', candidate(outgoing, n))
      await other.caller.settle()
      // Two calls that ring now.
      const ringing = []
      for (let i = 0; i < 2; i++) {
        const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
        ringing.push(await invite(caller, agentId))
      }

      const agent = await service.connect({ user_id: agentId, role: 'agent' })
      await agent.next('call.cancelled')
      expect(agent.all.map(({ event, data }) => [event, data.call_uuid])).toEqual([
        ['auth.ok', undefined],
        ...ringing.map((callUuid) => ['call.ringing', callUuid]),
        ['call.accepted', outgoing],
        ['webrtc.ice_candidate', outgoing],
        ['webrtc.ice_candidate', outgoing],
        ['webrtc.ice_candidate', outgoing],
        ['call.cancelled', missed],
      ])
      expect(agent.all.at(-1)!.data).toMatchObject({ status: 'cancelled', reason: 'caller_cancelled' })
    })

    test('[ORD3] a call that begins or ends while its callee connects is told once, and never after its end', async () => {
      const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
      const calleeId = someone('callee')
      const token = await service.token({ user_id: calleeId, role: 'agent' })
      for (let round = 0; round < 30; round++) {
        const callees = [0, 1, 2].map(() => service.open(token))
        caller.send('call.invite', { callee_user_id: calleeId, callee_role: 'agent' }, 'r')
        const late = service.open(token)
        const { data } = await caller.next('call.invited')
        caller.send('call.cancel', { call_uuid: data.call_uuid })
        const last = service.open(token)
        await caller.settle()
        for (const callee of [...callees, late, last]) {
          await callee.next('auth.ok')
          await callee.settle()
          // The end may still be on its way from another node.
          if (callee.events().at(-1) === 'call.ringing') await callee.next('call.cancelled')
          const events = callee.events().filter((event) => event !== 'auth.ok')
          expect([[], ['call.ringing', 'call.cancelled'], ['call.cancelled']]).toContainEqual(events)
          if (callees.includes(callee)) expect(callee.all[0]!.event).toBe('auth.ok')
          await callee.close()
        }
      }
    })

    test('[WS4] a final notice is told to one successor alone, and not to another device', async () => {
      const agentId = someone('agent')
      const connect = (device?: string) =>
        service.connect({ user_id: agentId, role: 'agent', ...(device === undefined ? {} : { device_id: device }) })
      const phone = await connect('phone')
      const caller = await service.connect({ user_id: someone('caller'), role: 'customer' })
      const callUuid = await invite(caller, agentId)
      await phone.next('call.ringing')
      await phone.die()
      caller.send('call.cancel', { call_uuid: callUuid })
      await caller.settle()
      for (const device of ['laptop', undefined]) {
        const other = await connect(device)
        await other.settle()
        expect(other.events()).toEqual(['auth.ok'])
      }
      const back = await connect('phone')
      expect((await back.next('call.cancelled')).data.call_uuid).toBe(callUuid)
      const again = await connect('phone')
      await again.settle()
      expect(again.events()).toEqual(['auth.ok'])
    })

    test('[WS4] who closed its socket while it rang hears how the call ended, once', async () => {
      const pair = await connectPair(service)
      const callUuid = await invite(pair.caller, pair.calleeId)
      await pair.callee.next('call.ringing')
      await pair.callee.close(1001)
      pair.caller.send('call.cancel', { call_uuid: callUuid })
      await pair.caller.settle()
      const back = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      expect((await back.next('call.cancelled')).data.call_uuid).toBe(callUuid)
      const again = await service.connect({ user_id: pair.calleeId, role: 'agent' })
      await again.settle()
      expect(again.events()).toEqual(['auth.ok'])
    })

    test('[ID1] the same user_id under another role finds nothing', async () => {
      const pair = await connectPair(service)
      const callUuid = await acceptedCall(pair)
      await pair.callee.die()
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await pair.caller.settle()
      const namesake = await service.connect({ user_id: pair.calleeId, role: 'customer' })
      await namesake.settle()
      expect(namesake.events()).toEqual(['auth.ok'])
    })
  })
}
