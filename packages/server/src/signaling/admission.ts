import { type ErrorBody, type ErrorCode, errorBody, errors } from '@ringwire/protocol/errors'
import type { Subprotocols } from '@ringwire/protocol/subprotocol'
import type { SessionClaims, Tokens, Verification } from '../auth/tokens.ts'
import type { Limits } from '../limits.ts'
import type { Connection } from './connection.ts'
import { type ExtendedRequest, readExtendedQuery } from './extended-query.ts'

/** What a socket was let in as: a session, or only to hear why not [WS2]. */
export type Admission =
  | Admitted
  | { readonly kind: 'refused'; readonly code: number; readonly reason: string; readonly error: ErrorBody | undefined }

export interface Admitted {
  readonly kind: 'session'
  readonly claims: SessionClaims
  readonly extended: ExtendedRequest | undefined
  connection: Connection | undefined
  /** What it finds when it connects is being read, or was. */
  arrival: Promise<unknown> | undefined
  /** After expiry: until when it was in a call [WS5]. */
  inCallAt: number
  /** When its ICE servers are to be renewed [EXT5]. */
  iceDueAt: number
}

export interface AdmissionOptions {
  /** In lower case; null: any [WS8]. */
  readonly allowedOrigins: readonly string[] | null
  readonly tokens: Tokens
  readonly limits: Limits
  readonly onError: (error: unknown) => void
}

/** Query parameters in which somebody might put a token: it would end up in logs [WS1]. */
const tokenParameters = ['token', 'access_token', 'jwt', 'authorization']
const noQuery = new URLSearchParams()

/** Who may open a socket [WS1, WS2, WS8]. */
export function createAdmission({ allowedOrigins, tokens, limits, onError }: AdmissionOptions) {
  /** Synchronous for everybody who is let in; a response is for who is refused without a socket. */
  function admit(
    headers: Headers,
    query: string,
    { offered, token }: Subprotocols,
    clientAddress: () => string | undefined,
  ): Admission | Promise<Response> | Response {
    const origin = headers.get('origin')?.toLowerCase()
    if (origin !== undefined && allowedOrigins !== null && !allowedOrigins.includes(origin)) {
      return { kind: 'refused', code: 4403, reason: 'origin not allowed', error: undefined }
    }
    const parameters = query === '' ? noQuery : new URLSearchParams(query)
    if (hasToken(parameters)) {
      return refusal('AUTH_TOKEN_INVALID', 'A token in the URL is refused: use the subprotocol or the header.')
    }
    // Another scheme is no credential here: a browser adds the one of its page's own login.
    const bearer = /^Bearer +(\S.*)$/i.exec(headers.get('authorization')?.trim() ?? '')?.[1]
    if (bearer !== undefined) {
      const verified = tokens.verify(bearer)
      return verified.ok ? admitted(verified.claims, parameters) : refusedByHeader(verified, clientAddress())
    }
    if (!offered) return refusal('AUTH_TOKEN_REQUIRED')
    if (token === undefined) {
      return { kind: 'refused', code: 4401, reason: 'token required', error: errorBody('AUTH_TOKEN_REQUIRED') }
    }
    const verified = tokens.verify(token)
    if (verified.ok) return admitted(verified.claims, parameters)
    if (!verified.expired) void limits.failedAuthentication(clientAddress()).catch(onError)
    return { kind: 'refused', code: 4401, reason: 'token invalid', error: errorBody('AUTH_TOKEN_INVALID') }
  }

  /** Failures have a budget per address; what is valid never meets it, nor does what was valid once [TOK5]. */
  async function refusedByHeader(
    { expired }: Exclude<Verification, { ok: true }>,
    clientAddress: string | undefined,
  ): Promise<Response> {
    if (expired) return refusal('AUTH_TOKEN_INVALID')
    const limit = await limits.failedAuthentication(clientAddress)
    if (limit.ok) return refusal('AUTH_TOKEN_INVALID')
    const response = refusal('BOOTSTRAP_IP_RATE_LIMITED')
    response.headers.set('Retry-After', String(Math.ceil(limit.retryAfterMs / 1000)))
    return response
  }

  return { admit }
}

function admitted(claims: SessionClaims, query: URLSearchParams): Admitted {
  const extended = readExtendedQuery(query)
  return { kind: 'session', claims, extended, connection: undefined, arrival: undefined, inCallAt: 0, iceDueAt: 0 }
}

function hasToken(query: URLSearchParams): boolean {
  return [...query.keys()].some((name) => tokenParameters.includes(name.toLowerCase()))
}

/** An upgrade that is refused by an HTTP status, with the REST error body [WS2]. */
export function refusal(code: ErrorCode, message?: string): Response {
  const error = errorBody(code, message === undefined ? {} : { message })
  const definition = errors[code]
  const status = 'status' in definition ? definition.status : 500
  const headers = {
    'Cache-Control': 'no-store',
    ...(status === 401 && { 'WWW-Authenticate': 'Bearer' }),
    ...(status === 503 && { 'Retry-After': '1' }),
  }
  return Response.json({ success: false, error: { code: error.code, message: error.message } }, { status, headers })
}
