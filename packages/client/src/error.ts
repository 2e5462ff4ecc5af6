import type { ErrorCode, LimitName } from '@ringwire/protocol/errors'
import type { ClientErrorCode, RingwireErrorShape } from './types.ts'

type Details = Partial<
  Pick<RingwireErrorShape, 'retryable' | 'retryAfterMs' | 'limit' | 'callUuid' | 'field' | 'status' | 'cause'>
>

/** Every failure that the SDK reports. What it says is made of codes and the service's own words [LOG1]. */
export class RingwireError extends Error implements RingwireErrorShape {
  override readonly name = 'RingwireError'
  readonly code: ErrorCode | ClientErrorCode
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined
  readonly limit: LimitName | undefined
  readonly callUuid: string | undefined
  readonly field: string | undefined
  readonly status: string | undefined

  constructor(code: ErrorCode | ClientErrorCode, message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.retryable = details.retryable ?? false
    this.retryAfterMs = details.retryAfterMs
    this.limit = details.limit
    this.callUuid = details.callUuid
    this.field = details.field
    this.status = details.status
  }
}

/** The error object of `call.error` [ENV2]. */
export function errorFromWire(value: unknown): RingwireError {
  const body = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  const text = (name: string) => (typeof body[name] === 'string' ? (body[name] as string) : undefined)
  const code = (text('code') ?? 'INTERNAL_ERROR') as ErrorCode
  const details: Record<string, unknown> = {
    retryable: body.retryable === true,
    limit: text('limit'),
    callUuid: text('call_uuid'),
    field: text('field'),
    status: text('status'),
  }
  if (typeof body.retry_after_ms === 'number') details.retryAfterMs = body.retry_after_ms
  return new RingwireError(code, text('message') ?? code, details)
}
