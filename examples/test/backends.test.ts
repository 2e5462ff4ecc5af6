/** The backends in Python and PHP against the real service: tokens, webhooks, and the decision on invites. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '@ringwire/testkit/client'
import { freePort } from '@ringwire/testkit/ports'
import { type RunningProcess, startProcess } from '@ringwire/testkit/process'
import { productKey, Service } from '@ringwire/testkit/service'
import { requireSystem } from '../../scripts/system.mjs'

const folder = join(import.meta.dir, '..', 'backends')
const seconds = () => Math.floor(Date.now() / 1_000)
const languages = {
  Python: (port: number) => ({
    command: [requireSystem(['python3']).python3, join(folder, 'backend.py')],
    env: { PORT: String(port) },
    started: /listens on/,
  }),
  PHP: (port: number, seen: string) => ({
    command: [
      requireSystem(['php']).php,
      '-d',
      `session.save_path=${seen}`,
      '-S',
      `127.0.0.1:${port}`,
      join(folder, 'backend.php'),
    ],
    env: { SEEN_DIR: seen },
    started: /started/,
  }),
}

for (const [language, launch] of Object.entries(languages)) {
  describe(language, () => {
    const service = new Service({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
    const seen = mkdtempSync(join(tmpdir(), 'ringwire-seen-'))
    let backend: RunningProcess
    let url = ''
    const secrets = { webhook: '', invite: '' }

    /** As the product's own backend. */
    async function ask(method: string, path: string, body: object): Promise<Record<string, string>> {
      const response = await fetch(`${service.url}${path}`, {
        method,
        headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
        body: JSON.stringify(body),
      })
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
      return (await response.json()) as Record<string, string>
    }

    async function startBackend(env: Record<string, string> = {}): Promise<RunningProcess> {
      const { command, env: own, started } = launch(Number(new URL(url).port), seen)
      const running = startProcess(command, {
        RINGWIRE_URL: service.url,
        RINGWIRE_KEY_ID: productKey.id,
        RINGWIRE_KEY_SECRET: productKey.secret,
        WEBHOOK_SECRET: secrets.webhook,
        INVITE_SECRET: secrets.invite,
        ...own,
        ...env,
      })
      await running.waitFor(started)
      return running
    }

    beforeAll(async () => {
      await service.start()
      url = `http://127.0.0.1:${await freePort()}`
      const events = ['call.ringing', 'call.ended']
      secrets.webhook = (await ask('POST', '/v1/server/webhooks', { url: `${url}/webhooks`, events })).secret ?? ''
      const product = await ask('PATCH', '/v1/server/product', { invite_url: `${url}/invites` })
      secrets.invite = product.invite_secret ?? ''
      backend = await startBackend()
    }, 240_000)

    afterAll(async () => {
      await backend?.stop()
      await service.dispose()
      rmSync(seen, { recursive: true })
    })

    async function signIn(name: string): Promise<string> {
      const response = await fetch(`${url}/sign-in?name=${name}`, { method: 'POST' })
      expect(response.status).toBe(204)
      const cookie = response.headers.getSetCookie()[0] ?? ''
      expect(cookie).toMatch(/^session=.*HttpOnly/)
      expect(cookie).toContain('SameSite=Strict')
      return cookie.split(';')[0] ?? ''
    }

    async function connect(name: string): Promise<Client> {
      const headers = { cookie: await signIn(name) }
      const response = await fetch(`${url}/call-token`, { method: 'POST', headers })
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
      const { token } = (await response.json()) as { token: string }
      const client = service.open(token)
      await client.next('auth.ok')
      return client
    }

    const statusOf = async (path: string, init: RequestInit = {}) =>
      (await fetch(url + path, { method: 'POST', ...init })).status

    test('who is signed in gets a token, and nobody else', async () => {
      expect(await statusOf('/call-token')).toBe(401)
      expect(await statusOf('/call-token', { headers: { cookie: 'session=guessed' } })).toBe(401)
      expect(await statusOf('/sign-in?name=mallory')).toBe(403)
      expect(await statusOf('/sign-in')).toBe(403)
      expect(await statusOf('/nothing')).toBe(404)
    })

    test('a call rings, and its webhooks are verified and printed once', async () => {
      const [ann, ben] = [await connect('ann'), await connect('ben')]
      ann.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent' })
      const { call_uuid } = (await ben.next('call.ringing')).data
      await backend.waitFor(new RegExp(`call.ringing ${call_uuid}`))
      ben.send('call.accept', { call_uuid })
      await ann.next('call.accepted')
      ann.send('call.end', { call_uuid })
      await backend.waitFor(new RegExp(`call.ended ${call_uuid}`))
      await Promise.all([ann.close(), ben.close()])
    }, 240_000)

    test('the backend refuses the calls of somebody who is blocked', async () => {
      const [eve, ben] = [await connect('eve'), await connect('ben')]
      eve.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent' })
      const { data } = await eve.next('call.error')
      expect(data).toMatchObject({ error: { code: 'CALL_REFUSED', reason: 'blocked' } })
      await Promise.all([eve.close(), ben.close()])
    }, 240_000)

    test('a webhook that comes again is heeded once; one that is forged, old or changed is not heeded', async () => {
      const body = JSON.stringify({ type: 'call.tried', data: { call_uuid: 'once' } })
      const signed = (id: string, at: string, secret: string, text = body) =>
        `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
          .update(`${id}.${at}.${text}`)
          .digest('base64')}`
      const now = String(seconds())
      const deliver = (id: string, at: string, signature: string, text = body) => {
        const headers = { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature }
        return statusOf('/webhooks', { headers, body: text })
      }
      const right = signed('msg_1', now, secrets.webhook)
      expect(await deliver('msg_1', now, right)).toBe(204)
      expect(await deliver('msg_1', now, `v1,${'A'.repeat(43)}= ${right}`)).toBe(204)
      const old = String(seconds() - 301)
      const early = String(seconds() + 330)
      const refused = [
        await deliver('msg_2', now, right),
        await deliver('msg_1', now, right, body.replace('once', 'twice')),
        await deliver('msg_1', now, signed('msg_1', now, secrets.invite)),
        await deliver('msg_1', now, signed('msg_1', now, 'whsec_')),
        await deliver('msg_1', old, signed('msg_1', old, secrets.webhook)),
        await deliver('msg_1', early, signed('msg_1', early, secrets.webhook)),
        await deliver('msg_1', `${now}x`, signed('msg_1', `${now}x`, secrets.webhook)),
        await deliver('msg_1', now, ''),
        await deliver('msg_1', now, right.replace('v1,', 'v2,')),
        await statusOf('/webhooks', { body }),
        await statusOf('/invites', { body }),
      ]
      expect(refused).toEqual(refused.map(() => 401))
      // The backend prints webhooks in order, so once msg_3 is printed, the refused ones never will be.
      await deliver('msg_3', now, signed('msg_3', now, secrets.webhook))
      await backend.waitFor(/call\.tried once\n(.*\n)*call\.tried once\n/)
      expect(backend.out.match(/call.tried/g)).toHaveLength(2)
    }, 240_000)

    test('a refusal of Ringwire is passed on with its code; while Ringwire is away the answer is 503', async () => {
      await backend.stop()
      backend = await startBackend({ RINGWIRE_KEY_SECRET: 'wrong' })
      const refusal = await fetch(`${url}/call-token`, { method: 'POST', headers: { cookie: await signIn('ann') } })
      expect([refusal.status, JSON.stringify(await refusal.json())]).toEqual([
        401,
        expect.stringContaining('PRODUCT_AUTH_INVALID_SECRET'),
      ])
      await backend.stop()
      backend = await startBackend({ RINGWIRE_URL: 'http://127.0.0.1:1' })
      const away = await fetch(`${url}/call-token`, { method: 'POST', headers: { cookie: await signIn('ann') } })
      expect([away.status, await away.json()]).toEqual([503, { success: false, error: { code: 'RINGWIRE_AWAY' } }])
    }, 240_000)

    test('a setting that is missing is named', async () => {
      await backend.stop()
      if (language === 'Python') {
        const { command, env } = launch(0, seen)
        const running = startProcess(command, env)
        expect(await running.exited).toBe(1)
        expect(running.err).toMatch(/^Set RINGWIRE_URL, .*INVITE_SECRET: see README\.md/)
        return
      }
      backend = await startBackend({ WEBHOOK_SECRET: '' })
      expect(await statusOf('/webhooks', { body: '{}' })).toBe(500)
      await backend.waitFor(/Set WEBHOOK_SECRET: see README\.md/)
    }, 240_000)
  })
}
