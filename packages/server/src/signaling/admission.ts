import { type ErrorBody, type ErrorCode, errorBody, errors } from '@ringwire/protocol/errors'
import type { Subprotocols } from '@ringwire/protocol/subprotocol'
import type { SessionClaims, Tokens } from '../auth/tokens.ts'
import type { LocalLimits } from '../limits/limits.ts'
import type { Connection } from './connection.ts'
import { type ExtendedRequest, readExtendedQuery } from './extended-query.ts'

/** What a socket was let in as: a session, or only to hear why not [WS2]. */
export type Admission = Admitted | Refused

/** Refused without a socket. `isLate`: a client that comes too often waits for the answer. */
export interface TurnedAway {
  readonly kind: 'turned away'
  readonly answer: Response
  readonly isLate: boolean
}

interface Refused {
  readonly kind: 'refused'
  readonly code: number
  readonly reason: string
  readonly error: ErrorBody | undefined
}

export interface Admitted {
  readonly kind: 'session'
  readonly claims: SessionClaims
  readonly extended: ExtendedRequest | undefined
  connection: Connection | undefined
  /** It counts for whether its participant is online. */
  isIn: boolean
  /** The read of what it finds when it connects, under way or done. */
  arrival: Promise<unknown> | undefined
  /** After expiry: until when it was in a call [WS5]. */
  inCallAt: number
  /** When its ICE servers are to be renewed [EXT5]. */
  iceDueAt: number
}

/** The open sockets of this process that are sessions, the oldest first, each with what it was let in as. */
export type LiveConnections = Map<Connection, Admitted>

export interface AdmissionOptions {
  /** In lower case; null: any [WS8]. */
  readonly allowedOrigins: readonly string[] | null
  readonly tokens: Tokens
  readonly localLimits: Pick<LocalLimits, 'connection' | 'stranger'>
}

type Identified =
  | { readonly ok: true; readonly claims: SessionClaims }
  | { readonly ok: false; readonly answer: Refused | Response }

/** Query parameters in which somebody might put a token: it would end up in logs [WS1]. */
const tokenParameters = ['token', 'access_token', 'jwt', 'authorization']
const noQuery = new URLSearchParams()

const howToSend = 'Send the session token as "Authorization: Bearer <token>" or as the subprotocols "jwt, <token>".'

/** Who may open a socket [WS1, WS2, WS7, WS8, HTTP1]. */
export function createAdmission({ allowedOrigins, tokens, localLimits }: AdmissionOptions) {
  /** The client's address is only looked up for a stranger. */
  function admit(
    headers: Headers,
    query: string,
    subprotocols: Subprotocols,
    clientAddress: () => string | undefined,
  ): Admission | TurnedAway {
    const parameters = query === '' ? noQuery : new URLSearchParams(query)
    const identified = identify(headers, parameters, subprotocols)
    if (identified.ok) return admitted(identified.claims, parameters)
    // Only strangers count: a good token gets in, whoever else is behind the same address [HTTP1].
    const limit = localLimits.stranger(clientAddress())
    const answer = limit.ok ? identified.answer : refusal('RATE_LIMITED', undefined, limit.retryAfterMs)
    return answer instanceof Response ? { kind: 'turned away', answer, isLate: limit.isInsistent } : answer
  }

  /** Whose token it is, or what a stranger is answered. */
  function identify(headers: Headers, query: URLSearchParams, { offered, token }: Subprotocols): Identified {
    const origin = headers.get('origin')?.toLowerCase()
    if (origin !== undefined && allowedOrigins !== null && !allowedOrigins.includes(origin)) {
      return stranger({ kind: 'refused', code: 4403, reason: 'origin not allowed', error: undefined })
    }
    if (hasToken(query)) {
      return stranger(
        refusal('AUTH_TOKEN_INVALID', 'A token in the URL is refused: use the subprotocol or the header.'),
      )
    }
    // Another scheme is not a credential here: a browser adds the one of its page's own login.
    const bearer = /^Bearer +(\S.*)$/i.exec(headers.get('authorization')?.trim() ?? '')?.[1]
    if (bearer !== undefined) {
      const verified = tokens.verify(bearer)
      return verified.ok ? verified : stranger(refusal('AUTH_TOKEN_INVALID'))
    }
    if (!offered) return stranger(refusal('AUTH_TOKEN_REQUIRED', howToSend))
    if (token === undefined) {
      return stranger({
        kind: 'refused',
        code: 4401,
        reason: 'token required',
        error: errorBody('AUTH_TOKEN_REQUIRED', { message: howToSend }),
      })
    }
    const verified = tokens.verify(token)
    if (verified.ok) return verified
    return stranger({ kind: 'refused', code: 4401, reason: 'token invalid', error: errorBody('AUTH_TOKEN_INVALID') })
  }

  function admitted(claims: SessionClaims, query: URLSearchParams): Admission | TurnedAway {
    const limit = localLimits.connection(claims.participant)
    if (!limit.ok) {
      // A WebSocket that is opened to be closed costs many times as much as this.
      if (limit.isInsistent) {
        return { kind: 'turned away', answer: refusal('RATE_LIMITED', undefined, limit.retryAfterMs), isLate: true }
      }
      const error = errorBody('RATE_LIMITED', { limit: 'connections', retry_after_ms: limit.retryAfterMs })
      return { kind: 'refused', code: 4429, reason: 'too many connections', error }
    }
    return admissionOf(claims, query)
  }

  return { admit }
}

/** A session that is let in, before its socket is open. */
export function admissionOf(claims: SessionClaims, query: URLSearchParams): Admitted {
  return {
    kind: 'session',
    claims,
    extended: readExtendedQuery(query),
    connection: undefined,
    isIn: false,
    arrival: undefined,
    inCallAt: 0,
    iceDueAt: 0,
  }
}

const stranger = (answer: Refused | Response): Identified => ({ ok: false, answer })

function hasToken(query: URLSearchParams): boolean {
  return [...query.keys()].some((name) => tokenParameters.includes(name.toLowerCase()))
}

/** An upgrade that is refused by an HTTP status, with the REST error body [WS2]; each costs a connection of its own. */
export function refusal(code: ErrorCode, message?: string, retryAfterMs = 1000): Response {
  const error = errorBody(code, message === undefined ? {} : { message })
  const definition = errors[code]
  const status = 'status' in definition ? definition.status : 500
  const headers = {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
    ...(status === 401 && { 'WWW-Authenticate': 'Bearer' }),
    ...((status === 503 || status === 429) && { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }),
  }
  return Response.json({ success: false, error: { code: error.code, message: error.message } }, { status, headers })
}
