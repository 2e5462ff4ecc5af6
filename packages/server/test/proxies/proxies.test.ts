import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:tls'
import type { TokenRequest, TokenResponse } from '@ringwire/protocol/rest'
import { productKey, Service } from '../support/service.ts'
import { type ReverseProxy, startProxy } from './proxy.ts'

const tls = { rejectUnauthorized: false }

/** A socket as a browser's: texts in order, and how it closed. */
class Phone {
  readonly closed: Promise<{ code: number; reason: string }>
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever came and compare it.
  private readonly unread: any[] = []
  private wake: () => void = () => {}
  private readonly socket: WebSocket

  constructor(url: string, options: { protocols?: string[]; headers?: Record<string, string> }) {
    this.socket = new WebSocket(url, { ...options, tls } as never)
    this.closed = new Promise((resolve) => {
      this.socket.onclose = ({ code, reason }) => resolve({ code, reason })
    })
    this.socket.onmessage = ({ data }) => {
      this.unread.push(JSON.parse(String(data)))
      this.wake()
    }
  }

  send(event: string, data: object): void {
    this.socket.send(JSON.stringify({ event, data }))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the same.
  async next(event: string): Promise<any> {
    for (;;) {
      const message = this.unread.shift()
      if (message?.event === event) return message.data
      if (message === undefined) {
        await new Promise<void>((resolve) => {
          this.wake = resolve
        })
      }
    }
  }

  close(): void {
    this.socket.close(1000)
  }
}

for (const name of ['nginx', 'haproxy'] as const) {
  describe(`behind ${name}, with deploy/${name === 'nginx' ? 'nginx.conf' : 'haproxy.cfg'}`, () => {
    let service: Service
    let proxy: ReverseProxy

    beforeAll(async () => {
      service = await new Service({ RINGWIRE_TRUST_PROXY: '1', RINGWIRE_TOKEN_RATE_IP: '20/600' }).start()
      proxy = await startProxy(name, service.url)
      // The public address is known now; the port and the data stay.
      await service.terminate()
      await service.start({ RINGWIRE_PUBLIC_URL: proxy.url })
      await fetchOk(`${proxy.url}/readyz`)
    })
    afterAll(async () => {
      await proxy?.stop()
      await service?.dispose()
    })

    /** HAProxy looks once a second whether the service is there. */
    async function fetchOk(url: string): Promise<void> {
      for (let tries = 0; tries < 250; tries++) {
        if ((await fetch(url, { tls } as RequestInit)).status === 200) return
        await Bun.sleep(20)
      }
      throw new Error(`${url} does not answer 200`)
    }

    const askToken = (body: TokenRequest, headers: Record<string, string> = {}) =>
      fetch(`${proxy.url}/v1/call/session-token`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'X-SVC-Product-Key-ID': productKey.id,
          'X-SVC-Product-Secret': productKey.secret,
          ...headers,
        },
        body: JSON.stringify(body),
        tls,
      } as RequestInit)

    const person = (user_id: string, role: 'customer' | 'agent'): TokenRequest => ({
      user_id,
      role,
      context_type: 'order',
      context_id: '17',
      display_name: user_id,
      allowed_peer_role: role === 'customer' ? 'agent' : 'customer',
    })

    async function issue(body: TokenRequest): Promise<TokenResponse> {
      const answer = await askToken(body)
      expect(answer.status).toBe(200)
      return (await answer.json()) as TokenResponse
    }

    test('[TOK6] the token names the proxy, and a call with a large offer goes through it both ways', async () => {
      const [ann, ben] = [await issue(person('ann', 'customer')), await issue(person('ben', 'agent'))]
      expect(ann.ws_url).toBe(`${proxy.url.replace('https', 'wss')}/v1/ws`)
      const caller = new Phone(ann.ws_url, { protocols: ['jwt', ann.token] })
      const callee = new Phone(ben.ws_url, { headers: { Authorization: `Bearer ${ben.token}` } })
      expect((await caller.next('auth.ok')).user_id).toBe('ann')
      expect((await callee.next('auth.ok')).user_id).toBe('ben')
      caller.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent' })
      const { call_uuid } = await callee.next('call.ringing')
      callee.send('call.accept', { call_uuid })
      await caller.next('call.accepted')
      const sdp = 'x'.repeat(48 * 1024)
      caller.send('webrtc.offer', { call_uuid, sdp: { type: 'offer', sdp } })
      expect((await callee.next('webrtc.offer')).sdp.sdp).toBe(sdp)
      callee.send('webrtc.answer', { call_uuid, sdp: { type: 'answer', sdp } })
      expect((await caller.next('webrtc.answer')).sdp.sdp).toBe(sdp)
      callee.send('call.end', { call_uuid })
      expect((await caller.next('call.ended')).reason).toBe('hangup')
      for (const phone of [caller, callee]) phone.close()
    })

    test('[TOK1] the largest token passes in either header', async () => {
      const long = (text: string, bytes: number) => text.repeat(bytes / text.length)
      const large = { ...person(long('u', 255), 'customer'), display_name: long('n', 255), context_id: long('c', 255) }
      let { token, ws_url } = await issue({ ...large, context_type: long('t', 255), device_id: long('d', 255) })
      // What is missing to 3 KiB, as base64.
      const missing = Math.floor(((3 * 1024 - token.length) * 3) / 4) - '"app_version":"",'.length
      ;({ token, ws_url } = await issue({
        ...large,
        context_type: long('t', 255),
        device_id: long('d', 255),
        app_version: 'v'.repeat(Math.min(255, missing)),
      }))
      expect(token.length).toBeGreaterThan(2_500)
      for (const options of [{ protocols: ['jwt', token] }, { headers: { Authorization: `Bearer ${token}` } }]) {
        const phone = new Phone(ws_url, options)
        expect((await phone.next('auth.ok')).user_id).toBe(large.user_id)
        phone.close()
      }
    })

    test('[CLOSE] close codes of the service come through', async () => {
      const url = `${proxy.url.replace('https', 'wss')}/v1/ws`
      const stranger = new Phone(url, { protocols: ['jwt', 'no-token'] })
      expect((await stranger.closed).code).toBe(4401)
      const { token } = await issue(person('eve', 'customer'))
      const phone = new Phone(url, { protocols: ['jwt', token] })
      await phone.next('auth.ok')
      await service.terminate()
      const { code, reason } = await phone.closed
      expect(code).toBe(1012)
      expect(reason).toContain('jitter_ms=')
      await service.start({ RINGWIRE_PUBLIC_URL: proxy.url })
      await fetchOk(`${proxy.url}/readyz`)
    })

    test('[TOK5] limits count the client, and X-Forwarded-For of the client itself changes nothing', async () => {
      const statuses: number[] = []
      for (let n = 0; n < 25; n++) {
        const forged = { 'X-Forwarded-For': `198.51.100.${n}` }
        statuses.push((await askToken(person('ann', 'customer'), forged)).status)
      }
      expect(statuses).toContain(200)
      expect(statuses.at(-1)).toBe(429)
    })

    test('who is slow with a request is closed by the proxy', async () => {
      const { hostname, port } = new URL(proxy.url)
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
      socket.on('error', () => {})
      const { promise, resolve } = Promise.withResolvers<void>()
      socket.on('close', resolve)
      socket.resume()
      socket.write('GET /v1/ws HTTP/1.1\r\nHost: calls.example.com\r\n')
      await promise
    })
  })
}
