/**
 * A push service of browsers (RFC 8030) on a loopback port, with browsers that subscribe there: VAPID is checked by
 * WebCrypto, what comes is decrypted by http_ece. Neither shares code with what is tested.
 */
import { createECDH, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
// @ts-expect-error it brings no types
import ece from 'http_ece'
import { Inbox } from './received.ts'

export interface WebPushed {
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Decrypted. */
  // biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
  readonly payload: any
  readonly bytes: number
}

export interface Browser {
  /** As PushSubscription.toJSON() gives it. */
  readonly subscription: { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } }
  readonly inbox: Inbox<WebPushed>
}

type Reply = (response: ServerResponse) => void

export interface WebPushServer {
  readonly url: string
  /** Requests so far, also those that were refused. */
  readonly requests: Inbox<{ path: string; status: number | undefined }>
  subscribe(): Browser
  /** The next requests are answered so, one each, before anything is looked at; null: never. */
  answers(...replies: (Reply | null)[]): void
  stop(): Promise<void>
}

export const status =
  (code: number, headers: Record<string, string> = {}): Reply =>
  (response) =>
    void response.writeHead(code, headers).end()

/** `publicKey`: what pages have subscribed with. */
export async function startWebPushServer(publicKey: string): Promise<WebPushServer> {
  const browsers = new Map<string, { ecdh: ReturnType<typeof createECDH>; auth: string; inbox: Inbox<WebPushed> }>()
  const requests: WebPushServer['requests'] = new Inbox()
  const replies: (Reply | null)[] = []

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const reply = replies.shift()
    if (reply === null) return requests.add({ path, status: undefined })
    if (reply !== undefined) reply(response)
    else response.writeHead(await handle(request, path, body)).end()
    requests.add({ path, status: response.statusCode })
  }

  async function handle(request: IncomingMessage, path: string, body: Buffer): Promise<number> {
    const browser = browsers.get(path)
    if (browser === undefined) return 404
    if (body.length > 4096) return 413
    if (request.method !== 'POST' || request.headers['content-encoding'] !== 'aes128gcm') return 400
    if (!/^\d+$/.test(String(request.headers.ttl))) return 400
    if (!/^[\w-]{0,32}$/.test(String(request.headers.topic ?? ''))) return 400
    if (!(await isOurs(String(request.headers.authorization), url(), publicKey))) return 403
    const { ecdh, auth, inbox } = browser
    const text = ece.decrypt(body, { version: 'aes128gcm', privateKey: ecdh, authSecret: auth }).toString()
    inbox.add({ headers: request.headers as WebPushed['headers'], payload: JSON.parse(text), bytes: body.length })
    return 201
  }

  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: url(),
    requests,
    subscribe() {
      const ecdh = createECDH('prime256v1')
      const p256dh = ecdh.generateKeys().toString('base64url')
      const auth = randomBytes(16).toString('base64url')
      const path = `/push/${randomBytes(16).toString('base64url')}`
      const inbox = new Inbox<WebPushed>()
      browsers.set(path, { ecdh, auth, inbox })
      return { subscription: { endpoint: url() + path, expirationTime: null, keys: { p256dh, auth } }, inbox }
    },
    answers: (...next) => void replies.push(...next),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** RFC 8292: signed by the key that pages subscribed with, for this service, for no more than a day. */
async function isOurs(header: string, origin: string, publicKey: string): Promise<boolean> {
  const [, token = '', k] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(header) ?? []
  if (k !== publicKey) return false
  const claims = await verifiedByWebCrypto(token, 'ES256', { raw: Buffer.from(publicKey, 'base64url') })
  const seconds = Number(claims?.exp) - Date.now() / 1000
  return claims?.aud === origin && seconds > 0 && seconds <= 86_400 && /^(mailto|https):/.test(String(claims.sub))
}

/** The claims of a JWT; undefined where the signature is not of that key. */
export async function verifiedByWebCrypto(
  token: string,
  alg: 'ES256' | 'RS256',
  key: { raw: Uint8Array } | { spki: Uint8Array },
): Promise<Record<string, unknown> | undefined> {
  const [head = '', body = '', signature = ''] = token.split('.')
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString())
  if (read(head).alg !== alg) return undefined
  const imported =
    alg === 'ES256'
      ? { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
      : { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  const [format, bytes] = 'raw' in key ? (['raw', key.raw] as const) : (['spki', key.spki] as const)
  const publicKey = await crypto.subtle.importKey(format, bytes as Uint8Array<ArrayBuffer>, imported, false, ['verify'])
  const signed = new TextEncoder().encode(`${head}.${body}`)
  const isGood = await crypto.subtle.verify(imported, publicKey, Buffer.from(signature, 'base64url'), signed)
  return isGood ? read(body) : undefined
}
