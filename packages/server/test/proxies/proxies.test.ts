import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type ConnectionOptions, connect } from 'node:tls'
import type { TokenRequest } from '@ringwire/protocol/rest'
import { Deployment, person } from './deployment.ts'
import { tls } from './phone.ts'
import { nginxFiles, proxyFiles, startHaproxyWithin } from './proxy.ts'

for (const name of ['nginx', 'haproxy'] as const) {
  describe(`two nodes behind ${name}, with deploy/${proxyFiles[name]}`, () => {
    let deployment: Deployment

    beforeAll(async () => {
      deployment = await Deployment.start({ proxy: name, env: { RINGWIRE_TOKEN_RATE_IP: '30/600' } })
    })
    afterAll(() => deployment?.dispose())

    test('[TOK6] the token names the proxy, and a call with a large offer goes through it both ways', async () => {
      const [ann, ben] = [await issue(person('ann', 'customer')), await issue(person('ben', 'agent'))]
      expect(ann.ws_url).toBe(`${deployment.url.replace('https', 'wss')}/v1/ws`)
      const caller = deployment.open(ann.ws_url, { protocols: ['jwt', ann.token] })
      const callee = deployment.open(ben.ws_url, { headers: { Authorization: `Bearer ${ben.token}` } })
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

    const issue = (body: TokenRequest) => deployment.issue(body)

    test('[TOK1] the largest token, 3 KiB, passes in either header to either node', async () => {
      const { token, ws_url } = await issue(await largest())
      expect(token.length).toBeGreaterThan(3 * 1024 - 4)
      for (const options of [{ protocols: ['jwt', token] }, { headers: { Authorization: `Bearer ${token}` } }]) {
        const phones = [deployment.open(ws_url, options), deployment.open(ws_url, options)]
        for (const phone of phones) expect((await phone.next('auth.ok')).display_name).toContain('"n"n"n')
        for (const phone of phones) phone.close()
      }
    })

    /** A request whose token is as long as tokens may be: a quote takes two characters of it. */
    async function largest(): Promise<TokenRequest> {
      const text = '"n'.repeat(127)
      const fields = { context_id: text, device_id: text, display_name: text, context_type: text }
      const with_ = (version: string) => ({ ...person('ann', 'customer'), ...fields, app_version: version })
      const missing = 3 * 1024 - (await issue(with_('v'))).token.length
      // Four characters of a token are three of its JSON.
      const more = Math.floor((missing * 3) / 4)
      const version =
        '"'.repeat(Math.max(0, more - 200)) + 'v'.repeat(1 + Math.min(200, more) - Math.max(0, more - 200))
      expect((await deployment.askToken(with_(`${version}vvv`))).status).toBe(400)
      return with_(version)
    }

    test('[CLOSE] close codes of a node come through', async () => {
      const url = `${deployment.url.replace('https', 'wss')}/v1/ws`
      const stranger = deployment.open(url, { protocols: ['jwt', 'no-token'] })
      expect((await stranger.closed).code).toBe(4401)
      const phone = await deployment.connect('eve', 'customer')
      await Promise.all(deployment.nodes.map((node) => node.terminate()))
      const { code, reason } = await phone.closed
      expect(code).toBe(1012)
      expect(reason).toContain('jitter_ms=')
      await Promise.all(deployment.nodes.map((node) => node.start()))
      await deployment.answers(200)
    })

    test('TLS 1.3, and of 1.2 only forward-secret ciphers', async () => {
      const old = { maxVersion: 'TLSv1.2' } as const
      expect(await agreed({})).toBe('TLSv1.3')
      expect(await agreed({ ...old, ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' })).toBe('TLSv1.2')
      for (const ciphers of ['AES128-GCM-SHA256', 'AES256-SHA', 'ECDHE-RSA-AES128-SHA']) {
        expect([ciphers, await agreed({ ...old, ciphers })]).toEqual([ciphers, undefined])
      }
    })

    /** The version that proxy and client agree on; undefined where they do not. */
    function agreed(options: ConnectionOptions): Promise<string | undefined> {
      const { hostname, port } = new URL(deployment.url)
      const { promise, resolve } = Promise.withResolvers<string | undefined>()
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...options })
      socket.on('secureConnect', () => {
        resolve(socket.getProtocol() ?? undefined)
        socket.destroy()
      })
      socket.on('error', () => resolve(undefined))
      socket.on('close', () => resolve(undefined))
      return promise
    }

    if (name === 'nginx') {
      test('its file gives each connection two files, and each process gets them', async () => {
        const file = await Bun.file(new URL('../../../../deploy/nginx.conf', import.meta.url)).text()
        const number = (setting: string) => Number(new RegExp(`${setting} (\\d+);`).exec(file)?.[1])
        expect(number('worker_rlimit_nofile')).toBeGreaterThan(2 * number('worker_connections'))
        const limits = deployment.fileLimits()
        expect(limits).not.toBeEmpty()
        expect(limits).toEqual(limits.map(() => nginxFiles))
      })
    } else {
      test('its file needs two files for each connection: where there are fewer, the start says so and ends', async () => {
        const file = await Bun.file(new URL('../../../../deploy/haproxy.cfg', import.meta.url)).text()
        const [connections, enough] = [/maxconn (\d+)/, /`ulimit -n` has to be (\d+)/].map((it) =>
          Number(it.exec(file)?.[1]),
        )
        const { code, said } = startHaproxyWithin(4_000)
        expect([code, said]).toEqual([1, expect.stringContaining('limit is 4000')])
        const needed = Number(/Cannot raise FD limit to (\d+)/.exec(said)?.[1])
        expect(needed).toBeGreaterThan(2 * (connections as number))
        expect(needed).toBeLessThanOrEqual(enough as number)
      })
    }

    test('a third node comes in while the proxy runs: who is there stays, and the log says which node answered', async () => {
      const there = await Promise.all(['x', 'y'].map((id) => deployment.connect(`there-${id}`, 'customer')))
      const third = await deployment.addNode('three')
      const shown = name === 'nginx' ? `node=${new URL(third.url).host} said=200` : 'node=node3 '
      const asks = async () => fetch(`${deployment.url}/healthz?planted=query`, { keepalive: false, tls })
      for (let tries = 0; !deployment.log.includes(shown); tries++) {
        expect((await asks()).status).toBe(200)
        if (tries === 1_000) throw new Error(`the log never says ${shown}, but ${deployment.log.slice(-200)}`)
      }
      for (const phone of there) await phone.settle()
      await deployment.closeAll()
      expect(deployment.log).not.toContain('planted')
    })

    test('[TOK5] limits count the client over both nodes, and X-Forwarded-For of the client itself changes nothing', async () => {
      const statuses: number[] = []
      for (let n = 0; n < 35; n++) {
        const forged = { 'X-Forwarded-For': `198.51.100.${n}` }
        statuses.push((await deployment.askToken(person('ann', 'customer'), forged)).status)
      }
      expect(statuses).toContain(200)
      expect(statuses.at(-1)).toBe(429)
    })

    test('who is slow with a request is closed by the proxy', async () => {
      const { hostname, port } = new URL(deployment.url)
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
