/** The requests below /admin/api/ [ADM2]: about this machine, and about its stores. */
import type { describeConfig } from '../config/config.ts'
import { failure, json } from '../http/replies.ts'
import { targetOf } from '../http/request-target.ts'
import type { Status } from '../observability/status.ts'
import type { OperatorRequest } from './door.ts'
import { createNow } from './now.ts'
import type { Samples } from './samples.ts'

export type ShownSetting = ReturnType<typeof describeConfig>[number]

export interface OperatorApiOptions {
  readonly status: Status
  readonly samples: Samples
  /** The settings of this machine, without secrets. */
  readonly settings: () => readonly ShownSetting[]
  /** In ms since the epoch. */
  readonly now: () => number
}

export function createOperatorApi(options: OperatorApiOptions): (asked: OperatorRequest) => Promise<Response> {
  const showNow = createNow(options)

  return async ({ request, path, operator, address }) => {
    const { method } = request
    const { query } = targetOf(request)
    if (path !== 'now' && path !== 'settings') {
      const body = method === 'GET' || method === 'HEAD' ? '' : await request.text()
      return options.status.operate({ method, path, query, body, operator, address })
    }
    if (method !== 'GET' && method !== 'HEAD') return failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
    if (path === 'settings') return json(200, { success: true, data: options.settings() })
    const since = Number(new URLSearchParams(query).get('since') ?? 0)
    return json(200, { success: true, ...(await showNow(Number.isFinite(since) ? since : 0)) })
  }
}
