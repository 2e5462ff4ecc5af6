import type { KeyObject } from 'node:crypto'
import type { ClientHttp2Session } from 'node:http2'
import type { PushAddress } from '../ports/devices.ts'
import { signJwt } from './jwt.ts'
import { failedBy, type Pushed, type PushMessage, type PushService, retryAfterOf } from './service.ts'

/** A key of the Apple Push Notification service, and for which app. */
export interface ApnsCredentials {
  readonly key: KeyObject
  readonly keyId: string
  readonly teamId: string
  /** The bundle id of the app. */
  readonly topic: string
}

export const apnsUrls = {
  production: 'https://api.push.apple.com',
  sandbox: 'https://api.sandbox.push.apple.com',
} as const

/** Apple takes a token for an hour, and a new one every 20 minutes at the most. In ms. */
const tokenMs = 40 * 60_000
const youngMs = 20 * 60_000
/** How often a connection is pinged, and how long the answer may take. In ms. */
const pingEveryMs = 60_000
const pongMs = 5_000
/** The limits of an answer are those for strangers [HOOK4]: its bytes, and the informational answers before it. */
const maxReadBytes = 64 * 1024
const maxInformational = 8

export interface ApnsOptions {
  readonly credentials: ApnsCredentials
  /** By environment; tests have both in one place. */
  readonly urls: Readonly<Record<'production' | 'sandbox', string>>
  readonly now: () => number
  readonly pingEveryMs?: number
  readonly pongMs?: number
}

type DeviceToken = Extract<PushAddress, { platform: 'apns' }>

/** APNs over HTTP/2, with tokens. */
export function createApns(options: ApnsOptions): PushService<DeviceToken> {
  const { credentials, urls, now } = options
  const tokens = createProviderToken(credentials, now)
  const connections = createConnections(options)

  return {
    async send({ token, voip, environment }, message, signal) {
      const body = JSON.stringify(bodyOf(message, voip))
      const attempt = async () => {
        const { status, reason, retryAfter } = await connections.post(
          urls[environment],
          {
            ...headersOf(message, credentials.topic, voip),
            ':path': `/3/device/${token}`,
            authorization: tokens.header(),
          },
          body,
          signal,
        )
        return { ...resultOf(status, reason), ...retryAfterOf(retryAfter, now()) }
      }
      try {
        const first = await attempt()
        if (first.reason !== '403 ExpiredProviderToken' || !tokens.renew()) return first
        return await attempt()
      } catch (error) {
        return failedBy(error)
      }
    },
    close: connections.close,
  }
}

function headersOf({ callUuid, expiresAt }: PushMessage, topic: string, voip: boolean): Record<string, string> {
  return {
    ':method': 'POST',
    'apns-topic': voip ? `${topic}.voip` : topic,
    'apns-push-type': voip ? 'voip' : 'alert',
    'apns-priority': '10',
    'apns-expiration': String(Math.floor(expiresAt / 1000)),
    'apns-collapse-id': callUuid,
  }
}

/**
 * A VoIP push is handed to the app; an alert is shown by the phone, and an extension of the app may change it. The push
 * that the ring is over takes the place of the previous one, without a sound.
 */
function bodyOf({ type, payload }: PushMessage, voip: boolean): object {
  if (voip) return { aps: {}, ...payload }
  const { display_name: title = '' } = (payload.caller ?? {}) as { display_name?: string }
  const aps =
    type === 'call.wake'
      ? { alert: { title, body: 'Incoming call' }, sound: 'default', 'interruption-level': 'time-sensitive' }
      : { alert: { title, body: endOf(payload.status) }, 'interruption-level': 'passive' }
  return { aps: { ...aps, 'mutable-content': 1 }, ...payload }
}

function endOf(status: unknown): string {
  if (status === 'rejected') return 'Declined on another device'
  return status === 'missed' || status === 'cancelled' ? 'Missed call' : 'Answered on another device'
}

function resultOf(status: number, code: string): Pushed {
  const reason = code === '' ? String(status) : `${status} ${code}`
  if (status === 200) return { result: 'accepted', reason }
  if (status === 410) return { result: 'gone', reason }
  if (status === 413) return { result: 'too_large', reason }
  if (status === 429) return { result: 'limited', reason }
  return { result: status >= 500 ? 'failed' : 'refused', reason }
}

function createProviderToken({ key, keyId, teamId }: ApnsCredentials, now: () => number) {
  let known: { header: string; at: number } | undefined
  return {
    header(): string {
      if (known === undefined || now() - known.at > tokenMs) {
        const claims = { iss: teamId, iat: Math.floor(now() / 1000) }
        known = { header: `bearer ${signJwt('ES256', key, claims, { kid: keyId })}`, at: now() }
      }
      return known.header
    },
    /** False: it is so young that its age is not what is wrong with it. */
    renew(): boolean {
      if (known !== undefined && now() - known.at < youngMs) return false
      known = undefined
      return true
    },
  }
}

