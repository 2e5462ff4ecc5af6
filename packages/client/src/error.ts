import type { ErrorCode, LimitName } from '@ringwire/protocol/errors'
import { isObject } from './json.ts'
import type { ClientErrorCode, RingwireErrorShape } from './types.ts'

type Details = Partial<
  Pick<RingwireErrorShape, 'retryable' | 'retryAfterMs' | 'limit' | 'callUuid' | 'field' | 'status' | 'httpStatus'>
> & {
  // Not picked: the Error of applications that are compiled for ES2020 has none.
  cause?: unknown
}

/** Every failure that the SDK reports. Its message only has codes and the service's own words [LOG1]. */
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

/** Throws INVALID_ARGUMENT: what an application hands over is checked where it does so, also in JavaScript. */
export function check(fits: unknown, field: string, rule: string): void {
  if (!fits) throw new RingwireError('INVALID_ARGUMENT', `${field} must be ${rule}.`, { field })
}

/** What `on` takes, where these are the events. */
export function listensTo<Name>(...names: Name[]) {
  return (event: Name, listener: unknown): void => {
    check(names.includes(event), 'event', `one of ${names}`)
    check(typeof listener === 'function', 'listener', 'a function')
  }
}

interface WireError {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable: boolean
  readonly retry_after_ms: number
  readonly limit: LimitName
  readonly call_uuid: string
  readonly field: string
  readonly status: string
}

/** The error object of `call.error` [ENV2]. The contents are the service's word. */
export function errorFromWire(value: unknown): RingwireError {
  const body = (isObject(value) ? value : {}) as Partial<WireError>
  const { code = 'INTERNAL_ERROR', message = code, retry_after_ms: retryAfterMs, call_uuid: callUuid, ...more } = body
  return new RingwireError(code, message, { retryAfterMs, callUuid, ...more })
}
