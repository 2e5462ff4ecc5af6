/** GET /v1/calls/history. */
import type { HistoryResponse } from '@ringwire/protocol/rest'
import { type BearerDeps, createBearerEndpoint } from '../auth/bearer.ts'
import { failure, json } from '../http/replies.ts'
import type { Journal } from '../observability/journal.ts'
import type { History } from './history.ts'

export interface CallHistoryDeps extends BearerDeps {
  readonly history: History
  readonly journal: Pick<Journal, 'failed'>
}

export function createCallHistoryEndpoint(deps: CallHistoryDeps) {
  const { history, journal } = deps
  return createBearerEndpoint(deps, async (claims, request) => {
    const query = new URL(request.url).searchParams
    try {
      const page = await history.page(claims.participant, {
        limit: query.get('limit') ?? undefined,
        cursor: query.get('cursor') ?? undefined,
      })
      return json(200, { success: true, ...page } satisfies HistoryResponse)
    } catch (error) {
      journal.failed(error, 'the call history could not be read')
      return failure('CALL_HISTORY_FAILED')
    }
  })
}