interface Answer {
  readonly status: number
  /** Apple's word for what is wrong; empty where nothing is. */
  readonly reason: string
  readonly retryAfter: string | undefined
}

/** Few services push to Apple: the module is loaded when the first push goes there. */
const http2 = () => process.getBuiltinModule('node:http2')

class ConnectionLost extends Error {
  readonly code = 'connection lost'
}

class TooLarge extends Error {
  readonly code = 'the answer is too large'
}

/** A connection, and the requests on it that are not answered yet. */
interface Connection {
  readonly session: ClientHttp2Session
  underWay: number
  /** It takes no more requests. */
  isRetired: boolean
}

/** One connection to each service, made when it is needed and replaced when it is silent or said goodbye. */
function createConnections({ pingEveryMs: everyMs = pingEveryMs, pongMs: limitMs = pongMs }: ApnsOptions) {
  const open = new Map<string, Connection>()

  function connectionTo(url: string): Connection {
    const known = open.get(url)
    if (known !== undefined && !known.session.closed && !known.session.destroyed) return known
    const session = http2().connect(url)
    const connection: Connection = { session, underWay: 0, isRetired: false }
    // Each request under way listens to it.
    session.setMaxListeners(0)
    const beat = setInterval(() => ping(session, limitMs), everyMs)
    beat.unref()
    const leave = () => {
      clearInterval(beat)
      if (open.get(url) === connection) open.delete(url)
    }
    session.on('error', leave)
    session.on('close', leave)
    // Requests that are under way may still get an answer; later ones go over a new connection.
    session.on('goaway', () => {
      leave()
      connection.isRetired = true
      if (connection.underWay === 0) session.destroy()
    })
    open.set(url, connection)
    return connection
  }

  async function post(
    url: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    signal.throwIfAborted()
    const connection = connectionTo(url)
    const { session } = connection
    connection.underWay++
    try {
      return await postOver(session, headers, body, signal)
    } catch (error) {
      // Nobody answers there, or it ended under the request: no later one is to wait for it, too. Who merely gives up,
      // as when the ring is over, says nothing of the connection.
      if (!signal.aborted || signal.reason?.name === 'TimeoutError') {
        if (open.get(url) === connection) open.delete(url)
        connection.isRetired = true
      }
      throw error
    } finally {
      connection.underWay--
      // Graceful ends that wait for the other side are not waited for.
      if (connection.isRetired && connection.underWay === 0) session.destroy()
    }
  }

  return {
    post,
    close() {
      for (const { session } of open.values()) session.destroy()
      open.clear()
    },
  }
}

function postOver(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const lost = () => reject(new ConnectionLost())
  const request = session.request(headers)
  const giveUp = () => {
    reject(signal.reason)
    request.close(http2().constants.NGHTTP2_CANCEL)
  }
  signal.addEventListener('abort', giveUp)
  session.once('error', reject)
  session.once('close', lost)
  let status = 0
  let retryAfter: string | undefined
  let text = ''
  let read = 0
  let informational = 0
  // The whole connection ends: a server that sends this sends more of it.
  const tooLarge = () => {
    reject(new TooLarge())
    session.destroy()
  }
  request.setEncoding('utf8')
  request.on('headers', () => {
    if (++informational > maxInformational) tooLarge()
  })
  request.on('response', (answer) => {
    status = Number(answer[':status'])
    retryAfter = answer['retry-after'] as string | undefined
  })
  request.on('data', (chunk: string) => {
    read += chunk.length
    if (read > maxReadBytes) tooLarge()
    else if (text.length < 4096) text += chunk
  })
  request.on('end', () => (status === 0 ? lost() : resolve({ status, reason: reasonOf(text), retryAfter })))
  request.on('error', reject)
  request.on('close', lost)
  request.end(body)
  return promise.finally(() => {
    signal.removeEventListener('abort', giveUp)
    session.off('error', reject)
    session.off('close', lost)
  })
}

function reasonOf(text: string): string {
  try {
    const { reason } = JSON.parse(text)
    return /^\w{1,64}$/.test(reason) ? reason : ''
  } catch {
    return ''
  }
}

function ping(session: ClientHttp2Session, limitMs: number): void {
  if (session.closed || session.destroyed) return
  const timer = setTimeout(() => session.destroy(), limitMs)
  timer.unref()
  try {
    session.ping((error) => {
      clearTimeout(timer)
      if (error) session.destroy()
    })
  } catch {
    session.destroy()
  }
}
