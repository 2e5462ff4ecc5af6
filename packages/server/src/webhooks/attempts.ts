/** Sends deliveries to their endpoints, each time with a new signature, and says what came of it [HOOK3]. */
import type { CallRef } from '../call/call.ts'
import type { Answer, Post } from '../outgoing/post.ts'
import { signedHeaders } from '../outgoing/signature.ts'
import type { Attempted, Claimed, FailedDelivery, WebhookEndpoint } from '../ports/webhooks.ts'
import { isListener } from './listeners.ts'
import { backoffMs, delayAfter, tooLate, type Verdict, verdictOf } from './verdict.ts'
import type { WakeHook } from './wake-hook.ts'

/** The other parts of `call.wake` were not there: the service looks again after this, and that is not an attempt. In ms. */
const unreadMs = 1_000

/** The result of an attempt; `repeated`: it failed, and is made again. */
export type DeliveryResult = 'delivered' | 'repeated' | 'failed'

/** Which attempt it was. */
export interface Attempt {
  readonly delivery: Claimed
  readonly endpoint: WebhookEndpoint
  /** The status of the answer; null: none. */
  readonly status: number | null
  readonly afterMs: number
  /** The header by which its receiver goes on with the trace of the call, if there is one [OTEL1]. */
  readonly traceparent?: string | undefined
}

export interface AttemptsOptions {
  readonly post: Post
  /** Sends to this machine; without it `post` does. */
  readonly postHere?: Post
  /** Completes `call.wake` for each attempt. */
  readonly wakeHook: WakeHook
  /** The clock that calls go by. */
  readonly now: () => number
  readonly onResult: (result: DeliveryResult, attempt: Attempt) => void
  /** A delivery failed for good [LOG2]. */
  readonly onFailed: (failed: FailedDelivery) => void
  readonly onError: (error: unknown) => void
  /** The `traceparent` of a request about a call, where calls are traced [OTEL1]. */
  readonly traceparent?: ((ref: CallRef) => string) | undefined
  /** Tests do not wait for hours. */
  readonly backoffMs?: readonly number[]
}

export type MakeAttempt = (delivery: Claimed, endpoint: WebhookEndpoint) => Promise<Attempted>

/**
 * After `stopping` what fails counts as no attempt; `giveUp` ends the requests that are under way. `disable`: the endpoint is
 * gone for good.
 */
export function createAttempts(
  options: AttemptsOptions,
  { stopping, giveUp }: Readonly<Record<'stopping' | 'giveUp', AbortSignal>>,
  disable: (endpoint: WebhookEndpoint) => Promise<void>,
): MakeAttempt {
  const { post, postHere = post, wakeHook, now, onResult, onFailed, onError } = options

  function send(delivery: Claimed, endpoint: WebhookEndpoint, at: number, traceparent?: string): Promise<Answer> {
    const ask = isListener(endpoint) ? postHere : post
    const request = requestOf(delivery, endpoint, at)
    const headers = traceparent === undefined ? request.headers : { ...request.headers, traceparent }
    return ask({ ...request, headers, signal: giveUp })
  }

  /** Only calls have traces. */
  function traceparentOf({ subject, type }: Claimed, { product }: WebhookEndpoint): string | undefined {
    return type.startsWith('call.') ? options.traceparent?.({ product, callUuid: subject }) : undefined
  }

  /**
   * Of `call.wake` a part is made for each attempt: then what an endpoint answers must not keep its ticket. Undefined: that
   * part could not be made.
   */
  async function answerTo(
    delivery: Claimed,
    endpoint: WebhookEndpoint,
    at: number,
    traceparent: string | undefined,
  ): Promise<Answer | undefined> {
    if (delivery.type !== 'call.wake') return send(delivery, endpoint, at, traceparent)
    const whole = await wakeHook(endpoint.product, delivery.body).catch((error) => void onError(error))
    if (whole === undefined) return undefined
    const answer = await send({ ...delivery, body: whole.body }, endpoint, at, traceparent)
    return answer.ok ? { ...answer, body: answer.body.replaceAll(whole.ticket, '[ring ticket]') } : answer
  }

  function tell(verdict: Verdict, attempt: Attempt): void {
    const { delivery, endpoint } = attempt
    if (verdict.outcome === 'delivered') onResult('delivered', attempt)
    else if (verdict.outcome === 'pending') onResult('repeated', attempt)
    else if (verdict.outcome === 'failed') {
      onResult('failed', attempt)
      onFailed({ delivery, endpoint, cause: verdict.cause })
    }
  }

  return async (delivery, endpoint) => {
    const { id } = delivery
    const at = now()
    const unsent = { id, afterMs: 0, at, responseStatus: null, response: null }
    const late = tooLate(delivery, at)
    if (late === 'too old')
      tell({ outcome: 'failed', afterMs: 0, cause: late }, { delivery, endpoint, status: null, afterMs: 0 })
    if (late !== undefined) return { ...unsent, outcome: 'failed', response: late }
    const traceparent = traceparentOf(delivery, endpoint)
    const answer = await answerTo(delivery, endpoint, at, traceparent)
    if (answer === undefined) return { ...unsent, outcome: 'released', afterMs: unreadMs }
    if (!answer.ok && stopping.aborted) return { ...unsent, outcome: 'released' }
    const answeredAt = now()
    const delayMs = delayAfter(delivery.attempts, options.backoffMs ?? backoffMs)
    const verdict = verdictOf(delivery, answer, answeredAt, delayMs)
    const { outcome, afterMs } = verdict
    if (outcome === 'released') return { ...unsent, outcome }
    const status = answer.ok ? answer.status : null
    tell(verdict, { delivery, endpoint, status, afterMs: Math.max(0, answeredAt - at), traceparent })
    if (status === 410) await disable(endpoint)
    // PostgreSQL stores no NUL in a text.
    const response = (answer.ok ? answer.body : answer.error).replaceAll('\0', '\ufffd')
    return { id, outcome, afterMs, at: answeredAt, responseStatus: status, response }
  }
}

function requestOf({ id, body }: Claimed, endpoint: WebhookEndpoint, at: number) {
  return { url: endpoint.url, headers: signedHeaders({ id, body }, secretsOf(endpoint, at), at), body }
}

/** The current one first. */
function secretsOf({ secret, oldSecret, oldSecretUntil }: WebhookEndpoint, at: number): string[] {
  return oldSecret !== null && oldSecretUntil !== null && oldSecretUntil > at ? [secret, oldSecret] : [secret]
}
