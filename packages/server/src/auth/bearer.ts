/** Endpoints that a client asks with its session token. */

import { failure, retryAfter } from '../http/replies.ts'
import type { LocalLimits } from '../limits/limits.ts'
import type { SessionClaims, Tokens } from './tokens.ts'

export interface BearerDeps {
  readonly tokens: Pick<Tokens, 'verify'>
  readonly localLimits: Pick<LocalLimits, 'participantRequest'>
}

type Answer = (claims: SessionClaims, request: Request) => Response | Promise<Response>

/** Answers requests whose bearer token is valid, as many as one participant may have, and refuses the others [HTTP1]. */
export function createBearerEndpoint({ tokens, localLimits }: BearerDeps, answer: Answer) {
  return (request: Request): Response | Promise<Response> => {
    const token = bearerToken(request.headers.get('authorization'))
    if (token === undefined) return failure('AUTH_TOKEN_REQUIRED')
    const verified = tokens.verify(token)
    if (!verified.ok) return failure('AUTH_TOKEN_INVALID')
    const limit = localLimits.participantRequest(verified.claims.participant)
    if (!limit.ok) return failure('RATE_LIMITED', { headers: retryAfter(limit.retryAfterMs) })
    return answer(verified.claims, request)
  }
}

/** The token of an Authorization header; undefined where it holds none, or another scheme [RFC 6750 section 2.1]. */
export function bearerToken(header: string | null | undefined): string | undefined {
  const [, token] = /^bearer +(\S.*)$/i.exec(header?.trim() ?? '') ?? []
  return token
}
