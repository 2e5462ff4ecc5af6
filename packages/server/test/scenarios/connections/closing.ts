import { describe, expect, test } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { FrameLog } from '@ringwire/testkit/frame-log'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { soon } from '@ringwire/testkit/patience'
import { exchange, RawSocket } from '@ringwire/testkit/raw-socket'
import { upgradeHead } from '@ringwire/testkit/raw-websocket'
import type { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { type StartService, withService } from './start.ts'

/** Where a machine has to be in time for half a second. */
const mostTries = 6

/** The service goes [CLOSE 1012]. */
export function registerClosingScenarios(name: string, start: StartService): void {
  describe(`${name}: closing`, () => {
    test.concurrent('[CLOSE] SIGTERM: every client is closed with 1012 and a jitter hint, the exit code is 0', () =>
      withService(start, {}, async (service) => {
        const clients = []
        for (let i = 0; i < 30; i++) clients.push(await service.connect({ user_id: someone('guest'), role: 'agent' }))
        const exited = service.terminate()
        for (const client of clients) {
          const { code, reason } = await client.closed
          expect(code).toBe(1012)
          const jitterMs = Number(/jitter_ms=(\d+)$/.exec(reason)?.[1])
          expect(jitterMs).toBeWithin(1, 30_001)
        }
        expect(await exited).toBe(0)
        expect(service.log).not.toContain('"level":"error"')
      }))

    test.concurrent('[CLOSE] with nobody there it exits at once', () =>
      withService(start, {}, async (service) => {
        const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
        await client.close()
        expect(await service.terminate()).toBe(0)
      }))

    test.concurrent('[CLOSE] clients that are busy sending hear it, too', () =>
      withService(start, { RINGWIRE_WS_RATE: 'off' }, async (service) => {
        const clients: Client[] = []
        for (let i = 0; i < 20; i++) clients.push(await service.connect({ user_id: someone('guest'), role: 'agent' }))
        const busy = JSON.stringify({ event: 'test.unknown', data: { pad: 'x'.repeat(2000) } })
        const frames = Buffer.concat([busy, busy, busy].map((text) => encodeFrame(opcodes.text, text)))
        const pump = setInterval(() => {
          for (const client of clients) client.raw(frames)
        }, 2)
        await Promise.all(clients.map((client) => client.next('call.error')))
        const exited = service.terminate()
        const codes = await Promise.all(clients.map(async (client) => (await client.closed).code))
        clearInterval(pump)
        expect(new Set(codes)).toEqual(new Set([1012]))
        expect(await exited).toBe(0)
      }))

    test.concurrent('[CLOSE] a client that does not answer does not hold the exit up', () =>
      withService(start, {}, async (service) => {
        const proxy = await new TcpProxy(service.nextUrl()).start()
        const said = new FrameLog(proxy)
        await stallClient(service, proxy)
        const asked = performance.now()
        const exited = service.terminate()
        await said.until((it) => it.closeCode === 1012)
        expect(await exited).toBe(0)
        expect(performance.now() - asked).toBeLessThan(soon(5_000))
        proxy.stop()
      }))

    test.concurrent('[HEALTH1] while it closes: /readyz 503, upgrades SERVICE_DRAINING', () =>
      withService(start, {}, async (service) => {
        // It closes for half a second: on a machine that asks too late it is closed, and closes once more.
        for (let tries = 1; ; tries++) {
          const { url } = service
          const token = await service.token({ user_id: someone('late'), role: 'agent' })
          // Of several nodes, the one that still has somebody.
          const client = new Client({ url, token })
          await client.next('auth.ok')
          const [late, probe] = [new RawSocket(url), new RawSocket(url)]
          const exited = service.terminate()
          expect((await client.closed).code).toBe(1012)
          const [answer, ready] = await Promise.all([
            exchange(late, upgradeHead([`Sec-WebSocket-Protocol: jwt, ${token}`])),
            exchange(probe, 'GET /readyz HTTP/1.1\r\nHost: it\r\n\r\n'),
          ])
          expect(await exited).toBe(0)
          if (tries < mostTries && (answer.status === 0 || ready.status === 0)) {
            await service.start()
            continue
          }
          expect(answer.status).toBe(503)
          expect(JSON.parse(answer.body).error.code).toBe('SERVICE_DRAINING')
          expect(answer.head).toMatch(/retry-after: \d+/i)
          expect(ready.status).toBe(503)
          expect(JSON.parse(ready.body)).toMatchObject({ ok: false, service_ready: false })
          return
        }
      }))

    test.concurrent('[CLOSE] a second SIGTERM exits at once', () =>
      withService(start, {}, async (service) => {
        const codes: number[] = []
        // The service exits by itself after half a second. If the second signal comes too late for that, it starts again for another try.
        while (codes.at(-1) !== 143 && codes.length < mostTries) {
          if (codes.length > 0) await service.start()
          const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
          const first = service.terminate()
          await client.closed
          // Signals of one Ctrl-C come together: only one that comes later is a second one.
          await Bun.sleep(330)
          service.signal('SIGTERM')
          codes.push(await first)
        }
        expect(codes).toEqual([...codes.slice(1).map(() => 0), 143])
      }))

    test.concurrent('[RES3] a restart in between: the call goes on where it was, and ends with a right history', () =>
      withService(start, {}, async (service) => {
        const { caller, callee, callerId, calleeId } = await connectPair(service)
        const callUuid = await acceptedCall({ caller, callee, calleeId })
        expect(await service.terminate()).toBe(0)
        expect((await caller.closed).code).toBe(1012)
        await service.start()
        const again = {
          caller: await service.connect({ user_id: callerId, role: 'customer' }),
          callee: await service.connect({ user_id: calleeId, role: 'agent' }),
        }
        again.caller.send('webrtc.ice_candidate', candidate(callUuid, 7))
        expect((await again.callee.next('webrtc.ice_candidate')).data.candidate.candidate).toBe('candidate:7')
        again.callee.send('call.end', { call_uuid: callUuid })
        expect((await again.caller.next('call.ended')).data).toMatchObject({ call_uuid: callUuid, status: 'ended' })
        const history = await service.history(await service.token({ user_id: callerId, role: 'customer' }))
        expect(history.data[0]).toMatchObject({ call_uuid: callUuid, status: 'ended', end_reason: 'hangup' })
      }))
  })
}

async function stallClient(service: Service, proxy: TcpProxy): Promise<void> {
  const token = await service.token({ user_id: someone('guest'), role: 'agent' })
  const client = new Client({ url: proxy.url, passedOn: service.passedOn, token })
  await client.next('auth.ok')
  proxy.last.stall()
}
