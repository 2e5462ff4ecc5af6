import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { clockMs } from '../../support/clocks.ts'
import { candidateNumbers, proven, range } from '../../support/network.ts'
import { errorCode, quiet, request } from '../../support/sessions.ts'
import type { StartService } from './start.ts'

/** Whose call it is, on each side: one place, one session [PLACE1, PLACE2, PLACE3, PLACE5]. */
export function registerPlaceScenarios(name: string, start: StartService): void {
  describe(`${name}: places`, () => {
    let service: Service
    beforeAll(async () => {
      service = await start({ RINGWIRE_WS_RATE: 'off' })
    })
    afterAll(() => service.dispose())

    const connect = (userId: string, role: string, device?: string): Promise<Client> =>
      service.connect({ user_id: userId, role, ...(device === undefined ? {} : { device_id: device }) })

    /** An accepted call; the callee on a device of this name. */
    async function call(device?: string) {
      const callerId = someone('caller')
      const calleeId = someone('callee')
      const caller = await connect(callerId, 'customer')
      const callee = await connect(calleeId, 'agent', device)
      const callUuid = await acceptedCall({ caller, callee, calleeId })
      const send = (from: number, to: number) => {
        for (const n of range(from, to)) caller.send('webrtc.ice_candidate', candidate(callUuid, n))
        return caller.settle()
      }
      return { caller, callee, callerId, calleeId, callUuid, send }
    }

    /** A second session next to the holder, who has shown that it is there [PLACE4]. */
    async function bystander(holder: Client, userId: string): Promise<Client> {
      const asked = holder.nextPing()
      const tab = await connect(userId, 'agent')
      await asked
      await holder.settle()
      return tab
    }

    const verbs = (callUuid: string): [string, object][] => [
      ['call.end', { call_uuid: callUuid }],
      ['call.reject', { call_uuid: callUuid }],
      ['call.connected', { call_uuid: callUuid }],
      ['webrtc.ice_candidate', candidate(callUuid, 1)],
      ['webrtc.offer', { call_uuid: callUuid, sdp: { type: 'offer', sdp: 'v=0' } }],
      ['webrtc.answer', { call_uuid: callUuid, sdp: { type: 'answer', sdp: 'v=0' } }],
    ]

    for (const device of [undefined, 'phone']) {
      const tabs = device === undefined ? 'two tabs on one token' : 'two sessions of one device_id'
      test(`[PLACE1] [PLACE3] ${tabs}: the one that does not hold the callee's place hears and does nothing`, async () => {
        const { caller, callee, calleeId, callUuid, send } = await call(device)
        const tab = await connect(calleeId, 'agent', device)
        for (const [event, data] of verbs(callUuid))
          expect(await errorCode(tab, event, data)).toBe('CALL_NOT_PARTICIPANT')
        expect(await errorCode(tab, 'call.accept', { call_uuid: callUuid })).toBe('CALL_ALREADY_ANSWERED')
        await send(0, 3)
        await quiet(caller, callee, tab)
        expect(candidateNumbers(callee)).toEqual([0, 1, 2])
        expect(tab.events().filter((event) => event !== 'call.error')).toEqual(['auth.ok'])
        expect(caller.events()).toEqual(['auth.ok', 'call.invited', 'call.accepted'])
        // The holder still speaks, and ends the call.
        callee.send('call.end', { call_uuid: callUuid })
        await caller.next('call.ended')
      })

      test(`[PLACE1] [PLACE3] ${tabs}: the one that did not invite hears and does nothing`, async () => {
        const callerId = someone('caller')
        const calleeId = someone('callee')
        const caller = await connect(callerId, 'customer', device)
        const tab = await connect(callerId, 'customer', device)
        const callee = await connect(calleeId, 'agent')
        const callUuid = await invite(caller, calleeId)
        await callee.next('call.ringing')
        for (const event of ['call.cancel', 'call.end']) {
          expect(await errorCode(tab, event, { call_uuid: callUuid })).toBe('CALL_NOT_PARTICIPANT')
        }
        expect(await errorCode(tab, 'webrtc.ice_candidate', candidate(callUuid, 1))).toBe('CALL_NOT_PARTICIPANT')
        callee.send('call.accept', { call_uuid: callUuid })
        await caller.next('call.accepted')
        await quiet(tab, callee)
        expect(tab.events().filter((event) => event !== 'call.error')).toEqual(['auth.ok'])
        expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
      })
    }

    test('[PLACE1] of the sessions that rang the winner alone goes on; the others hear answered_elsewhere', async () => {
      const pair = await connectPair(service)
      const others = [await connect(pair.calleeId, 'agent'), await connect(pair.calleeId, 'agent', 'laptop')]
      const callUuid = await invite(pair.caller, pair.calleeId)
      for (const client of [pair.callee, ...others]) await client.next('call.ringing')
      pair.callee.send('call.accept', { call_uuid: callUuid })
      for (const other of others) {
        const { data } = await other.next('call.cancelled')
        expect(data).toEqual({
          call_uuid: callUuid,
          status: 'accepted',
          reason: 'answered_elsewhere',
          by: { user_id: pair.calleeId, role: 'agent' },
          ended_at: null,
        })
      }
      pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await pair.callee.next('webrtc.ice_candidate')
      await quiet(...others)
      for (const other of others) expect(other.events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled'])
    })

    /** Another device that names the call hears when it may have the place, once the loss was seen, and waits for that. */
    async function tillItMayTake(client: Client, callUuid: string): Promise<void> {
      let wait: number | undefined
      while (wait === undefined) {
        expect(await errorCode(client, 'call.accept', { call_uuid: callUuid })).toBe('CALL_ALREADY_ANSWERED')
        const refused = await request(client, 'webrtc.ice_candidate', candidate(callUuid, 98))
        expect(refused?.error.code).toBe('CALL_NOT_PARTICIPANT')
        wait = refused?.error.retry_after_ms
      }
      // The clocks of two nodes may differ a little.
      expect(wait).toBeWithin(1, 6_000)
      await Bun.sleep(wait + clockMs)
    }

    const heirs: [string, string | undefined, string | undefined, boolean][] = [
      ['no device, then none', undefined, undefined, true],
      ['a device, then the same', 'phone', 'phone', true],
      ['a device, then another', 'phone', 'laptop', false],
      ['a device, then none', 'phone', undefined, false],
      ['no device, then one', undefined, 'phone', false],
    ]
    for (const [what, holder, heir, takes] of heirs) {
      const scenario = takes ? test : test.concurrent
      scenario(
        `[PLACE2] (b) ${what}: who connects after the loss ${takes ? 'takes the place with all that waited' : 'takes nothing by connecting'}`,
        async () => {
          const { callee, calleeId, callUuid, caller, send } = await call(holder)
          await callee.die()
          await send(0, 20)
          const successor = await connect(calleeId, 'agent', heir)
          await successor.settle()
          expect(candidateNumbers(successor)).toEqual(takes ? range(0, 20) : [])
          await send(20, 25)
          await successor.settle()
          expect(candidateNumbers(successor)).toEqual(takes ? range(0, 25) : [])
          // (c): naming the call takes it, on another device when the holder had time to come back; what waited comes first.
          if (!takes) await tillItMayTake(successor, callUuid)
          successor.send('webrtc.ice_candidate', candidate(callUuid, 99))
          await caller.next('webrtc.ice_candidate')
          await send(25, 30)
          await successor.settle()
          expect(candidateNumbers(successor)).toEqual(range(0, 30))
        },
      )
    }

    for (const holder of [undefined, 'phone']) {
      const device = holder === undefined ? 'without a device' : 'on a device'
      test.concurrent(`[PLACE2] (c) a holder ${device} that comes back when another one has its place is told, once`, async () => {
        const { callee, calleeId, callUuid, caller, send } = await call(holder)
        await callee.die()
        const laptop = await connect(calleeId, 'agent', 'laptop')
        await tillItMayTake(laptop, callUuid)
        expect(await errorCode(laptop, 'webrtc.ice_candidate', candidate(callUuid, 99))).toBeUndefined()
        const back = await connect(calleeId, 'agent', holder)
        expect((await back.next('call.cancelled')).data).toEqual({
          call_uuid: callUuid,
          status: 'accepted',
          reason: 'answered_elsewhere',
          by: { user_id: calleeId, role: 'agent' },
          ended_at: null,
        })
        await send(0, 3)
        const again = await connect(calleeId, 'agent', holder)
        await quiet(laptop, back, again)
        expect(candidateNumbers(laptop)).toEqual(range(0, 3))
        expect(back.events()).toEqual(['auth.ok', 'call.cancelled'])
        // A client without a sign of life for 3 s counts as gone: nobody knows whether it has read the notice.
        const isGone = await Promise.race([back.closed.then(() => true), Promise.resolve(false)])
        expect(again.events().slice(1)).toBeOneOf(isGone ? [[], ['call.cancelled']] : [[]])
        laptop.send('call.end', { call_uuid: callUuid })
        await caller.next('call.ended')
      })
    }

    test.concurrent('[PLACE2] (c) a holder whose call another device took only to end it is told how it ended', async () => {
      const { callee, calleeId, callUuid, caller } = await call('phone')
      await callee.die()
      const laptop = await connect(calleeId, 'agent', 'laptop')
      await tillItMayTake(laptop, callUuid)
      laptop.send('call.end', { call_uuid: callUuid })
      await caller.next('call.ended')
      const back = await connect(calleeId, 'agent', 'phone')
      expect((await back.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'hangup' })
      await quiet(laptop, back)
      expect(laptop.events().filter((event) => event !== 'call.error')).toEqual(['auth.ok'])
      expect(back.events()).toEqual(['auth.ok', 'call.ended'])
    })

    test('[PLACE2] never a session that was there before and says nothing', async () => {
      const { callee, calleeId, callUuid, caller, send } = await call()
      const tab = await bystander(callee, calleeId)
      await callee.die()
      await send(0, 5)
      await tab.settle()
      expect(tab.events()).toEqual(['auth.ok'])
      tab.send('call.connected', { call_uuid: callUuid }, 'connected')
      await tab.settle()
      expect(candidateNumbers(tab)).toEqual(range(0, 5))
      expect(tab.events()).not.toContain('call.error')
      tab.send('call.end', { call_uuid: callUuid })
      await caller.next('call.ended')
    })

    test('[PLACE2] a place taken by connecting passes on to a session that names the call, with the whole queue', async () => {
      const { callee, calleeId, callUuid, caller, send } = await call()
      const tab = await bystander(callee, calleeId)
      await callee.die()
      await send(0, 10)
      const second = await connect(calleeId, 'agent')
      await second.settle()
      expect(candidateNumbers(second)).toEqual(range(0, 10))
      // Also what the provisional holder has proven to have received: it may be the wrong one.
      await proven(second)
      await send(10, 15)
      tab.send('webrtc.ice_candidate', candidate(callUuid, 99))
      await caller.next('webrtc.ice_candidate')
      await tab.settle()
      expect(candidateNumbers(tab)).toEqual(range(0, 15))
      await send(15, 20)
      await quiet(tab, second)
      expect(candidateNumbers(tab)).toEqual(range(0, 20))
      expect(candidateNumbers(second)).toEqual(range(0, 15))
      // It is settled now: nobody else speaks for this side.
      expect(await errorCode(second, 'call.end', { call_uuid: callUuid })).toBe('CALL_NOT_PARTICIPANT')
    })

    test('[PLACE2] a place taken by connecting is settled by its holder’s own request', async () => {
      const { callee, calleeId, callUuid, caller } = await call()
      const tab = await bystander(callee, calleeId)
      await callee.die()
      const second = await connect(calleeId, 'agent')
      second.send('webrtc.ice_candidate', candidate(callUuid, 1))
      await caller.next('webrtc.ice_candidate')
      expect(await errorCode(tab, 'call.end', { call_uuid: callUuid })).toBe('CALL_NOT_PARTICIPANT')
    })

    test('[PLACE2] the caller, too: call.accepted and what followed it wait for who comes back', async () => {
      const { caller, callee, callerId, calleeId } = await connectPair(service)
      const callUuid = await invite(caller, calleeId)
      await callee.next('call.ringing')
      caller.send('webrtc.offer', { call_uuid: callUuid, sdp: { type: 'offer', sdp: 'v=0 early' } })
      await caller.settle()
      await caller.die()
      callee.send('call.accept', { call_uuid: callUuid })
      expect((await callee.next('webrtc.offer')).data.sdp.sdp).toBe('v=0 early')
      callee.send('webrtc.answer', { call_uuid: callUuid, sdp: { type: 'answer', sdp: 'v=0' } })
      for (const n of range(0, 5)) callee.send('webrtc.ice_candidate', candidate(callUuid, n))
      await callee.settle()
      const back = await connect(callerId, 'customer')
      await back.settle()
      expect(back.events()).toEqual([
        'auth.ok',
        'call.accepted',
        'webrtc.answer',
        ...range(0, 5).map(() => 'webrtc.ice_candidate'),
      ])
      expect(candidateNumbers(back)).toEqual(range(0, 5))
    })

    test('[PLACE2] a hand-over in a stream that never pauses: nothing lost, nothing twice, in order', async () => {
      const { callee, calleeId, callUuid, caller } = await call()
      let n = 0
      // Unproven messages count among the kept ones: a message that finds no room there is sent again [PLACE5].
      const step = async () => {
        const code = await errorCode(caller, 'webrtc.ice_candidate', candidate(callUuid, n))
        if (code === undefined) n++
        else expect(code).toBe('RELAY_BUFFER_FULL')
      }
      const clients: Client[] = [callee]
      for (let round = 0; round < 5; round++) {
        let here = false
        const connected = clients
          .at(-1)!
          .die()
          .then(() => connect(calleeId, 'agent'))
        connected.then(() => {
          here = true
        })
        // Fewer than are kept for a peer who is away [REL2].
        for (let i = 0; i < 40 || !here; i++) await (i < 200 ? step() : connected)
        const successor = await connected
        clients.push(successor)
        await successor.next('webrtc.ice_candidate', (it) => it.data.candidate.candidate === `candidate:${n - 1}`)
      }
      // The successor of a client that died gets its unproven messages again; nothing else is repeated.
      let known = 0
      for (const client of clients) {
        const numbers = candidateNumbers(client)
        const [first = known] = numbers
        expect(first).toBeLessThanOrEqual(known)
        expect(numbers).toEqual(range(first, first + numbers.length))
        known = Math.max(known, first + numbers.length)
      }
      expect(known).toBe(n)
    })

    test('[PLACE2] sessions that die while they take the place leave it to the one that stays', async () => {
      const { callee, calleeId, send } = await call()
      const token = await service.token({ user_id: calleeId, role: 'agent' })
      for (let round = 0; round < 10; round++) {
        if (round === 0) await callee.die()
        await send(round * 10, (round + 1) * 10)
        // One that still gave a sign of life would be a holder whom nobody succeeds by having been there before.
        const brief = [0, 1, 2].map(() => service.open(token, { answersPings: false }))
        await Promise.all(brief.map((client) => client.status))
        const dying = brief.map((client) => client.die())
        const stays = service.open(token)
        await Promise.all(dying)
        await stays.next('webrtc.ice_candidate', (it) => it.data.candidate.candidate === `candidate:${round * 10 + 9}`)
        const numbers = candidateNumbers(stays)
        expect(numbers).toEqual(range(numbers[0]!, (round + 1) * 10))
        await stays.die()
      }
    })

    test('[PLACE5] what was proven does not come again; what came after it does', async () => {
      const { callee, calleeId, send } = await call()
      await send(0, 10)
      await proven(callee)
      // The next ping may come as soon as a second later.
      callee.answersPings = false
      await send(10, 20)
      await callee.die()
      await send(20, 30)
      const successor = await connect(calleeId, 'agent')
      await successor.settle()
      expect(candidateNumbers(successor)).toEqual(range(10, 30))
    })

    test('[PLACE5] what a provisional holder had proven does not come again once the place is settled', async () => {
      const { callee, calleeId, callUuid, caller, send } = await call()
      await callee.die()
      await send(0, 10)
      const second = await connect(calleeId, 'agent')
      await second.settle()
      await proven(second)
      second.send('webrtc.ice_candidate', candidate(callUuid, 99))
      await caller.next('webrtc.ice_candidate')
      await second.die()
      await send(10, 15)
      const third = await connect(calleeId, 'agent')
      await third.settle()
      expect(candidateNumbers(third)).toEqual(range(10, 15))
    })

    // What a client may send, and a close frame without a code.
    const clientCodes = [1000, 1001, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 4000, 4999, null]
    for (const code of clientCodes) {
      test(`[PLACE5] a caller that closed its socket with ${code ?? 'no code'} finds what came meanwhile, in order`, async () => {
        const { caller, callee, callerId, calleeId } = await connectPair(service)
        const callUuid = await invite(caller, calleeId)
        await callee.next('call.ringing')
        await caller.close(code)
        callee.send('call.accept', { call_uuid: callUuid })
        for (const n of range(0, 5)) callee.send('webrtc.ice_candidate', candidate(callUuid, n))
        await callee.settle()
        expect(callee.events()).toEqual(['auth.ok', 'call.ringing'])
        const back = await connect(callerId, 'customer')
        await back.settle()
        expect(back.events()).toEqual(['auth.ok', 'call.accepted', ...range(0, 5).map(() => 'webrtc.ice_candidate')])
        callee.send('webrtc.ice_candidate', candidate(callUuid, 5))
        await back.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate === 'candidate:5')
        expect(candidateNumbers(back)).toEqual(range(0, 6))
      })
    }

    test('[PLACE5] what was sent on a socket before its client closed it is not sent again', async () => {
      const { callee, calleeId, send } = await call()
      await send(0, 10)
      await callee.settle()
      await callee.close(1001)
      await send(10, 20)
      const back = await connect(calleeId, 'agent')
      await back.settle()
      expect(candidateNumbers(callee)).toEqual(range(0, 10))
      expect(candidateNumbers(back)).toEqual(range(10, 20))
    })

    for (const side of ['callee', 'caller'] as const) {
      test(`[PLACE5] a ${side} that reloads right after the accept: the caller is told to offer anew, and its offer arrives`, async () => {
        const { caller, callee, callerId, calleeId } = await connectPair(service)
        const callUuid = await acceptedCall({ caller, callee, calleeId })
        const offer = (sdp: string) => ({ call_uuid: callUuid, sdp: { type: 'offer', sdp } })
        caller.send('webrtc.offer', offer('v=0 lost'))
        await callee.next('webrtc.offer')
        await (side === 'caller' ? caller : callee).close(1001)
        const back = await connect(side === 'caller' ? callerId : calleeId, side === 'caller' ? 'customer' : 'agent')
        const [offering, offered] = side === 'caller' ? [back, callee] : [caller, back]
        await offering.next('call.accepted', ({ data }) => data.call_uuid === callUuid)
        offering.send('webrtc.offer', offer('v=0 anew'))
        await offered.next('webrtc.offer', ({ data }) => data.sdp.sdp === 'v=0 anew')
        await quiet(offering, offered)
        const told = offering.events().filter((event) => event === 'call.accepted')
        expect(told).toHaveLength(side === 'caller' ? 1 : 2)
      })
    }

    /** A call whose caller offered, before the accept or after it, and has the answer and a candidate. */
    async function answeredCall(offers: 'early' | 'late', options: { answersPings: boolean }) {
      const [callerId, calleeId] = [someone('caller'), someone('callee')]
      const caller = await service.connect({ user_id: callerId, role: 'customer' }, options)
      const callee = await connect(calleeId, 'agent')
      const callUuid = await invite(caller, calleeId)
      const sdp = (type: 'offer' | 'answer', text = type as string) => ({
        call_uuid: callUuid,
        sdp: { type, sdp: `v=0 ${text}` },
      })
      if (offers === 'early') {
        caller.send('webrtc.offer', sdp('offer'))
        // Else the accept may be faster at another node.
        await caller.settle()
      }
      await callee.next('call.ringing')
      callee.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      if (offers === 'late') caller.send('webrtc.offer', sdp('offer'))
      await callee.next('webrtc.offer')
      callee.send('webrtc.ice_candidate', candidate(callUuid, 1))
      callee.send('webrtc.answer', sdp('answer'))
      await caller.next('webrtc.answer')
      const comeBack = async () => {
        await caller.die()
        const back = await connect(callerId, 'customer')
        await quiet(back, callee)
        return { back, told: back.events().slice(1) }
      }
      return { caller, callee, callUuid, sdp, comeBack }
    }

    test('[PLACE5] a cut just after the answer: the caller, whose call works, is told nothing twice', async () => {
      const cut = async () => {
        const { caller, comeBack } = await answeredCall('late', { answersPings: true })
        // The ping came with the answer: its pong goes first.
        await caller.settle()
        return (await comeBack()).told
      }
      expect(await Promise.all(Array.from({ length: 12 }, cut))).toEqual(Array.from({ length: 12 }, () => []))
    })

    test('[PLACE5] a cut anywhere in the first second: the accept is told again alone, or not at all', async () => {
      const cut = async (ms: number) => {
        const { comeBack } = await answeredCall('late', { answersPings: true })
        await Bun.sleep(ms)
        return (await comeBack()).told.join()
      }
      const told = await Promise.all(range(0, 12).map((n) => cut(n * 90)))
      // Between the two pongs only the answer is not proven: it fits no offer of the new holder.
      for (const events of told) expect(['', 'call.accepted', 'webrtc.answer']).toContain(events)
    })

    test('[PLACE5] a caller that is told of the accept again offers anew, and hears nothing of older answers', async () => {
      const { callee, sdp, comeBack } = await answeredCall('late', { answersPings: false })
      const { back, told } = await comeBack()
      expect(told).toEqual(['call.accepted'])
      back.send('webrtc.offer', sdp('offer', 'anew'))
      await callee.next('webrtc.offer', ({ data }) => data.sdp.sdp === 'v=0 anew')
      callee.send('webrtc.answer', sdp('answer', 'anew'))
      expect((await back.next('webrtc.answer')).data.sdp.sdp).toBe('v=0 anew')
    })

    test('[PLACE5] a caller that offered before the accept gets the answer again with it', async () => {
      const { comeBack } = await answeredCall('early', { answersPings: false })
      expect((await comeBack()).told).toEqual(['call.accepted', 'webrtc.ice_candidate', 'webrtc.answer'])
    })

    test('[PLACE5] call.connected stands for the pongs that did not come; an offer does not', async () => {
      const { caller, callUuid, comeBack } = await answeredCall('late', { answersPings: false })
      caller.send('call.connected', { call_uuid: callUuid })
      await caller.settle()
      expect((await comeBack()).told).toEqual([])
    })

    test('[PLACE5] of 40 callees that close and come back at once, on any node, each is offered anew, once', async () => {
      const reload = async () => {
        const { caller, callee, calleeId } = await connectPair(service)
        await acceptedCall({ caller, callee, calleeId })
        // The new page does not wait until the service has seen the old one go; it may come to another node.
        const closing = callee.close(1001)
        const back = await connect(calleeId, 'agent')
        await closing
        await caller.next('call.accepted')
        await quiet(caller, back)
        return caller.events().filter((event) => event === 'call.accepted').length
      }
      for (let round = 0; round < 4; round++) {
        expect(await Promise.all(Array.from({ length: 10 }, reload))).toEqual(Array.from({ length: 10 }, () => 2))
      }
    })

    test('[PLACE5] a caller that was away, and has yet to hear of the accept, is told once', async () => {
      for (const leave of ['close', 'die'] as const) {
        const { caller, callee, callerId, calleeId } = await connectPair(service)
        const callUuid = await invite(caller, calleeId)
        await callee.next('call.ringing')
        await caller[leave](1001)
        callee.send('call.accept', { call_uuid: callUuid })
        await callee.settle()
        await callee.close(1001)
        const calleeBack = await connect(calleeId, 'agent')
        await calleeBack.settle()
        const callerBack = await connect(callerId, 'customer')
        await callerBack.next('call.accepted')
        await quiet(callerBack, calleeBack)
        expect(callerBack.events()).toEqual(['auth.ok', 'call.accepted'])
      }
    })

    test('[PLACE5] who comes back from a failed network has lost nothing: nobody is asked for a new offer', async () => {
      const { caller, callee, calleeId, send } = await call()
      await callee.die()
      await send(0, 3)
      const back = await connect(calleeId, 'agent')
      await quiet(caller, back)
      expect(candidateNumbers(back)).toEqual(range(0, 3))
      expect(caller.events()).toEqual(['auth.ok', 'call.invited', 'call.accepted'])
    })

    test('[PLACE5] of 100 callees that reload within 40 ms of their accept none loses anything, or hears it twice', async () => {
      const numbersAfter = async (ms: number): Promise<number[]> => {
        const { caller, callee, calleeId } = await connectPair(service)
        const callUuid = await invite(caller, calleeId)
        const accepted = caller.next('call.accepted')
        const offered = accepted.then(async () => {
          for (const n of range(0, 4)) {
            caller.send('webrtc.ice_candidate', candidate(callUuid, n))
            await Bun.sleep(10)
          }
          await caller.settle()
        })
        await callee.next('call.ringing')
        callee.send('call.accept', { call_uuid: callUuid })
        await accepted
        await Bun.sleep(ms)
        await callee.close(1001)
        const back = await connect(calleeId, 'agent')
        await offered
        // Messages that wait at the previous session may come from another node.
        if (!candidateNumbers(callee).includes(3))
          await back.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':3'))
        await back.settle()
        return [...candidateNumbers(callee), ...candidateNumbers(back)]
      }
      // In parts, so that each of them is in time on a small machine.
      for (let from = 0; from < 100; from += 20) {
        const heard = await Promise.all(range(from, from + 20).map((each) => numbersAfter(each % 40)))
        expect(heard).toEqual(heard.map(() => range(0, 4)))
      }
    })

    test('[PLACE5] [WS4] the end of a call waits for the device that lost its place, and for no other', async () => {
      const { caller, callee, calleeId, callUuid } = await call('phone')
      await callee.die()
      caller.send('call.end', { call_uuid: callUuid })
      await caller.settle()
      const laptop = await connect(calleeId, 'agent', 'laptop')
      await laptop.settle()
      expect(laptop.events()).toEqual(['auth.ok'])
      const phone = await connect(calleeId, 'agent', 'phone')
      expect((await phone.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, reason: 'hangup' })
      // And to a request of its own the call is over, without an error [END1].
      expect(await errorCode(phone, 'call.end', { call_uuid: callUuid })).toBeUndefined()
      expect(await errorCode(phone, 'webrtc.ice_candidate', candidate(callUuid, 1))).toBeUndefined()
    })

    test('[PLACE5] what was sent before a queue was handed over comes before what follows, after many losses too', async () => {
      const { callee, calleeId, send } = await call()
      let holder = callee
      for (let round = 0; round < 6; round++) {
        await holder.die()
        await send(round * 30, round * 30 + 20)
        holder = await connect(calleeId, 'agent')
        await send(round * 30 + 20, (round + 1) * 30)
      }
      await holder.settle()
      const numbers = candidateNumbers(holder)
      expect(numbers).toEqual(range(numbers[0]!, 180))
    })
  })
}
