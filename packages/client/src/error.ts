import type { ErrorCode, LimitName } from '@ringwire/protocol/errors'
import type { ClientErrorCode, RingwireErrorShape } from './types.ts'
import { isObject } from './wire.ts'

type Details = Partial<
  Pick<
    RingwireErrorShape,
    'retryable' | 'retryAfterMs' | 'limit' | 'callUuid' | 'field' | 'status' | 'httpStatus' | 'cause'
  >
>

/** Every failure that the SDK reports. What it says is made of codes and the service's own words [LOG1]. */
export class RingwireError extends Error implements RingwireErrorShape {
  override readonly name = 'RingwireError'
  declare readonly code: ErrorCode | ClientErrorCode
  declare readonly retryable: boolean
  declare readonly retryAfterMs: number | undefined
  declare readonly limit: LimitName | undefined
  declare readonly callUuid: string | undefined
  declare readonly field: string | undefined
  declare readonly status: string | undefined
  declare readonly httpStatus: number | undefined

  constructor(code: ErrorCode | ClientErrorCode, message: string, { cause, ...details }: Details = {}) {
    super(message, cause === undefined ? undefined : { cause })
    Object.assign(this, { code, retryable: false, ...details })
  }
}

/** The error object of `call.error` [ENV2]. */
export function errorFromWire(value: unknown): RingwireError {
  const body = isObject(value) ? value : {}
  const text = (name: string) => (typeof body[name] === 'string' ? (body[name] as string) : undefined)
  const code = (text('code') ?? 'INTERNAL_ERROR') as ErrorCode
  return new RingwireError(code, text('message') ?? code, {
    retryable: body.retryable === true,
    retryAfterMs: typeof body.retry_after_ms === 'number' ? body.retry_after_ms : undefined,
    limit: text('limit') as LimitName | undefined,
    callUuid: text('call_uuid'),
    field: text('field'),
    status: text('status'),
  })
}
