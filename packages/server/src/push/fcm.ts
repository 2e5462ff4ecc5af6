import type { FcmCredentials } from '../config/push-keys.ts'
import { createAddressGuard } from '../outgoing/addresses.ts'
import { type Answer, createPost, type Post } from '../outgoing/post.ts'
import type { PushAddress } from '../ports/devices.ts'
import { signJwt } from './jwt.ts'
import { failedBy, type Pushed, type PushMessage, type PushService, retryAfterOf, secondsLeft } from './service.ts'

const scope = 'https://www.googleapis.com/auth/firebase.messaging'
/** An access token has 2 KiB at the most, and an error says why at length. In bytes. */
const answerBytes = 16 * 1024
/** A new access token is fetched this long before the previous one is over, in ms. */
const renewMs = 60_000

export interface FcmOptions {
  readonly credentials: FcmCredentials
  /** The origin of the service. */
  readonly url: string
  readonly now: () => number
  /** How long a request for an access token may take, in ms. */
  readonly accessMs?: number
  /** FCM looks at each message, and delivers none. */
  readonly validateOnly?: boolean
}

type Registration = Extract<PushAddress, { platform: 'fcm' }>

/** FCM over its HTTP v1 API. */
export function createFcm(options: FcmOptions): PushService<Registration> {
  const { credentials, url, now, accessMs = 5_000, validateOnly = false } = options
  // Both are the operator's choice. Their answers have the limits of all others.
  const trusted = [url, new URL(credentials.tokenUrl).origin]
  const post = createPost({ guard: createAddressGuard([]), trusted, shownBytes: answerBytes })
  const access = createAccess(credentials, post, now, accessMs)
  const target = `${url}/v1/projects/${credentials.projectId}/messages:send`

  async function attempt(body: string, token: string, signal: AbortSignal): Promise<Pushed> {
    const answer = await post({
      url: target,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
      signal,
    })
    if (!answer.ok) return unanswered(answer)
    const code = answer.status === 200 ? undefined : errorCodeOf(readObject(answer.body))
    return { ...resultOf(answer.status, code), ...retryAfterOf(answer.retryAfter, now()) }
  }

  return {
    async send({ token }, message, signal) {
      const sent = { token, ...messageOf(message, now()) }
      const body = JSON.stringify({ ...(validateOnly && { validate_only: true }), message: sent })
      try {
        const used = await access.token(signal)
        const first = await attempt(body, used, signal)
        // A token that was taken back before its time: with a new one it goes, or it never does.
        if (first.reason !== '401') return first
        access.drop(used)
        return await attempt(body, await access.token(signal), signal)
      } catch (error) {
        return error instanceof AccessRefused ? { result: 'refused', reason: error.message } : failedBy(error)
      }
    },
    close: access.close,
  }
}

/** Only data: the app shows the call. Values are text, as FCM has it; `caller` is JSON. */
function messageOf(message: PushMessage, now: number) {
  const data = Object.fromEntries(
    Object.entries(message.payload).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )
  const ttl = `${secondsLeft(message, now)}s`
  return { data, android: { priority: 'HIGH', ttl, collapse_key: message.callUuid } }
}

/** google.rpc.Status with an FcmError among its details, or an ErrorInfo, as of an API that is not enabled. */
function errorCodeOf(answer: Record<string, unknown>): string | undefined {
  const { status, details = [] } =
    (answer as { error?: { status?: string; details?: { errorCode?: string; reason?: string }[] } }).error ?? {}
  const known = (name: 'errorCode' | 'reason') => details.find((detail) => detail[name] !== undefined)?.[name]
  return known('errorCode') ?? known('reason') ?? status
}

function resultOf(status: number, code: string | undefined): Pushed {
  const reason = code === undefined || status === 401 ? String(status) : `${status} ${code}`.slice(0, 80)
  if (status === 200) return { result: 'accepted', reason }
  // Any other 404 is about the path or the project: the device is still there.
  if (code === 'UNREGISTERED') return { result: 'gone', reason }
  if (status === 413) return { result: 'too_large', reason }
  if (status === 429) return { result: 'limited', reason }
  return { result: status >= 500 ? 'failed' : 'refused', reason }
}

/** RFC 6749 section 5.2; of the description only what is plain words. */
class AccessRefused extends Error {
  constructor(status: number, { error, error_description: description }: Record<string, unknown>) {
    const code = /^\w{1,64}$/.test(String(error ?? '')) ? ` ${error}` : ''
    const isPlain = /^(?=.{1,160}$)[\w.,:;()'/-]{1,40}( [\w.,:;()'/-]{1,40})*$/.test(String(description ?? ''))
    super(`no access token: ${status}${code}${isPlain ? ` (${description})` : ''}`)
  }
}

/** A text that is not a JSON object says nothing. */
function readObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

const accessFailed = (reason: string) => Object.assign(new Error(), { code: `no access token: ${reason}` })

/** No status came. Google is not a stranger: everyone may read the cause. */
function unanswered(answer: Answer & { ok: false }): Pushed {
  return { result: 'failed', reason: answer.cause ?? answer.error }
}

/** Access tokens by a signed assertion (RFC 7523 section 2.1), one request at a time: none who waits for it ends it. */
function createAccess({ clientEmail, key, tokenUrl }: FcmCredentials, post: Post, now: () => number, limitMs: number) {
  const closing = new AbortController()
  let known: { token: string; expiresAt: number } | undefined
  let asking: Promise<string> | undefined

  async function ask(): Promise<string> {
    const iat = Math.floor(now() / 1000)
    const assertion = signJwt('RS256', key, { iss: clientEmail, scope, aud: tokenUrl, iat, exp: iat + 3600 })
    const said = await post({
      url: tokenUrl,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: String(new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })),
      signal: AbortSignal.any([closing.signal, AbortSignal.timeout(limitMs)]),
    })
    if (!said.ok) throw accessFailed(unanswered(said).reason)
    const { status } = said
    if (status >= 500 || status === 429) throw accessFailed(String(status))
    if (said.isCut) throw accessFailed('the answer broke off')
    const answer = readObject(said.body)
    const { access_token: token, expires_in: seconds } = answer
    if (status !== 200 || typeof token !== 'string') throw new AccessRefused(status, answer)
    known = { token, expiresAt: now() + (Number(seconds) || 0) * 1000 }
    return token
  }

  return {
    token(signal: AbortSignal): Promise<string> {
      if (known !== undefined && known.expiresAt - now() > renewMs) return Promise.resolve(known.token)
      asking ??= ask().finally(() => {
        asking = undefined
      })
      return endedBy(signal, asking)
    },
    /** Another message may have met the same, and brought a new one. */
    drop(token: string) {
      if (known?.token === token) known = undefined
    },
    close: () => closing.abort(),
  }
}

/** The result of the promise, unless the signal comes first: then its reason is thrown. */
function endedBy<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const end = () => reject(signal.reason)
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  return Promise.race([promise, ended]).finally(() => signal.removeEventListener('abort', end))
}
