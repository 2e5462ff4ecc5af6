/** GET /v1/calls/history. */
import type { HistoryResponse } from '@ringwire/protocol/rest'
import type { History } from '../history.ts'
import type { Logger } from '../observability/logger.ts'
import { StoreError } from '../ports.ts'
import { type BearerDeps, createBearerEndpoint } from './bearer.ts'
import { failure, json } from './replies.ts'

export interface CallHistoryDeps extends BearerDeps {
  readonly history: History
  readonly logger: Logger
}

export function createCallHistoryEndpoint(deps: CallHistoryDeps) {
  const { history, logger } = deps
  return createBearerEndpoint(deps, async (claims, request) => {
    const query = new URL(request.url).searchParams
    try {
      const page = await history.page(claims.participant, {
        limit: query.get('limit') ?? undefined,
        cursor: query.get('cursor') ?? undefined,
      })
      return json(200, { success: true, ...page } satisfies HistoryResponse)
    } catch (error) {
      logger[error instanceof StoreError ? 'warn' : 'error']({ error }, 'the call history could not be read')
      return failure('CALL_HISTORY_FAILED')
    }
  })
}
