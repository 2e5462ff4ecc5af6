import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { type TimelineEntry, TimelineShown } from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import { acceptedCall, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { inTime, until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { startWebPushServer, status, type WebPushServer } from '../../push/web-push-server.ts'
import { connectExtended } from '../../support/extended-flows.ts'
import { finish, type Start } from '../calls/composition.ts'
import { ask } from './calls.ts'

const isTimeline = createValidator(TimelineShown)
const address = '203.0.113.77'
const ecdh = createECDH('prime256v1')
ecdh.generateKeys()

/** What happened to a call, and why a phone did not ring [TRACE1]. */
export function registerTimelines(name: string, start: Start): void {
  describe(`timelines, ${name}`, () => {
    let push: WebPushServer
    let receiver: Receiver
    let running: Service
    beforeAll(async () => {
      push = await startWebPushServer(ecdh.getPublicKey().toString('base64url'))
      receiver = await openReceiver()
      running = await start({
        RINGWIRE_PING_INTERVAL_MS: '1000',
        // Enough for a pong on a busy machine, and found dead while it rings.
        RINGWIRE_PONG_TIMEOUT_MS: '2000',
        RINGWIRE_CALLER_LOST_MS: '2000',
        RINGWIRE_VAPID_PRIVATE_KEY: Buffer.concat([Buffer.alloc(32), ecdh.getPrivateKey()])
          .subarray(-32)
          .toString('base64url'),
        RINGWIRE_VAPID_SUBJECT: 'mailto:calls@example.com',
        RINGWIRE_VAPID_URL: push.url,
        RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
      })
    }, 240_000)
    afterAll(async () => {
      await finish(running)
      await receiver.close()
      await push.stop()
    })
    const service = () => running
    const asAgent = (user_id: string, device_id?: string) => ({
      user_id,
      role: 'agent',
      ...(device_id && { device_id }),
    })

    /** Once it has all of these; what other nodes saw comes a moment later. */
    async function timeline(callUuid: string, ...whats: string[]) {
      let found: TimelineShown | undefined
      await until(`${callUuid} has ${whats}`, async () => {
        const { status, body } = await ask(service(), 'GET', `calls/${callUuid}/timeline`)
        if (status === 404) return false
        expect(isTimeline(body).ok).toBe(true)
        found = body
        const left = body.entries.map(({ what }: TimelineEntry) => what)
        return whats.every((what) => {
          const at = left.indexOf(what)
          if (at >= 0) left.splice(at, 1)
          return at >= 0
        })
      })
      const shown = found as TimelineShown
      return { ...shown, of: (what: string) => shown.entries.filter((entry) => entry.what === what) }
    }

    /** A ring that is missed lasts 5 s, and who calls has to answer pings meanwhile. */
    const ofMissed = (what: string, work: () => Promise<void>) => test(what, () => inTime(work))
    async function missed(calleeId: string) {
      const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
      const callUuid = await invite(caller, calleeId, { ring_timeout_ms: 5_000 })
      return { caller, callUuid, isOver: () => caller.next('call.missed') }
    }

    test('[TRACE1] a call: who was rung, what was relayed, who hung up; no address and no SDP', async () => {
      const pair = await connectPair(service())
      const callUuid = await acceptedCall(pair)
      const candidate = `candidate:1 1 udp 2122260223 ${address} 54321 typ host generation 0`
      const sdp = `v=0\r\na=candidate:2 1 udp 1686052607 ${address} 1 typ srflx raddr ${address}\r\na=ice-ufrag:SeCrEt\r\n`
      pair.caller.send('webrtc.offer', { call_uuid: callUuid, sdp: { type: 'offer', sdp } })
      for (let n = 0; n < 3; n++) {
        pair.caller.send('webrtc.ice_candidate', { call_uuid: callUuid, candidate: { candidate, sdpMid: '0' } })
        await pair.callee.next('webrtc.ice_candidate')
      }
      // A relay is counted once the node of its sender knows that the other node has it, and not if the call has ended by then.
      await pair.caller.settle()
      pair.callee.send('call.end', { call_uuid: callUuid })
      await pair.caller.next('call.ended')
      const look = () => timeline(callUuid, 'rung', 'proven', 'relays', 'ended')
      let shown = await look()
      // Counts are written every 5 s: the first ones may be of the middle of the call.
      await until('all candidates are counted', async () => {
        shown = await look()
        return shown.of('relays')[0]?.detail.candidates === 3
      })
      expect(shown.entries[0]).toMatchObject({
        what: 'invited',
        who: { user_id: pair.callerId, role: 'customer' },
        detail: { version: 1 },
      })
      expect(shown.of('rung')[0]?.who).toEqual({ user_id: pair.calleeId, role: 'agent' })
      expect(shown.of('proven')[0]?.session_id).toBe(shown.of('rung')[0]?.session_id ?? '')
      expect(shown.of('relays').map(({ who, detail: { until: _, ...detail } }) => [who?.user_id, detail])).toEqual([
        [pair.callerId, { offers: 1, candidates: 3, candidate_types: { srflx: 1, host: 3 } }],
      ])
      expect(shown.of('ended')[0]).toMatchObject({
        who: { user_id: pair.calleeId, role: 'agent' },
        detail: { status: 'ended', end_reason: 'hangup' },
      })
      expect(shown.summary).toMatch(/hung up after .*; no media was reported\.$/)
      const text = JSON.stringify(shown)
      for (const secret of [address, 'SeCrEt', 'v=0']) expect(text).not.toContain(secret)
      const times = shown.entries.map(({ at }) => at)
      expect(times).toEqual(times.toSorted())
    })

    test('[TRACE1] nobody is there; a device is registered at a push service that the service has no credentials for', async () => {
      const calleeId = someone('callee')
      const put = await fetch(`${service().url}/v1/call/device`, {
        method: 'PUT',
        headers: { Authorization: `Bearer ${await service().token(asAgent(calleeId, 'phone'))}` },
        body: JSON.stringify({ platform: 'fcm', token: crypto.randomUUID() }),
      })
      expect(await put.json()).toMatchObject({ device_id: 'phone', pushes: false })
      const { callUuid, isOver } = await missed(calleeId)
      await isOver()
      const shown = await timeline(callUuid, 'invited', 'no_device', 'missed')
      expect(shown.of('no_device')).toMatchObject([
        { who: { user_id: calleeId, role: 'agent' }, detail: { connected: 0, registered: 1 } },
      ])
      expect(shown.summary).toMatch(
        /^Agent callee-\S+ was not connected, and the service cannot push to its 1 registered device; nobody answered/,
      )
    })

    ofMissed('[TRACE1] nobody is there, and no device is registered: the summary says so', async () => {
      const calleeId = someone('callee')
      const { callUuid, isOver } = await missed(calleeId)
      await isOver()
      const shown = await timeline(callUuid, 'invited', 'no_device', 'missed')
      expect(shown.of('no_device')[0]?.detail).toEqual({ connected: 0, registered: 0 })
      expect(shown.summary).toBe(`Agent ${calleeId} was not connected and has no registered device.`)
    })

    test('[TRACE1] a push that is accepted, and nobody comes; one that is refused; a webhook beside them', async () => {
      const calleeId = someone('callee')
      const browser = push.subscribe()
      const put = await fetch(`${service().url}/v1/call/device`, {
        method: 'PUT',
        headers: { Authorization: `Bearer ${await service().token(asAgent(calleeId, 'browser'))}` },
        body: JSON.stringify({ platform: 'webpush', subscription: browser.subscription }),
      })
      expect(put.status).toBe(200)
      const hook = await ask(service(), 'POST', 'webhooks', { url: receiver.url, events: ['call.ringing'] })
      await until('each node knows of it', async () => {
        const calls = await Promise.all(Array.from({ length: 4 }, () => missed(someone('callee'))))
        const told = () =>
          calls.every(({ callUuid }) => receiver.received.some(({ data }) => data.call_uuid === callUuid))
        for (const since = performance.now(); !told() && performance.now() - since < 500; ) await Bun.sleep(20)
        for (const { caller, callUuid } of calls) caller.send('call.cancel', { call_uuid: callUuid })
        return told()
      })
      const first = await missed(calleeId)
      await first.isOver()
      const accepted = await timeline(first.callUuid, 'push', 'push', 'webhook', 'missed')
      expect(accepted.of('webhook')[0]?.detail).toMatchObject({
        ...{ type: 'call.ringing', endpoint: hook.body.id, result: 'delivered', status: 200, attempt: 1 },
      })
      expect(accepted.of('push')[0]).toMatchObject({
        device_id: 'browser',
        detail: { type: 'call.wake', platform: 'webpush', result: 'accepted' },
      })
      expect(accepted.summary).toMatch(
        /was offline; push accepted by Web Push after .*, no client came within [\d.]+ s\.$/,
      )
      push.answers(status(403))
      const second = await missed(calleeId)
      await second.isOver()
      const refused = await timeline(second.callUuid, 'push', 'missed')
      expect(refused.summary).toMatch(/push refused by Web Push \(403.*\), no client came within [\d.]+ s\.$/)
    })

    ofMissed('[TRACE1] a socket that is dead, and found dead only by a ping', async () => {
      const calleeId = someone('callee')
      const callee = await service().connect(asAgent(calleeId, 'phone'))
      callee.answersPings = false
      const { callUuid, isOver } = await missed(calleeId)
      await isOver()
      const shown = await timeline(callUuid, 'rung', 'socket_lost', 'missed')
      expect(shown.of('proven')).toEqual([])
      const [lost] = shown.of('socket_lost')
      expect([lost?.device_id, lost?.session_id]).toEqual(['phone', shown.of('rung')[0]?.session_id])
      expect(String(lost?.detail.cause)).toStartWith('no pong')
      expect(shown.summary).toMatch(/^Agent callee-\S+'s socket was dead, and found so .* later \(no pong/)
    })

    ofMissed('[TRACE1] [RES1] who resumes after the ring was seen has proven it, though no pong did', async () => {
      const calleeId = someone('callee')
      const callee = await connectExtended(service(), asAgent(calleeId, 'phone'))
      callee.answersPings = false
      const { callUuid, isOver } = await missed(calleeId)
      await callee.next('call.ringing')
      // It has seen the ring, and its socket dies before anybody knows.
      await callee.die()
      await timeline(callUuid, 'rung', 'socket_lost')
      expect((await callee.connect()).data.recovered).toBe(true)
      await isOver()
      const shown = await timeline(callUuid, 'rung', 'socket_lost', 'socket_found', 'proven', 'missed')
      expect([shown.of('rung').length, shown.of('proven').length]).toEqual([1, 1])
      expect(shown.of('proven')[0]).toMatchObject({ device_id: 'phone', session_id: shown.of('rung')[0]?.session_id })
      expect(shown.summary).toMatch(
        /^The ring reached agent callee-\S+'s client \(phone\), which never said that it alerts; nobody answered/,
      )
      callee.stop()
    })

    test('[TRACE1] declined on one device of two', async () => {
      const calleeId = someone('callee')
      const [phone] = [
        await service().connect(asAgent(calleeId, 'phone')),
        await service().connect(asAgent(calleeId, 'desk')),
      ]
      const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
      const callUuid = await invite(caller, calleeId)
      await timeline(callUuid, 'rung', 'rung')
      phone.send('call.reject', { call_uuid: callUuid })
      await caller.next('call.rejected')
      const shown = await timeline(callUuid, 'rung', 'rung', 'rejected')
      expect(shown.of('rejected')[0]?.device_id).toBe('phone')
      expect(shown.summary).toMatch(/ declined on phone after [^(]*, so it stopped ringing at 1 other session\.$/)
    })

    test('[TRACE1] the caller is gone', async () => {
      const pair = await connectPair(service())
      const callUuid = await invite(pair.caller, pair.calleeId)
      await pair.callee.next('call.ringing')
      await pair.caller.die()
      await pair.callee.next('call.cancelled')
      const shown = await timeline(callUuid, 'place_lost', 'socket_lost', 'cancelled')
      expect(shown.summary).toMatch(
        / was gone: its socket was lost \(the connection was lost\), and nobody came back; /,
      )
    })

    test('[TRACE1] an invite that is refused is under the call_uuid that it named; nobody else is asked for one', async () => {
      const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
      const call_uuid = crypto.randomUUID()
      caller.send('call.invite', { call_uuid: call_uuid.toUpperCase(), callee_user_id: 'x', callee_role: 'boss' }, 'r')
      await caller.next('call.error')
      const shown = await timeline(call_uuid, 'refused')
      expect([shown.call, shown.of('refused')[0]?.detail]).toEqual([
        null,
        { code: 'CALL_PEER_ROLE_NOT_ALLOWED', peer_role: 'boss' },
      ])
      expect(shown.summary).toMatch(/ was refused, for its token allows no calls to the role boss\.$/)
      expect((await ask(service(), 'GET', `calls/${crypto.randomUUID()}/timeline`)).status).toBe(404)
    })

    test('[TRACE1] in the call of two others who is refused an invite of its uuid leaves nothing, and each of the two does', async () => {
      const pair = await connectPair(service())
      const callUuid = await invite(pair.caller, pair.calleeId)
      const stranger = await service().connect({ user_id: someone('stranger'), role: 'customer' })
      const refusedUuid = crypto.randomUUID()
      for (const call_uuid of [callUuid, callUuid.toUpperCase(), refusedUuid]) {
        stranger.send('call.invite', { call_uuid, callee_user_id: 'x', callee_role: 'boss' })
        await stranger.next('call.error')
      }
      pair.caller.send('call.invite', { call_uuid: callUuid, callee_user_id: 'x', callee_role: 'agent' })
      expect((await pair.caller.next('call.error')).error.code).toBe('CALL_ID_CONFLICT')
      pair.callee.send('call.invite', { call_uuid: callUuid, callee_user_id: 'x', callee_role: 'boss' })
      await pair.callee.next('call.error')
      // What the same process saw later is stored: what it saw before that would be, too.
      expect((await timeline(refusedUuid, 'refused')).call).toBeNull()
      const shown = await timeline(callUuid, 'invited', 'refused', 'refused')
      // Two that are refused in one millisecond come in either order.
      const who = shown.of('refused').map(({ who }) => who?.user_id)
      expect(new Set(who)).toEqual(new Set([pair.callerId, pair.calleeId]))
    })
  })
}
