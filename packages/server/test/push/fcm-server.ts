/**
 * Google's token endpoint and FCM's HTTP v1 API on a loopback port: assertions are checked by WebCrypto, tokens run out and
 * are taken back, devices are registered or not.
 */
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ServerFiles } from './apns-server.ts'
import { Inbox } from './received.ts'
import { verifiedByWebCrypto } from './web-push-server.ts'

export interface FcmServer {
  readonly url: string
  /** The key of the service account, as the console gives it. */
  readonly credentials: string
  readonly assertions: Inbox<Record<string, unknown> | undefined>
  // biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
  readonly messages: Inbox<any>
  // biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
  readonly validated: Inbox<any>
  /** Those that are never answered. */
  readonly unanswered: Inbox<true>
  register(token: string): void
  /** The app was removed: its token was one, and is one no more. */
  remove(token: string): void
  /** The next messages are answered so, one each; null: never. */
  answers(...replies: ({ status: number; error?: object; headers?: Record<string, string> } | null)[]): void
  /** The next request for an access token is answered once this has come. */
  grantsAfter(gate: Promise<unknown>): void
  /** The answer to the next request for an access token breaks off, or is this text. */
  breaksOff(): void
  grantsText(status: number, text: string): void
  /** Messages that met an access token which is good no more; the next answer to one comes once this has come. */
  readonly refused: Inbox<true>
  refusesAfter(gate: Promise<unknown>): void
  /** Access tokens that were given are good no more. */
  takeBack(): void
  stop(): Promise<void>
}

/** With TLS where it has a certificate. */
export async function startFcmServer(tls?: ServerFiles): Promise<FcmServer> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const spki = publicKey.export({ format: 'der', type: 'spki' })
  /** Whether a token is still one; others never were. */
  const tokens = new Map<string, boolean>()
  const given = new Set<string>()
  const replies: Parameters<FcmServer['answers']>[0][] = []
  const assertions: FcmServer['assertions'] = new Inbox()
  const messages: FcmServer['messages'] = new Inbox()
  const validated: FcmServer['validated'] = new Inbox()
  const unanswered: FcmServer['unanswered'] = new Inbox()
  const refused: FcmServer['refused'] = new Inbox()
  let gate: Promise<unknown> | undefined
  let refusalGate: Promise<unknown> | undefined
  let breaksOff = false
  let grantText: readonly [status: number, text: string] | undefined

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const reply = (status: number, value: object, headers: Record<string, string> = {}) =>
      void response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(value))
    if (request.url === '/token') {
      const granted = await grant(body)
      const [status, text] = grantText ?? [granted[0], JSON.stringify(granted[1])]
      grantText = undefined
      response.writeHead(status, { 'Content-Length': Buffer.byteLength(text) })
      if (!breaksOff) return void response.end(text)
      breaksOff = false
      return void response.write(text.slice(0, -1), () => response.destroy())
    }
    if (request.url !== '/v1/projects/calls-1042/messages:send') return reply(404, {})
    if (!given.has(String(request.headers.authorization).replace('Bearer ', ''))) {
      refused.add(true)
      const opened = refusalGate
      refusalGate = undefined
      await opened
      return reply(401, { error: { status: 'UNAUTHENTICATED' } })
    }
    const planned = replies.shift()
    if (planned === null) return unanswered.add(true)
    if (planned !== undefined) return reply(planned.status, { error: planned.error ?? {} }, planned.headers)
    const { message, validate_only: isTest = false } = JSON.parse(body)
    const isText = Object.values(message.data).every((value) => typeof value === 'string')
    if (!isText) return reply(400, { error: { status: 'INVALID_ARGUMENT' } })
    if (isTest) validated.add(message)
    const isRegistered = tokens.get(message.token)
    if (isRegistered === undefined) return reply(400, noToken)
    if (!isRegistered) return reply(404, unregistered)
    if (!isTest) messages.add(message)
    reply(200, { name: 'projects/calls-1042/messages/1' })
  }

  async function grant(body: string): Promise<[number, object]> {
    const form = new URLSearchParams(body)
    const claims = await verifiedByWebCrypto(form.get('assertion') ?? '', 'RS256', { spki })
    const opened = gate
    gate = undefined
    assertions.add(claims)
    await opened
    const isGood =
      form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer' &&
      claims?.iss === 'calls@calls-1042.iam.gserviceaccount.com' &&
      claims.aud === `${url}/token` &&
      claims.scope === 'https://www.googleapis.com/auth/firebase.messaging' &&
      Number(claims.exp) - Number(claims.iat) <= 3600
    if (!isGood) return [400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' }]
    const access_token = crypto.randomUUID()
    given.add(access_token)
    return [200, { access_token, expires_in: 3599, token_type: 'Bearer' }]
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => void answer(request, response)
  const files = tls && { cert: readFileSync(tls.cert), key: readFileSync(tls.key) }
  const server = files === undefined ? createServer(listener) : createTlsServer(files, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    credentials: JSON.stringify({
      type: 'service_account',
      project_id: 'calls-1042',
      private_key: privateKey.export({ format: 'pem', type: 'pkcs8' }),
      client_email: 'calls@calls-1042.iam.gserviceaccount.com',
      token_uri: `${url}/token`,
    }),
    assertions,
    messages,
    validated,
    unanswered,
    refused,
    refusesAfter(next) {
      refusalGate = next
    },
    breaksOff() {
      breaksOff = true
    },
    grantsText(status, text) {
      grantText = [status, text]
    },
    register: (token) => void tokens.set(token, true),
    remove: (token) => void tokens.set(token, false),
    answers: (...next) => void replies.push(...next),
    grantsAfter(next) {
      gate = next
    },
    takeBack: () => given.clear(),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** As FCM words it. */
const unregistered = {
  error: {
    code: 404,
    message: 'Requested entity was not found.',
    status: 'NOT_FOUND',
    details: [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode: 'UNREGISTERED' }],
  },
}

const noToken = {
  error: {
    code: 400,
    message: 'The registration token is not a valid FCM registration token',
    status: 'INVALID_ARGUMENT',
    details: [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode: 'INVALID_ARGUMENT' }],
  },
}
