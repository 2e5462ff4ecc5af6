/** GET /v1/calls/history. */
import type { HistoryResponse } from '@ringwire/protocol/rest'
import type { SessionClaims, Tokens } from '../auth/tokens.ts'
import type { History } from '../history.ts'
import type { Limits } from '../limits.ts'
import type { Logger } from '../observability/logger.ts'
import { failure, json, retryAfter } from './replies.ts'

export interface CallHistoryDeps {
  readonly tokens: Tokens
  readonly limits: Limits
  readonly history: History
  readonly logger: Logger
}

export function createCallHistoryEndpoint(deps: CallHistoryDeps) {
  const { tokens, limits, history, logger } = deps

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

  async function answer(claims: SessionClaims, url: string): Promise<Response> {
    const query = new URL(url).searchParams
    try {
      const page = await history.page(claims.participant, {
        limit: query.get('limit') ?? undefined,
        cursor: query.get('cursor') ?? undefined,
      })
      return json(200, { success: true, ...page } satisfies HistoryResponse)
    } catch (error) {
      logger.error({ error }, 'the call history could not be read')
      return failure('CALL_HISTORY_FAILED')
    }
  }

  return async (request: Request, address: string | undefined): Promise<Response> => {
    const token = bearerToken(request.headers.get('authorization'))
    if (token === undefined) return failure('AUTH_TOKEN_REQUIRED')
    const verified = tokens.verify(token)
    return verified.ok ? answer(verified.claims, request.url) : refusal(verified.expired, address)
  }
}

/** The token of an Authorization header; undefined where it holds none, or another scheme [RFC 6750 section 2.1]. */
export function bearerToken(header: string | null | undefined): string | undefined {
  const [, token] = /^bearer +(\S.*)$/i.exec(header?.trim() ?? '') ?? []
  return token
}
