import type { PushAddress } from '../ports/devices.ts'

export type Platform = PushAddress['platform']

/** One message to one device [PUSH2]. */
export interface PushMessage {
  readonly type: 'call.wake' | 'call.wake_cancelled'
  readonly callUuid: string
  /** What the device gets. Members are text or plain objects. */
  readonly payload: Readonly<Record<string, unknown>>
  /** When it is worth nothing any more, in ms since the epoch. */
  readonly expiresAt: number
}

/**
 * What a push service made of it. `gone`: the address is dead, and stays so. `limited`, `failed`: later it may go.
 * `refused`: this one never goes, for a reason that is not the address.
 */
export type PushResult = 'accepted' | 'gone' | 'limited' | 'failed' | 'refused' | 'too_large'

export interface Pushed {
  readonly result: PushResult
  /** How long the push service wants to be left alone, in ms. */
  readonly retryAfterMs?: number
  /** The status, or the service's own word; never an address, a key or a payload. */
  readonly reason: string
}

/** One push service. Never throws; `signal` is its deadline. */
export interface PushService<A extends PushAddress = PushAddress> {
  send(address: A, message: PushMessage, signal: AbortSignal): Promise<Pushed>
  close(): void
}

/** The push service of an address: it tells one that hangs from the others. */
export function originOf(address: PushAddress): string {
  if (address.platform === 'webpush') return URL.parse(address.endpoint)?.origin ?? ''
  return address.platform === 'apns' ? address.environment : ''
}

/** Whole seconds until a message is worth nothing any more, at least 0. */
export function secondsLeft({ expiresAt }: PushMessage, now: number): number {
  return Math.max(0, Math.floor((expiresAt - now) / 1000))
}

/** Retry-After in seconds, or as a date (RFC 9110 section 10.2.3); nothing where it is neither. */
export function retryAfterOf(value: string | null | undefined, now: number): { retryAfterMs?: number } {
  if (value == null || value === '') return {}
  if (/^\d{1,9}$/.test(value)) return { retryAfterMs: Number(value) * 1000 }
  const at = Date.parse(value)
  return Number.isNaN(at) ? {} : { retryAfterMs: Math.max(0, at - now) }
}

/** No status says this: no answer in time, no connection. Codes of the system and of TLS say enough. */
export function failedBy(error: unknown): Pushed {
  const { code, name } = error as NodeJS.ErrnoException
  return { result: 'failed', reason: name === 'AbortError' || name === 'TimeoutError' ? 'timeout' : (code ?? name) }
}
