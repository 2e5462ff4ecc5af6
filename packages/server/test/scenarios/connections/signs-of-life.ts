import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { FrameLog } from '@ringwire/testkit/frame-log'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import type { StartService } from './start.ts'

const pingIntervalMs = 1000
/** Enough for a pong on a busy machine. */
const pongTimeoutMs = 3_000
/** Signs of life are looked after about twice a second. */
const tickMs = 500

/** Many in each interval of pings, and few enough to leave the core to others. */
const betweenMessages = () => Bun.sleep(20)

/** Signs of life: clients that are there, and clients that are not [WS6]. */
export function registerSignsOfLifeScenarios(name: string, start: StartService): void {
  describe(`${name}: signs of life`, () => {
    let service: Service
    beforeAll(async () => {
      service = await start({
        RINGWIRE_PING_INTERVAL_MS: String(pingIntervalMs),
        RINGWIRE_PONG_TIMEOUT_MS: String(pongTimeoutMs),
        RINGWIRE_WS_RATE: 'off',
      })
    })
    afterAll(() => service.dispose())

    const guest = () => service.connect({ user_id: someone('guest'), role: 'agent' })

    test.concurrent('[WS6] an idle client is pinged at every interval, and its pongs keep it', async () => {
      const began = performance.now()
      const client = await guest()
      let before = performance.now()
      for (let nth = 1; nth <= 4; nth++) {
        await client.nextPing()
        const time = performance.now()
        // Not since the previous one, which may have been late on its way.
        expect(time - began).toBeGreaterThan(nth * pingIntervalMs - 200)
        expect(time - before).toBeLessThan(soon(pingIntervalMs + 3 * tickMs))
        before = time
      }
      await client.settle()
    })

    test.concurrent('[WS6] no pong: 4408, not before its time', async () => {
      // The ping itself may have been late on its way.
      const began = performance.now()
      const client = await guest()
      client.answersPings = false
      await client.nextPing()
      expect(await client.closed).toMatchObject({ code: 4408 })
      expect(performance.now() - began).toBeGreaterThan(pingIntervalMs + pongTimeoutMs - 100)
    })

    test.concurrent('[WS6] messages are no pong: a client that talks but never answers a ping goes, too', async () => {
      const client = await guest()
      client.answersPings = false
      let gone = false
      const closed = client.closed.then((it) => {
        gone = true
        return it
      })
      while (!gone) await Promise.race([client.settle().then(betweenMessages, () => {}), closed])
      expect(await closed).toMatchObject({ code: 4408 })
    })

    const strange: [string, (client: Client) => void][] = [
      ['an empty payload', (client) => client.raw(encodeFrame(opcodes.pong, ''))],
      [
        'a payload that was never sent',
        (client) => client.raw(encodeFrame(opcodes.pong, Buffer.from([255, 255, 0, 0]))),
      ],
      ['a payload of 125 bytes', (client) => client.raw(encodeFrame(opcodes.pong, Buffer.alloc(125)))],
    ]
    for (const [what, answer] of strange) {
      test.concurrent(`[WS6] a pong with ${what} proves nothing`, async () => {
        const client = await guest()
        client.answersPings = false
        answer(client)
        await client.nextPing()
        answer(client)
        expect(await client.closed).toMatchObject({ code: 4408 })
      })
    }

    test.concurrent('[WS6] a dead client is found although its peer keeps sending to it', async () => {
      const proxy = await new TcpProxy(service.nextUrl()).start()
      const said = new FrameLog(proxy)
      const { caller, callerId, calleeId } = await connectPair(service)
      const token = await service.token({ user_id: calleeId, role: 'agent' })
      const callee = new Client({ url: proxy.url, passedOn: service.passedOn, token })
      await callee.next('auth.ok')
      const callUuid = await acceptedCall({ caller, callee, calleeId })
      const link = proxy.last
      link.stall()
      let found = false
      const gone = said
        .until((it) => it.closeCode !== undefined)
        .then(() => {
          found = true
        })
      for (let n = 0; !found; n++) {
        caller.send('webrtc.ice_candidate', candidate(callUuid, n))
        // The socket is never idle for long.
        await Promise.race([caller.settle().then(betweenMessages), gone])
      }
      expect(said.closeCode).toBe(4408)
      await link.serverGone
      expect(callerId).toBeString()
      proxy.stop()
    })

    test.concurrent('[WS6] a client that is only slow is not dead: its pong came in time', async () => {
      const proxy = await new TcpProxy(service.nextUrl()).start()
      const token = await service.token({ user_id: someone('guest'), role: 'agent' })
      const client = new Client({ url: proxy.url, passedOn: service.passedOn, token })
      await client.next('auth.ok')
      proxy.last.delay(120)
      for (let i = 0; i < 3; i++) await client.nextPing()
      await client.settle()
      await client.close()
      proxy.stop()
    })

    test.concurrent('[WS6] a client that ends its half without a close frame is gone at once', async () => {
      const proxy = await new TcpProxy(service.nextUrl()).start()
      const { caller, callee, calleeId } = await connectPair(service)
      const token = await service.token({ user_id: calleeId, role: 'agent' })
      const second = new Client({ url: proxy.url, passedOn: service.passedOn, token })
      await second.next('auth.ok')
      const link = proxy.last
      link.halfClose('server')
      await link.serverGone
      await acceptedCall({ caller, callee, calleeId })
      proxy.stop()
    })
  })
}
