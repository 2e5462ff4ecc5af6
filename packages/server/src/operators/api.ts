/** What is below /admin/api/ [ADM2]. */
import { failure, json } from '../http/replies.ts'
import type { Status } from '../observability/status.ts'
import type { OperatorRequest } from './door.ts'
import { createNow } from './now.ts'
import type { Samples } from './samples.ts'

export interface OperatorApiOptions {
  readonly status: Status
  readonly samples: Samples
  /** In ms since the epoch. */
  readonly now: () => number
}

export function createOperatorApi(options: OperatorApiOptions): (asked: OperatorRequest) => Promise<Response> {
  const showNow = createNow(options)

  return async ({ request, path }) => {
    if (path !== 'now') return failure('NOT_FOUND')
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
    const since = Number(new URL(request.url).searchParams.get('since') ?? 0)
    return json(200, { success: true, ...(await showNow(Number.isFinite(since) ? since : 0)) })
  }
}
