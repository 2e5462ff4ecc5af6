import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { ExtendedClient, ExtendedClientOptions } from '@ringwire/testkit/extended-client'
import { candidate } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { check } from '../support/extended-check.ts'
import { Deployment, person } from './deployment.ts'

/** A third of the proxy's limit for silence, as with the defaults: 25 s and 75 s. */
const pingMs = 1_000
const silenceMs = 3 * pingMs
const drainMs = 4_000

interface InCall {
  readonly call_uuid: string
  readonly caller: ExtendedClient
  readonly callee: ExtendedClient
  readonly on: { caller: string; callee: string }
}

for (const name of ['nginx', 'haproxy'] as const) {
  describe(`two nodes behind ${name} that come and go`, () => {
    let deployment: Deployment
    let calls = 0

    beforeAll(async () => {
      const env = {
        RINGWIRE_PING_INTERVAL_MS: String(pingMs),
        RINGWIRE_DRAIN_MS: String(drainMs),
        RINGWIRE_WS_RATE: 'off',
      }
      deployment = await Deployment.start({ proxy: name, env, silenceMs })
    })
    afterEach(() => deployment?.closeAll())
    afterAll(() => deployment?.dispose())

    /**
     * Two people in a call, whom the proxy put on different nodes. It may still count a connection that was closed a moment
     * before, and put both on one: then two others are.
     */
    async function startCall(options: Partial<ExtendedClientOptions> = {}): Promise<InCall> {
      await deployment.balanced()
      for (let tries = 0; tries < 20; tries++) {
        const call = await tryCall(options)
        if (call.on.caller !== call.on.callee) return call
        await deployment.closeAll()
      }
      throw new Error('the proxy puts two people on one node, each time')
    }

    async function tryCall(options: Partial<ExtendedClientOptions>): Promise<InCall> {
      const ben = `ben-${++calls}`
      const caller = await deployment.connectExtended(`ann-${calls}`, 'customer', options)
      const callee = await deployment.connectExtended(ben, 'agent', options)
      const { data } = await caller.request('call.invite', { callee_user_id: ben, callee_role: 'agent' })
      const { call_uuid } = data
      await callee.request('call.accept', { call_uuid })
      await caller.next('call.accepted')
      const on = await deployment.nodesOf(call_uuid)
      return { call_uuid, caller, callee, on }
    }

    /** From its signal on, for half a second after its last socket is closed. */
    async function statusWhileDraining(node: Service): Promise<number> {
      for (;;) {
        const { status } = await fetch(`${node.url}/readyz`, { keepalive: false })
        if (status !== 200) return status
        await Bun.sleep(20)
      }
    }

    /** Offer and answer reach the other side, and one hangs up. */
    async function goesOn({ call_uuid, caller, callee }: InCall): Promise<void> {
      const sdp = 'x'.repeat(48 * 1024)
      await caller.request('webrtc.offer', { call_uuid, sdp: { type: 'offer', sdp } })
      expect((await callee.next('webrtc.offer')).data.sdp.sdp).toBe(sdp)
      await callee.request('webrtc.answer', { call_uuid, sdp: { type: 'answer', sdp } })
      expect((await caller.next('webrtc.answer')).data.sdp.sdp).toBe(sdp)
      await callee.request('call.end', { call_uuid })
      expect((await caller.next('call.ended')).data.reason).toBe('hangup')
    }

    test('peers on different nodes are in one call', async () => {
      await goesOn(await startCall())
    })

    test('kill -9: who was on the node comes back through the proxy, is on the other one, and the call goes on', async () => {
      const call = await startCall()
      const { call_uuid, caller, callee, on } = call
      const killed = deployment.node(on.caller)
      await killed.kill()
      expect((await caller.closed).code).toBe(1006)
      await callee.request('webrtc.ice_candidate', { call_uuid, candidate: { candidate: 'while away' } })
      const back = await caller.connect()
      expect(back.data.active_calls).toMatchObject([{ call_uuid, holds_place: true }])
      expect((await caller.next('webrtc.ice_candidate')).data.candidate.candidate).toBe('while away')
      expect(await deployment.nodesOf(call_uuid)).toEqual({ caller: on.callee, callee: on.callee })
      await goesOn(call)
      await killed.start()
    })

    test('SIGTERM: who was on the node resumes on the other one; no new socket opens on it, and none is refused', async () => {
      const call = await startCall()
      const { call_uuid, caller, on } = call
      const draining = deployment.node(on.caller)
      const ended = draining.terminate()
      const [{ code, reason }, status] = await Promise.all([caller.closed, statusWhileDraining(draining)])
      expect(code).toBe(1012)
      expect(reason).toContain('jitter_ms=')
      expect(status).toBe(503)
      // While it drains, and before the proxy can have looked.
      const others = await Promise.all(
        Array.from({ length: 10 }, (_, n) => deployment.connect(`other-${n}`, 'customer')),
      )
      expect((await caller.connect()).data).toMatchObject({
        recovered: true,
        active_calls: [{ call_uuid, holds_place: true }],
      })
      expect(await ended).toBe(0)
      // Everybody who was on it would be gone.
      for (const other of others) await other.settle()
      await goesOn(call)
      await draining.start()
    })

    test('[CLOSE] [RES1] a rolling restart: a call goes on through the restart of each node, and loses nothing', async () => {
      const call = await startCall({ persistent: true })
      const { call_uuid, caller, callee } = call
      let isTalking = true
      const relayOn = async (client: ExtendedClient) => {
        let n = 0
        for (; isTalking; n++) await client.request('webrtc.ice_candidate', candidate(call_uuid, n))
        return n
      }
      const relays = [relayOn(caller), relayOn(callee)]
      for (const node of deployment.nodes) {
        const id = node.env.RINGWIRE_NODE_ID ?? ''
        expect(await node.terminate()).toBe(0)
        // Both are on the other one.
        for (const place of Object.values(await deployment.nodesOf(call_uuid))) expect(place).not.toBe(id)
        await node.start()
        await deployment.reaches(id)
      }
      isTalking = false
      for (const sent of await Promise.all(relays)) expect(sent).toBeGreaterThan(20)
      for (const client of [caller, callee]) await client.settle()
      const { findings, counts } = check([caller.trace, callee.trace])
      const nothing = { lost: [], doubled: [], outOfOrder: [], seq: [], replies: [], order: [], notRecovered: [] }
      expect(findings).toEqual(nothing)
      // Each node had to be left by somebody, the second one by both.
      expect(counts.resumes).toBeGreaterThanOrEqual(3)
      await goesOn(call)
    })

    test('[HEALTH1] Redis is away: who is connected stays, nobody new gets in, and all is well when it is back', async () => {
      const there = [await deployment.connect('there-a', 'customer'), await deployment.connect('there-b', 'customer')]
      // `auth.ok` comes before what they find is read.
      for (const phone of there) await phone.settle()
      const { ws_url, token } = await deployment.issue(person('late', 'customer'))
      await deployment.redis.kill()
      await deployment.answers(503)
      const late = deployment.open(ws_url, { protocols: ['jwt', token] })
      // A node sends it away, or the proxy has none to ask.
      expect([1006, 1013]).toContain((await late.closed).code)
      for (const phone of there) await phone.settle()
      await deployment.redis.restart()
      await deployment.answers(200)
      await deployment.closeAll()
      await goesOn(await startCall())
    })

    test('a silent socket outlives the time limits of the proxy, because its node pings', async () => {
      await deployment.balanced()
      const phones = [await deployment.connect('idle-a', 'customer'), await deployment.connect('idle-b', 'customer')]
      // Three times as long as the proxy bears silence.
      await Promise.race([Bun.sleep(3 * silenceMs), ...phones.map(({ closed }) => closed)])
      for (const phone of phones) await phone.settle()
      await deployment.closeAll()

      for (const node of deployment.nodes) {
        await node.terminate()
        await node.start({ RINGWIRE_PING_INTERVAL_MS: String(100 * pingMs) })
      }
      await deployment.balanced()
      const silent = await deployment.connect('idle-c', 'customer')
      expect((await silent.closed).code).toBe(1006)
    })
  })
}
