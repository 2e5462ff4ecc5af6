/** Endpoints that a client asks with its session token. */
import type { SessionClaims, Tokens } from '../auth/tokens.ts'
import type { Limits } from '../limits.ts'
import { failure, retryAfter } from './replies.ts'

export interface BearerDeps {
  readonly tokens: Tokens
  readonly limits: Limits
}

type Answer = (claims: SessionClaims, request: Request) => Response | Promise<Response>

/** Answers requests whose bearer token is valid, and refuses the others [TOK5]. */
export function createBearerEndpoint({ tokens, limits }: BearerDeps, answer: Answer) {
  async function refusal(expired: boolean, address: string | undefined): Promise<Response> {
    // An authentic token that is merely expired is no attempt at guessing [TOK5].
    if (!expired) {
      const budget = await limits.failedAuthentication(address)
      if (!budget.ok) {
        const message = 'Too many failed authentications from this address.'
        return failure('BOOTSTRAP_IP_RATE_LIMITED', { message, headers: retryAfter(budget.retryAfterMs) })
      }
    }
    return failure('AUTH_TOKEN_INVALID')
  }

  return async (request: Request, address: string | undefined): Promise<Response> => {
    const token = bearerToken(request.headers.get('authorization'))
    if (token === undefined) return failure('AUTH_TOKEN_REQUIRED')
    const verified = tokens.verify(token)
    return verified.ok ? answer(verified.claims, request) : refusal(verified.expired, address)
  }
}

/** The token of an Authorization header; undefined where it holds none, or another scheme [RFC 6750 section 2.1]. */
export function bearerToken(header: string | null | undefined): string | undefined {
  const [, token] = /^bearer +(\S.*)$/i.exec(header?.trim() ?? '') ?? []
  return token
}
